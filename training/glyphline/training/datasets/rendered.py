"""Strips rendered from fonts: print, typewriter, seven-segment displays, counter wheels, handwriting faces."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from glyphline.training.augment import Wear, glare, photograph, smooth_field, thicken, warp, with_margins
from glyphline.training.datasets.samples import Ink, Sample
from glyphline.training.datasets.texts import random_digits, random_length, random_text
from glyphline.training.errors import DataError

SUFFIXES = (".ttf", ".otf", ".woff", ".woff2")


def find_fonts(folder: Path) -> list[Path]:
    """Lists the font files below a folder, in a stable order.

    Raises:
        DataError: If there is none.
    """
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    if not found:
        raise DataError(
            f"no font below {folder}: `python scripts/fetch_fonts.py --output DATA/fonts` fetches what digits.toml uses"
        )
    return found


@lru_cache(maxsize=2048)
def load_font(path: Path, size: int) -> ImageFont.FreeTypeFont:
    """Opens a font at a size in pixels, once."""
    return ImageFont.truetype(str(path), size)


@dataclass(frozen=True)
class RenderedStrips:
    """Strips drawn with the fonts below a folder.

    Attributes:
        fonts: Font files.
        longest: Greatest number of characters.
        marks: Share of texts with marks.
        cells: Share of strips drawn as counter wheels or display cells, one box a digit.
        wear: How much the strips are degraded.
    """

    fonts: tuple[Path, ...]
    longest: int = 20
    marks: float = 0.5
    cells: float = 0.0
    wear: Wear = field(default_factory=lambda: Wear(slant=0.25, elastic=0.012))

    def draw(self, random: np.random.Generator) -> Sample:
        """Renders one strip and takes its picture."""
        path = self.fonts[int(random.integers(len(self.fonts)))]
        segments = "dseg" in path.name.lower() or "segment" in str(path.parent).lower()
        font = load_font(path, int(random.integers(24, 44)))
        if random.random() < self.cells:
            text = random_digits(random, random_length(random, min(self.longest, 10)))
            ink = self._wheels(text, font, random)
            return Sample(photograph(ink, random, self.wear), text, path.name)
        if segments:
            text = random_digits(random, random_length(random, min(self.longest, 10)))
            if len(text) > 2 and random.random() < 0.4:
                at = int(random.integers(1, len(text)))
                text = text[:at] + str(random.choice([".", ":"])) + text[at:]
        else:
            text = random_text(random, self.longest, marks=self.marks)
        ink = self._line(text, font, random, ghosts=segments and random.random() < 0.35)
        ink = warp(ink, random, self.wear)
        ink = with_margins(thicken(ink, random), random, self.wear)
        return Sample(photograph(ink, random, self.wear), text, path.name)

    @staticmethod
    def _line(text: str, font: ImageFont.FreeTypeFont, random: np.random.Generator, *, ghosts: bool) -> Ink:
        """Draws a line of text, `(height, width)`, letterspaced now and then; ghosts are a display's unlit segments."""
        spacing = 0.0
        if random.random() < 0.4:
            spacing = random.uniform(-0.05, 0.25) * font.size
        advances = [font.getlength(character) for character in text]
        width = int(sum(advances) + max(0.0, spacing) * len(text) + font.size * 2)
        image = Image.new("L", (max(width, 8), int(font.size * 2.2)))
        pen = ImageDraw.Draw(image)
        x, y = font.size * 0.6, font.size * 0.4
        if spacing == 0.0 and not ghosts:
            pen.text((x, y), text, fill=255, font=font)
        else:
            for character, advance in zip(text, advances, strict=True):
                pen.text((x, y), character, fill=255, font=font)
                x += advance + spacing
        ink = np.asarray(image)
        if ghosts:
            x = font.size * 0.6
            faint = Image.new("L", image.size)
            pen = ImageDraw.Draw(faint)
            for character, advance in zip(text, advances, strict=True):
                if character.isdigit():
                    pen.text((x, y), "8", fill=int(random.integers(10, 50)), font=font)
                x += advance + spacing
            ink = np.maximum(ink, np.asarray(faint))
        return ink

    @staticmethod
    def _wheels(text: str, font: ImageFont.FreeTypeFont, random: np.random.Generator) -> Ink:
        """Draws one box a digit, `(height, width)`, with the neighbours on each wheel peeping in and its own light."""
        boxes = [font.getbbox(digit) for digit in "0123456789"]
        top, bottom = min(box[1] for box in boxes), max(box[3] for box in boxes)
        tall, wide = int(bottom - top), int(max(box[2] - box[0] for box in boxes))
        height = int(tall * random.uniform(1.08, 1.8))
        width = int(wide * random.uniform(1.1, 1.9))
        window = height - tall
        pitch = int(tall + window * random.uniform(0.4, 1.0))
        edge = int(random.integers(0, 3)) if random.random() < 0.7 else 0
        edge_ink = int(random.integers(60, 256))
        shade = random.uniform(0, 0.35)
        shine = glare(height, width, random) if random.random() < 0.4 else None
        cells = []
        for digit in text:
            image = Image.new("L", (width, height))
            pen = ImageDraw.Draw(image)
            box = font.getbbox(digit)
            x = (width - (box[2] - box[0])) / 2 - box[0] + random.normal(0, 0.03) * width
            y = window / 2 - top + random.normal(0, 0.04) * tall
            pen.text((x, y), digit, fill=255, font=font)
            for step in (-1, 1):  # the digits above and below on the wheel
                other = str((int(digit) + step) % 10)
                pen.text((x, y + step * pitch), other, fill=255, font=font)
            cell = np.asarray(image, np.float32)
            if random.random() < 0.5:
                cell = cell + shade * 255 * np.clip(smooth_field(random, height, width), 0, 1)
            cell = np.clip(cell * random.uniform(0.6, 1.0) + random.uniform(0, shade) * 120, 0, 255).astype(np.uint8)
            if shine is not None:
                cell = np.clip(cell + shine * random.uniform(0.3, 1.0), 0, 255).astype(np.uint8)
            if edge:
                cell[:, :edge] = edge_ink
                cell[:, -edge:] = edge_ink
            cells.append(cell)
        ink = np.concatenate(cells, axis=1)
        margin = int(random.integers(0, max(1, tall // 4)))
        return np.pad(ink, margin, constant_values=int(random.integers(0, 200)) if random.random() < 0.5 else 0)
