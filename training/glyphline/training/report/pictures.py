"""Strips as they were read: the picture, where the model looked for each character, and where it went wrong."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image

from glyphline.training.datasets.samples import Grey
from glyphline.training.report.comparison import COMPARISONS
from glyphline.training.report.measure import Line
from glyphline.training.report.statistics import Pair, align

SYMBOL_WIDTH = 0.18
"""Room that a symbol takes below a picture, in heights of the picture."""
_TALLEST = 64
_SPACE = "␣"


@dataclass(frozen=True, slots=True)
class Mark:
    """One symbol over the picture.

    Attributes:
        left: Left edge in pixels of the picture.
        right: Right edge.
        text: The symbol, a space made visible.
        confidence: How sure the model was of it.
        kind: `right`, `wrong`, or `ignored` where it is not compared.
        row: 0, or 1 where the symbol stands below the first row for want of room.
    """

    left: float
    right: float
    text: str
    confidence: float
    kind: str
    row: int


@dataclass(frozen=True, slots=True)
class Picture:
    """A strip with what was read in it.

    Attributes:
        source: Where it comes from.
        width: Of the picture in pixels.
        height: Of the picture.
        data: The picture as a `data:` address.
        marks: The symbols that have a place.
        pairs: Truth and reading side by side.
        confidence: Of the reading.
        text: The whole reading, where only a part of it is compared.
        refused: Why it was not read, empty where it was.
    """

    source: str
    width: int
    height: int
    data: str
    marks: tuple[Mark, ...]
    pairs: tuple[Pair, ...]
    confidence: float
    text: str
    refused: str

    @property
    def rows(self) -> int:
        """Rows of symbols below the picture."""
        return max((mark.row for mark in self.marks), default=0) + 1


def encode_picture(pixels: Grey) -> tuple[str, int, int]:
    """Returns a picture as a `data:` address, brought to a modest height, with its width and height."""
    picture = Image.fromarray(pixels)
    if picture.height > _TALLEST:
        size = (max(1, round(picture.width * _TALLEST / picture.height)), _TALLEST)
        picture = picture.resize(size, Image.Resampling.BILINEAR)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode(), picture.width, picture.height


def visible(text: str) -> str:
    """Makes spaces visible."""
    return text.replace(" ", _SPACE)


def token_kinds(line: Line, compare: str) -> list[str]:
    """Tells of each symbol of a reading whether it is right, by the alignment of the texts.

    Args:
        line: The line, read with token details.
        compare: What of the texts is compared.

    Returns:
        `right`, `wrong` or `ignored` for each token.
    """
    fates = iter([truth == read for truth, read in align(line.truth, line.read) if read])
    kinds = []
    for token in line.tokens:
        characters = COMPARISONS[compare](token.text)
        # A mark that composes with the symbol before has no character of its own, hence the default.
        correct = [next(fates, True) for _ in characters]
        kinds.append("ignored" if not characters else "right" if all(correct) else "wrong")
    return kinds


def draw_line(line: Line, compare: str) -> Picture:
    """Prepares a line to be drawn."""
    data, width, height = encode_picture(line.sample.pixels)
    scale = height / line.sample.pixels.shape[0]
    marks: list[Mark] = []
    free = [-math.inf, -math.inf]  # where each row of symbols ends
    for token, kind in zip(line.tokens, token_kinds(line, compare), strict=True):
        if token.span is None:
            continue
        left, right = token.span[0] * scale, token.span[1] * scale
        text, half = visible(token.text), len(token.text) * SYMBOL_WIDTH * height / 2
        row = 0 if (left + right) / 2 - half >= free[0] or free[1] > free[0] else 1
        free[row] = (left + right) / 2 + half
        marks.append(Mark(left, right, text, token.confidence, kind, row))
    pairs = tuple((visible(truth), visible(read)) for truth, read in align(line.truth, line.read))
    whole = line.text if line.text != line.read else ""
    source = line.sample.source
    return Picture(source, width, height, data, tuple(marks), pairs, line.confidence, whole, line.refused)


def choose_worst(lines: Sequence[Line], most: int) -> tuple[list[Line], list[Line]]:
    """Chooses the mistakes to show.

    Args:
        lines: All lines of a set.
        most: Greatest number of each kind.

    Returns:
        The most confident mistakes, surest first, and of the others those with the most edits for their length.
    """
    wrong = sorted((line for line in lines if not line.counts.exact), key=lambda line: -line.confidence)
    sure, others = wrong[:most], wrong[most:]
    far = sorted(others, key=lambda line: -line.counts.edits / max(1, line.counts.reference_characters))
    return sure, far[: most // 2]
