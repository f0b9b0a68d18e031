"""Fonts as ready-made glyphs: each is drawn once, and a line of text is set from the drawings."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from glyphline.training.datasets.samples import Ink
from glyphline.training.errors import DataError

_TELLING = "aegrdbtn"
_SAME_SHAPE = 0.1  # mean difference of coverage, up to which a small letter is a capital drawn small


def covered(path: Path) -> frozenset[int]:
    """Returns the code points that a font has glyphs for, by its table `cmap`.

    Raises:
        DataError: If it is no font that can be read.
    """
    return _tables(path)[0]


@lru_cache(maxsize=4096)
def _tables(path: Path) -> tuple[frozenset[int], bool]:
    """Code points of a font, and whether it has a table `kern`, which alone Pillow's plain layout knows."""
    from fontTools.ttLib import TTFont, TTLibError  # noqa: PLC0415  (of the extra `train`)

    logging.getLogger("fontTools").setLevel(logging.ERROR)  # it tells of bytes that no one needs
    try:
        with TTFont(path, lazy=True, fontNumber=0) as font:
            return frozenset(font.getBestCmap() or ()), "kern" in font
    except (TTLibError, OSError, AssertionError) as error:
        raise DataError(f"{path} is no font that can be read: {error}") from error


@dataclass(frozen=True, slots=True)
class Glyph:
    """A character as a font draws it.

    Attributes:
        ink: Drawing `(height, width)`, cropped to its box; of no size where nothing is drawn, as for a space.
        left: Column of the box's left edge, from the pen's place.
        top: Row of its top edge, from the base line; negative above it.
        advance: How far the pen goes on, in pixels.
    """

    ink: Ink
    left: int
    top: int
    advance: float


class Face:
    """A font at one size, whose glyphs are drawn when they are first wanted.

    Attributes:
        path: The font file.
        size: Its size in pixels.
        characters: Characters that it can write, with the space.
    """

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.size = size
        points, self._kerned = _tables(path)
        self.characters = frozenset(map(chr, points)) | {" "}
        self._font = ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)
        self._glyphs: dict[str, Glyph] = {}
        self._kerns: dict[str, float] = {}
        self._unicase: bool | None = None

    def glyph(self, character: str) -> Glyph:
        """Returns a character's drawing."""
        found = self._glyphs.get(character)
        if found is None:
            left, top, right, bottom = (int(value) for value in self._font.getbbox(character, anchor="ls"))
            ink = np.zeros((max(0, bottom - top), max(0, right - left)), np.uint8)
            if ink.size:
                image = Image.new("L", (ink.shape[1], ink.shape[0]))
                ImageDraw.Draw(image).text((-left, -top), character, fill=255, font=self._font, anchor="ls")
                ink = np.asarray(image)
            found = self._glyphs[character] = Glyph(ink, left, top, float(self._font.getlength(character)))
        return found

    def kern(self, pair: str) -> float:
        """Returns by how much two characters are nearer than their advances say; negative where they are."""
        if not self._kerned:
            return 0.0
        found = self._kerns.get(pair)
        if found is None:
            found = self._font.getlength(pair) - self.glyph(pair[0]).advance - self.glyph(pair[1]).advance
            self._kerns[pair] = found = float(found)
        return found

    @property
    def unicase(self) -> bool:
        """Whether small letters are drawn as capitals, of the same size or smaller: a text is then one of capitals."""
        if self._unicase is None:
            both = [c for c in _TELLING if {c, c.upper()} <= self.characters]
            alike = [_difference(self.glyph(c).ink, self.glyph(c.upper()).ink) < _SAME_SHAPE for c in both]
            self._unicase = not both or sum(alike) * 2 > len(alike) or self._is_of_one_height()
        return self._unicase

    def _is_of_one_height(self) -> bool:
        """Whether small letters are as high as each other and none goes below the line, as capitals are."""
        if not set("aenrsbdhklgpqy") <= self.characters:
            return False
        low, high = (np.median([-self.glyph(c).top for c in letters]) for letters in ("aenrs", "bdhkl"))
        depth = np.median([self.glyph(c).top + self.glyph(c).ink.shape[0] for c in "gpqy"])
        return bool(low > 0.88 * high and depth < 0.1 * self.size)


def _difference(first: Ink, second: Ink) -> float:
    """Mean difference of two drawings when they are brought to one size, from 0 to 1."""
    if not (first.size and second.size):
        return 0.0 if first.size == second.size else 1.0
    one, other = (
        np.asarray(Image.fromarray(ink).resize((16, 16), Image.Resampling.BOX), np.float32) for ink in (first, second)
    )
    return float(np.abs(one - other).mean()) / 255


@lru_cache(maxsize=2048)
def load_face(path: Path, size: int) -> Face:
    """Opens a font at a size, once. Those used last are kept; the glyphs of a thousand are some 60 MB."""
    return Face(path, size)


def set_line(
    text: str,
    faces: Sequence[Face],
    spacing: float = 0.0,
    word_space: float = 1.0,
    rises: Sequence[float] = (),
) -> Ink:
    """Sets a line of text.

    Args:
        text: In the order in which it is drawn, from left to right.
        faces: The face of each character; one for all of them is enough.
        spacing: What is added to each advance, in pixels; negative where letters are set tight.
        word_space: Factor of the width of a space.
        rises: How far each character stands above the base line, in pixels; none where nothing is given.

    Returns:
        Drawing `(height, width)`, with one row and column around the ink; it stands as high as its ink does.
    """
    placed: list[tuple[Glyph, int, int]] = []
    pen = 0.0
    before = ""
    one = faces[0] if len(faces) == 1 else None
    for index, character in enumerate(text):
        face = one or faces[index]
        glyph = face.glyph(character)
        if before and spacing == 0 and one is not None:
            pen += face.kern(before + character)
        if glyph.ink.size:
            rise = round(rises[index]) if rises else 0
            placed.append((glyph, round(pen) + glyph.left, glyph.top - rise))
        pen += glyph.advance * (word_space if character == " " else 1.0) + spacing
        before = character
    if not placed:
        return np.zeros((max(8, faces[0].size), max(8, round(pen))), np.uint8)
    left = min(x for _, x, _ in placed) - 1
    top = min(y for _, _, y in placed) - 1
    right = max(x + glyph.ink.shape[1] for glyph, x, _ in placed) + 1
    bottom = max(y + glyph.ink.shape[0] for glyph, _, y in placed) + 1
    canvas = np.zeros((bottom - top, right - left), np.uint8)
    for glyph, x, y in placed:
        tall, wide = glyph.ink.shape
        area = canvas[y - top : y - top + tall, x - left : x - left + wide]
        np.maximum(area, glyph.ink, out=area)
    return canvas
