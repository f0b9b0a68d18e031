"""Strips composed of single-character images: one writer a strip, from wide apart to touching and overlapping."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from glyphline.training.augment import (
    Wear,
    glare,
    photograph,
    rephotograph,
    thicken,
    warp,
    with_margins,
    with_neighbours,
)
from glyphline.training.datasets.characters import CharacterSet
from glyphline.training.datasets.samples import Grey, Ink, Sample, ink_box
from glyphline.training.datasets.texts import random_digits, random_length, random_text

MARKS = ".,:/-+"


def draw_mark(mark: str, height: int, random: np.random.Generator) -> Ink:
    """Draws a punctuation mark as a pen would, on a line where digits are `height` pixels high.

    Args:
        mark: One of `. , : / - +`.
        height: Height of a digit, in pixels; the drawing is as high, and stands on the same line.
        random: Source of randomness.

    Returns:
        Drawing `(height, width)`; a slash is half as high again, which tells it from a slanting 1.
    """
    scale = 4  # drawn large and shrunk, for smooth edges
    if mark == "/":
        height = round(height * random.uniform(1.3, 1.6))
    tall = height * scale
    wide = int(tall * random.uniform(0.35, 0.6))
    image = Image.new("L", (wide, tall))
    pen = ImageDraw.Draw(image)
    thick = max(3, int(tall * random.uniform(0.07, 0.14)))
    centre = wide / 2

    def jitter(amount: float = 0.04) -> float:
        return float(random.normal(0, amount)) * tall

    def dot(y: float) -> None:
        radius = thick * random.uniform(0.55, 0.9)
        x = centre + jitter(0.02)
        pen.ellipse((x - radius, y - radius * random.uniform(0.7, 1.2), x + radius, y + radius), fill=255)

    def line(*points: float) -> None:
        pen.line(points, fill=255, width=thick, joint="curve")

    base = tall * random.uniform(0.86, 0.97)
    if mark == ".":
        dot(base)
    elif mark == ",":
        if random.random() < 0.5:
            dot(base - thick * 0.3)
        line(centre + thick * 0.3, base - thick * 0.6, centre - thick * random.uniform(0.2, 1.0), base + tall * 0.1)
    elif mark == ":":
        dot(base)
        dot(base - tall * random.uniform(0.35, 0.55))
    elif mark == "/":
        line(wide * 0.1 + jitter(0.02), tall * 0.98, wide * 0.9 + jitter(0.02), tall * 0.04)
    else:
        middle = tall * random.uniform(0.45, 0.62)
        line(wide * 0.08, middle + jitter(0.02), wide * 0.92, middle + jitter(0.02))
        if mark == "+":
            reach = wide * 0.42
            line(centre + jitter(0.02), middle - reach, centre + jitter(0.02), middle + reach)
    return np.asarray(image.resize((max(2, wide // scale), height), Image.Resampling.BOX))


def join(pieces: list[Ink], gaps: NDArray[np.int64], shifts: NDArray[np.int64]) -> Ink:
    """Sets drawings side by side on one canvas; where they overlap, the stronger ink shows.

    Args:
        pieces: Drawings `(height, width)`, each cropped to its columns of ink.
        gaps: Columns between a piece and the one before; negative where they overlap.
        shifts: Rows by which each piece is moved down.

    Returns:
        Drawing `(height, width)`.
    """
    starts: list[int] = []
    position = 0
    for index, piece in enumerate(pieces):
        if index:
            position = max(starts[-1] + 1, position + int(gaps[index]))
        starts.append(position)
        position += piece.shape[1]
    lift = -int(min(0, shifts.min()))
    height = max(piece.shape[0] + int(shift) + lift for piece, shift in zip(pieces, shifts, strict=True))
    width = max(start + piece.shape[1] for start, piece in zip(starts, pieces, strict=True))
    canvas = np.zeros((height, width), np.uint8)
    for piece, start, shift in zip(pieces, starts, shifts, strict=True):
        top = int(shift) + lift
        area = canvas[top : top + piece.shape[0], start : start + piece.shape[1]]
        np.maximum(area, piece, out=area)
    return canvas


@dataclass(frozen=True)
class ComposedStrips:
    """Handwritten strips of single-character images, ink bright on black as in MNIST.

    Attributes:
        characters: The images; only digits are used.
        longest: Greatest number of characters in a strip.
        marks: Share of strips that carry marks, which are drawn with a pen.
        touching: Share of strips whose characters touch or overlap.
        one_writer: Share of strips that keep to one writer where writers are known.
        wear: How much the strips are degraded.
        distortion: How far each character by itself is slanted, tilted and bent, from 0 to 1: a few thousand
            characters then stand for many more hands (Simard, Steinkraus and Platt 2003, "Best Practices for
            Convolutional Neural Networks Applied to Visual Document Analysis").
    """

    characters: CharacterSet
    longest: int = 20
    marks: float = 0.15
    touching: float = 0.4
    one_writer: float = 0.8
    wear: Wear = field(default_factory=Wear)
    distortion: float = 0.0
    _writers: list[dict[str, NDArray[np.int64]]] = field(init=False, repr=False)
    _all: dict[str, NDArray[np.int64]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Indexes the images by writer and by character."""
        writers = [group for group in self.characters.by_writer() if sum(map(len, group.values())) >= 20]
        everyone: dict[str, list[int]] = {}
        for index, label in enumerate(self.characters.labels):
            everyone.setdefault(label, []).append(index)
        object.__setattr__(self, "_writers", writers if len(writers) > 1 else [])
        object.__setattr__(self, "_all", {label: np.array(found) for label, found in everyone.items()})

    def draw(self, random: np.random.Generator) -> Sample:
        """Composes one strip and takes its picture."""
        text = random_text(random, self.longest, marks=self.marks, spaces=False)
        ink = self.draw_ink(text, random)
        ink = warp(ink, random, self.wear)
        ink = with_margins(thicken(ink, random), random, self.wear)
        if random.random() < 0.08:
            ink = with_neighbours(ink, random)
        return Sample(photograph(ink, random, self.wear), text, self.characters.name)

    def draw_ink(self, text: str, random: np.random.Generator) -> Ink:
        """Composes the drawing of `text`, `(height, width)`."""
        group = self._all
        if self._writers and random.random() < self.one_writer:
            own = self._writers[int(random.integers(len(self._writers)))]
            group = {digit: own.get(digit, self._all[digit]) for digit in self._all}
        size = int(random.integers(26, 40))
        crop_columns = random.random() < 0.75
        pieces: list[Ink] = []
        for character in text:
            image = self.characters.images[int(random.choice(group[character]))] if character not in MARKS else None
            pieces.append(
                np.zeros((0, 0), np.uint8) if image is None else self._piece(image, size, crop_columns, random)
            )
        boxes = [ink_box(piece) for piece in pieces if piece.size]
        top, bottom = np.median([box[:2] for box in boxes], axis=0) if boxes else (size / 7, size * 6 / 7)
        rows = np.zeros(len(text))
        for index, character in enumerate(text):
            if character in MARKS:
                pieces[index] = draw_mark(character, max(6, round(bottom - top)), random)
                rows[index] = (top + bottom - pieces[index].shape[0]) / 2
        style = random.random()
        if not crop_columns:  # the boxes of the single images, edge to edge or a little nearer
            centre, spread = random.uniform(-0.2, 0.1), 0.03
        elif style < self.touching:  # touching and overlapping
            centre, spread = random.uniform(-0.1, 0.06), random.uniform(0.0, 0.04)
        elif style < self.touching + 0.15:  # wide apart
            centre, spread = random.uniform(0.35, 1.2), random.uniform(0.0, 0.2)
        else:  # as people write
            centre, spread = random.uniform(0.05, 0.35), random.uniform(0.0, 0.08)
        tall = size * 5 / 7
        gaps = np.round(random.normal(centre, spread, len(pieces)) * tall).astype(np.int64)
        if centre > 0.05:
            gaps = np.maximum(gaps, 1)
        drift = random.normal(0, 0.03, len(pieces)) + np.linspace(0, random.normal(0, 0.1), len(pieces))
        return join(pieces, gaps, np.round(rows + drift * tall).astype(np.int64))

    def _piece(self, image: Grey, size: int, crop_columns: bool, random: np.random.Generator) -> Ink:
        side = max(image.shape)
        scale = size / side * random.uniform(0.88, 1.12)
        wide = max(3, round(image.shape[1] * scale * random.uniform(0.88, 1.12)))
        tall = max(8, round(image.shape[0] * scale))
        ink = np.asarray(Image.fromarray(image).resize((wide, tall), Image.Resampling.BILINEAR))
        if self.distortion > 0:
            amount = self.distortion
            ink = warp(ink, random, Wear(slant=0.4 * amount, rotation=0.4 * amount, elastic=0.1 * amount))
        if not crop_columns:
            return ink
        top, bottom, left, right = ink_box(ink)
        del top, bottom
        return ink[:, left:right]


@dataclass(frozen=True)
class ComposedReadings:
    """Meter readings composed of pictures of single wheels or display cells, all of one meter.

    Attributes:
        characters: Grey pictures of single cells; the writer number stands for the meter.
        longest: Greatest number of digits.
        wear: How much the strips are varied.
    """

    characters: CharacterSet
    longest: int = 9
    wear: Wear = field(default_factory=Wear)
    _meters: list[dict[str, NDArray[np.int64]]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Indexes the cells by meter and digit."""
        object.__setattr__(self, "_meters", self.characters.by_writer())

    def draw(self, random: np.random.Generator) -> Sample:
        """Composes one reading."""
        meter = self._meters[int(random.integers(len(self._meters)))]
        present = sorted(meter)
        text = "".join(
            digit if digit in meter else str(random.choice(present))
            for digit in random_digits(random, random_length(random, self.longest))
        )
        height = int(random.integers(28, 56))
        crop = random.random(4) ** 2 * 0.14 if random.random() < 0.6 else np.zeros(4)
        squeeze = random.uniform(0.8, 1.25)
        gap = int(random.integers(0, 6)) if random.random() < 0.4 else 0
        edge = int(random.integers(0, 256))
        shine = glare(height, 24, random) if random.random() < 0.4 else None
        pieces: list[Grey] = []
        for digit in text:
            cell = self.characters.images[int(random.choice(meter[digit]))]
            tall, wide = cell.shape
            cell = cell[
                int(crop[0] * tall) : tall - int(crop[1] * tall), int(crop[2] * wide) : wide - int(crop[3] * wide)
            ]
            width = max(6, round(cell.shape[1] * height / cell.shape[0] * squeeze))
            piece = np.asarray(Image.fromarray(cell).resize((width, height), Image.Resampling.BILINEAR))
            if random.random() < 0.3:
                piece = np.clip(piece * random.uniform(0.75, 1.2) + random.uniform(-20, 20), 0, 255).astype(np.uint8)
            if shine is not None:
                fitted = np.asarray(Image.fromarray(shine).resize((width, height), Image.Resampling.BILINEAR))
                piece = np.clip(piece + fitted * random.uniform(0.3, 1.0), 0, 255).astype(np.uint8)
            pieces.append(piece)
            if gap:
                pieces.append(np.full((height, gap), edge, np.uint8))
        strip = np.concatenate(pieces, axis=1)
        if random.random() < 0.3:
            margin = int(random.integers(1, height // 3))
            strip = (
                np.pad(strip, margin, constant_values=edge) if random.random() < 0.5 else np.pad(strip, margin, "edge")
            )
        return Sample(rephotograph(strip, random, self.wear), text, self.characters.name)
