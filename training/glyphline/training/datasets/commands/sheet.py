"""Contact sheets: strips with a line of text beneath each, section by section, as one picture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from glyphline.training.datasets.samples import Grey

WIDTH = 1600
"""Pixels of a sheet."""

_GAP, _CAPTION, _TITLE = 10, 18, 26
_TALLEST = 40_000  # pixels: no viewer shows more


@dataclass(frozen=True, slots=True)
class Shown:
    """A strip on a sheet.

    Attributes:
        pixels: Grey levels `(height, width)`.
        caption: What stands beneath it.
    """

    pixels: Grey
    caption: str


@dataclass(frozen=True, slots=True)
class Section:
    """Strips beneath a title.

    Attributes:
        title: The title.
        strips: The strips, set side by side as far as they fit.
    """

    title: str
    strips: Sequence[Shown]


def draw_sheet(sections: Sequence[Section], note: str = "") -> Image.Image:
    """Draws a sheet.

    Args:
        sections: What it shows.
        note: What stands at the top, above all of them.

    Returns:
        A picture `WIDTH` wide and as high as it has to be.
    """
    places: list[tuple[int, int, Image.Image, list[str]]] = []
    titles: list[tuple[int, str]] = []
    notes: list[tuple[int, str]] = []
    y = _GAP
    for line in wrap(note, _font(13), WIDTH - 2 * _GAP):
        notes.append((y, line))
        y += _CAPTION
    for section in sections:
        y += _GAP if notes or titles else 0
        for line in wrap(section.title, _font(16), WIDTH - 2 * _GAP):
            titles.append((y, line))
            y += _TITLE
        x, tall = _GAP, 0
        for shown in section.strips:
            strip = Image.fromarray(shown.pixels)
            if strip.width > WIDTH - 2 * _GAP:
                strip = strip.resize((WIDTH - 2 * _GAP, max(1, strip.height * (WIDTH - 2 * _GAP) // strip.width)))
            caption = wrap(shown.caption, _font(13), max(strip.width, 90))
            wide = max([strip.width, *(round(_font(13).getlength(line)) for line in caption)])
            if x > _GAP and x + wide > WIDTH - _GAP:
                x, y, tall = _GAP, y + tall + _GAP, 0
            places.append((x, y, strip, caption))
            x, tall = x + wide + _GAP, max(tall, strip.height + _CAPTION * len(caption))
        y += tall + _GAP
    sheet = Image.new("RGB", (WIDTH, min(y, _TALLEST)), "#f4f4f2")
    pen = ImageDraw.Draw(sheet)
    for top, line in notes:
        pen.text((_GAP, top), line, fill="#444444", font=_font(13))
    for top, title in titles:
        pen.text((_GAP, top), title, fill="#1a3d6d", font=_font(16))
    for left, top, strip, caption in places:
        sheet.paste(strip, (left, top))
        for number, line in enumerate(caption):
            below = top + strip.height + 1 + number * _CAPTION
            pen.text((left, below), line, fill="#444444", font=_font(13))
    return sheet


def wrap(text: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: int) -> list[str]:
    """Breaks a text into lines that fit: at spaces, and within words only where one alone is too wide.

    Args:
        text: The text; all of it is kept but the spaces that lines end with.
        font: What it is drawn with.
        width: Pixels that a line may take.
    """
    lines: list[str] = []
    line = ""
    for word in re.findall(r"\S+\s*|\s+", text):
        if line and font.getlength((line + word).rstrip()) > width:
            lines.append(line)
            line = ""
        line += word
        while len(line) > 1 and font.getlength(line.rstrip()) > width:
            fits = max(1, next(n for n in range(len(line), -1, -1) if n < 2 or font.getlength(line[:n]) <= width))
            lines.append(line[:fits])
            line = line[fits:]
    return [each.rstrip() for each in [*lines, line] if each.strip()]


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """A font with Latin, Greek, Cyrillic and more, where matplotlib brings it along; else Pillow's own."""
    try:
        import matplotlib as mpl  # noqa: PLC0415  (of the extra `train`)

        return ImageFont.truetype(str(Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), size)
    except (ModuleNotFoundError, OSError):
        return ImageFont.load_default(size)
