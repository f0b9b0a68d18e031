"""Handwritten words and lines composed of pictures of single letters and digits, with marks and accents drawn."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from glyphline.training.datasets.characters import CharacterSet
from glyphline.training.datasets.compose import join
from glyphline.training.datasets.dice import Dice
from glyphline.training.datasets.lettered import take_picture
from glyphline.training.datasets.marks import ACCENTS, SIGNS, draw_accent, draw_sign
from glyphline.training.datasets.samples import Ink, Sample, ink_box
from glyphline.training.datasets.texts import TextMixture
from glyphline.training.effects.geometry import reshape
from glyphline.training.effects.look import STYLES, Look

SMALL, DROP = 0.62, 0.34
"""Height of an x, and how far descenders reach below the base line; in heights of a capital."""

EXTENTS: dict[str, tuple[float, float]] = {
    # Sets of characters bring every one of them to one size. What a reader tells o from O and p from P by is how high
    # they are and where they stand: (top above the base line, bottom below it), in heights of a capital.
    **dict.fromkeys("acemnorsuvwxz", (SMALL, 0.0)),
    **dict.fromkeys("bdhkl", (1.0, 0.0)),
    "f": (1.0, 0.12),  # some hands let it descend
    "t": (0.86, 0.0),
    "i": (0.88, 0.0),  # with its dot
    "j": (0.88, DROP),
    **dict.fromkeys("gqy", (SMALL, DROP)),
    "p": (SMALL + 0.06, DROP),
}
"""Where letters stand; capitals and digits, which are not named, are as high as a capital."""


def pool(sets: Sequence[CharacterSet]) -> CharacterSet:
    """Makes one set of several; no two of them share a writer."""
    if len(sets) == 1:
        return sets[0]
    writers: list[NDArray[np.int64]] = []
    first = 0
    for one in sets:
        writers.append(one.writers - one.writers.min() + first)
        first = int(writers[-1].max()) + 1
    return CharacterSet(
        "+".join(one.name for one in sets),
        [image for one in sets for image in one.images],
        [label for one in sets for label in one.labels],
        np.concatenate(writers),
    )


@dataclass(frozen=True)
class WrittenStrips:
    """Handwritten text composed of single characters, ink bright on black as in MNIST and EMNIST.

    Attributes:
        characters: The characters.
        texts: What is written. Characters that the set has not, and that cannot be drawn, do not occur.
        touching: Share of strips whose characters touch or overlap.
        distortion: How far each character by itself is slanted, stretched and bent, from 0 to 1.
        look: What befalls the strips.
    """

    characters: CharacterSet
    texts: TextMixture
    touching: float = 0.3
    distortion: float = 0.3
    look: Look = field(default_factory=lambda: STYLES["pen"])
    available: frozenset[str] = field(init=False, repr=False)
    _found: dict[str, NDArray[np.int64]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Indexes the characters."""
        found: dict[str, list[int]] = {}
        for index, label in enumerate(self.characters.labels):
            found.setdefault(label, []).append(index)
        object.__setattr__(self, "_found", {label: np.array(places) for label, places in found.items()})
        accented = {
            made
            for base in found
            for mark in ACCENTS
            if len(made := unicodedata.normalize("NFC", base + mark)) == 1 and (mark != "\u0327" or base in "cC")
        }
        object.__setattr__(self, "available", frozenset(found) | set(SIGNS) | accented | {" "})

    def draw(self, random: np.random.Generator) -> Sample:
        """Composes one strip and takes its picture."""
        dice = Dice(random)
        text = self.texts.draw(dice, self.available)
        ink = self.draw_ink(text, dice)
        return Sample(take_picture(reshape(ink, 1.0, dice, self.look), dice, self.look), text, self.characters.name)

    def draw_ink(self, text: str, dice: Dice) -> Ink:
        """Composes the drawing of `text`, `(height, width)`."""
        tall = dice.whole(18, 36)
        thick = max(1.2, tall * dice.between(0.06, 0.12))
        # Some composed sets, and some hands, make all letters of nearly one height.
        flat = 0.0 if dice.chance(0.55) else dice.unit()
        style = dice.unit()
        if style < self.touching:
            gap, spread = dice.between(-0.08, 0.04), 0.03
        elif style < self.touching + 0.12:
            gap, spread = dice.between(0.25, 0.7), 0.06
        else:
            gap, spread = dice.between(0.04, 0.25), 0.05
        space = dice.between(0.4, 1.0) + max(0.0, gap)
        one_shape = dice.chance(0.5)  # each letter has one shape throughout the strip, as in one hand
        chosen: dict[str, int] = {}
        pieces: list[Ink] = []
        gaps: list[int] = []
        rows: list[int] = []
        drift = dice.normal(0.03)
        pending = 0.0
        for character in text:
            if character == " ":
                pending = space
                continue
            ink, top = self._character(character, tall, thick, flat, chosen if one_shape else {}, dice)
            pieces.append(ink)
            rows.append(top + round((dice.normal(0.025) + drift * len(pieces) / 4) * tall))
            gaps.append(round((pending or gap + dice.normal(spread)) * tall))
            pending = 0.0
        return join(pieces, np.array(gaps, np.int64), np.array(rows, np.int64))

    def _character(
        self, character: str, tall: int, thick: float, flat: float, chosen: dict[str, int], dice: Dice
    ) -> tuple[Ink, int]:
        """Draws one character; returns it and the row of its top, from the top of a capital."""
        if character in self._found:
            return self._letter(character, tall, flat, chosen, dice)
        if character in SIGNS:
            ink = draw_sign(character, tall, thick, dice)
            box = ink_box(ink)
            return ink[box[0] : box[1], box[2] : box[3]], box[0]
        parts = unicodedata.normalize("NFD", character)
        base, mark = parts[0], parts[1]
        ink, top = self._letter(base, tall, flat, chosen, dice)
        if base == "i":
            ink, lost = _without_dot(ink)
            top += lost
        accent = draw_accent(ACCENTS[mark], tall, thick, dice)
        gap = round(tall * dice.between(-0.02, 0.1))
        above = mark != "\u0327"
        side = round((ink.shape[1] - accent.shape[1]) / 2 + dice.normal(0.05) * tall)
        down = -(accent.shape[0] + gap) if above else ink.shape[0] - 1
        left, first = min(0, side), min(0, down)
        height = max(ink.shape[0], down + accent.shape[0]) - first
        width = max(ink.shape[1], side + accent.shape[1]) - left
        canvas = np.zeros((height, width), np.uint8)
        canvas[-first : ink.shape[0] - first, -left : ink.shape[1] - left] = ink
        area = canvas[down - first : down - first + accent.shape[0], side - left : side - left + accent.shape[1]]
        np.maximum(area, accent, out=area)
        return canvas, top + first

    def _letter(self, character: str, tall: int, flat: float, chosen: dict[str, int], dice: Dice) -> tuple[Ink, int]:
        places = self._found[character]
        index = chosen.setdefault(character, int(places[dice.whole(0, len(places))]))
        image = self.characters.images[index]
        top, bottom, left, right = ink_box(image)
        high, low = EXTENTS.get(character, (1.0, 0.0))
        high, low = high + (1.0 - high) * flat, low * (1.0 - flat)
        height = max(5, round((high + low) * tall * (1 + dice.normal(0.05))))
        scale = height / (bottom - top)
        amount = self.distortion
        # A stroke has no width to speak of, and is not made as wide as the letters are high.
        width = max(3, round((right - left) * min(scale, 1.6 * tall / 20) * (1 + dice.normal(0.05 + 0.08 * amount))))
        lean = dice.normal(0.16 * amount) * (bottom - top)
        bend = [dice.normal(0.04 * amount) * (bottom - top) for _ in range(8)]
        out = abs(lean) / 2
        west = (left - out - lean / 2, top, left - out + lean / 2, bottom)
        east = (right + out + lean / 2, bottom, right + out - lean / 2, top)
        quad = [value + by for value, by in zip((*west, *east), bend, strict=True)]
        size = (width + round(2 * out * width / max(1, right - left)), height)
        drawn = Image.fromarray(image).transform(size, Image.Transform.QUAD, quad, Image.Resampling.BILINEAR)
        ink = np.asarray(drawn)
        columns = np.flatnonzero((ink > 40).any(axis=0))
        if columns.size:
            ink = ink[:, columns[0] : columns[-1] + 1]
        return ink, tall - height + round(low * tall)


def _without_dot(ink: Ink) -> tuple[Ink, int]:
    """Takes the dot off an i, where a row without ink parts them; returns what is left, and the rows taken."""
    rows = np.asarray((ink > 60).any(axis=1), np.bool_)
    empty = np.flatnonzero(~rows[: ink.shape[0] // 2])
    cut = int(empty[-1]) + 1 if empty.size and rows[: empty[-1]].any() else 0
    return ink[cut:], cut
