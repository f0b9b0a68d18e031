"""Marks and accents as a pen draws them: what sets of single characters do not have."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from glyphline.training.datasets.dice import Dice
from glyphline.training.datasets.samples import Ink

SIGNS = ".,:;!?'’\"()/-–+=_*"
"""Marks that can be drawn."""

ACCENTS = {"\u0300": "grave", "\u0301": "acute", "\u0302": "circumflex", "\u0308": "diaeresis", "\u0327": "cedilla"}
"""Accents that can be drawn, by their combining characters."""

_SCALE = 4  # drawn large and shrunk, for smooth edges


class _Pen:
    """Draws in units of a capital's height: y = 0 is its top and 1 the base line, x = 0 the left edge."""

    def __init__(self, width: float, height: float, tall: int, thick: float, dice: Dice) -> None:
        self.unit = tall * _SCALE
        self.image = Image.new("L", (max(4, round(width * self.unit)), max(4, round(height * self.unit))))
        self.draw = ImageDraw.Draw(self.image)
        self.thick = max(3, round(thick * _SCALE))
        self.dice = dice

    def at(self, x: float, y: float) -> tuple[float, float]:
        return (x + self.dice.normal(0.012)) * self.unit, (y + self.dice.normal(0.012)) * self.unit

    def dot(self, x: float, y: float) -> None:
        place, radius = self.at(x, y), self.thick * self.dice.between(0.5, 0.85)
        self.draw.ellipse((place[0] - radius, place[1] - radius, place[0] + radius, place[1] + radius), fill=255)

    def line(self, *points: tuple[float, float]) -> None:
        self.draw.line([self.at(*point) for point in points], fill=255, width=self.thick, joint="curve")

    def arc(self, box: tuple[float, float, float, float], start: float, end: float) -> None:
        sides = tuple(value * self.unit for value in box)
        self.draw.arc(sides, start, end, fill=255, width=self.thick)

    def ink(self) -> Ink:
        size = (max(2, self.image.width // _SCALE), max(2, self.image.height // _SCALE))
        return np.asarray(self.image.resize(size, Image.Resampling.BOX))


_DOTS = {".": (0.93,), ":": (0.93, 0.52), ";": (0.52,), "!": (0.93,), "?": (0.93,)}
"""Rows of the dots of each mark, from the top of a capital."""

_STROKES: dict[str, tuple[tuple[tuple[float, float], ...], ...]] = {
    ",": (((0.03, 0.93), (-0.06, 1.13)),),
    ";": (((0.03, 0.93), (-0.06, 1.13)),),
    "!": (((0.02, 0.05), (0.0, 0.68)),),
    "?": (((0.02, 0.46), (0.0, 0.7)),),
    "'": (((0.03, 0.02), (-0.02, 0.24)),),
    "’": (((0.03, 0.02), (-0.02, 0.24)),),
    '"': (((-0.08, 0.02), (-0.1, 0.24)), ((0.1, 0.02), (0.08, 0.24))),
    "/": (((-0.19, 1.15), (0.19, 0.0)),),
    "-": (((-0.19, 0.58), (0.19, 0.58)),),
    "–": (((-0.28, 0.58), (0.28, 0.58)),),
    "+": (((-0.19, 0.58), (0.19, 0.58)), ((0.0, 0.36), (0.0, 0.8))),
    "=": (((-0.19, 0.49), (0.19, 0.49)), ((-0.19, 0.67), (0.19, 0.67))),
    "_": (((-0.25, 1.05), (0.25, 1.05)),),
    "*": (((-0.16, 0.25), (0.16, 0.25)), ((-0.1, 0.13), (0.1, 0.37)), ((0.1, 0.13), (-0.1, 0.37))),
}
"""Strokes of each mark: points, from the middle of its width and the top of a capital."""

_WIDTHS = {"'": 0.2, "’": 0.2, ".": 0.25, ",": 0.25, ":": 0.25, ";": 0.25, "!": 0.22, "(": 0.32, ")": 0.32, "–": 0.66}


def draw_sign(sign: str, tall: int, thick: float, dice: Dice) -> Ink:
    """Draws a mark.

    Args:
        sign: One of `SIGNS`.
        tall: Height of a capital, in pixels.
        thick: Width of the pen, in pixels.
        dice: Source of randomness.

    Returns:
        Drawing `(height, width)`, whose top is that of a capital; it reaches below the base line.
    """
    width = _WIDTHS.get(sign, 0.5) * dice.between(0.95, 1.2)
    pen = _Pen(width, 1.35, tall, thick, dice)
    centre = width / 2
    for row in _DOTS.get(sign, ()):
        pen.dot(centre, row + dice.normal(0.02))
    rise = dice.normal(0.03) if sign in "-–+=" else 0.0
    for stroke in _STROKES.get(sign, ()):
        pen.line(*((centre + x, y + rise) for x, y in stroke))
    if sign == "?":
        pen.arc((0.08, 0.04, width - 0.08, 0.48), 180, 80)
    elif sign == "(":
        pen.arc((0.06, -0.02, width * 2, 1.2), 125, 235)
    elif sign == ")":
        pen.arc((-width, -0.02, width - 0.06, 1.2), 305, 55)
    return pen.ink()


def draw_accent(name: str, tall: int, thick: float, dice: Dice) -> Ink:
    """Draws an accent.

    Args:
        name: A value of `ACCENTS`.
        tall: Height of a capital, in pixels.
        thick: Width of the pen, in pixels.
        dice: Source of randomness.

    Returns:
        Drawing `(height, width)`, cropped to about its box.
    """
    if name == "cedilla":
        pen = _Pen(0.3, 0.32, tall, thick, dice)
        pen.line((0.15, 0.02), (0.2, 0.12), (0.08, 0.24))
        return pen.ink()
    pen = _Pen(0.42, 0.2, tall, thick, dice)
    if name == "diaeresis" and dice.chance(0.8):
        pen.dot(0.11, 0.1)
        pen.dot(0.31, 0.1)
    elif name == "diaeresis":  # two strokes, as hurried hands have them
        pen.line((0.12, 0.02), (0.1, 0.17))
        pen.line((0.32, 0.02), (0.3, 0.17))
    elif name == "acute":
        pen.line((0.3, 0.02), (0.12, 0.17))
    elif name == "grave":
        pen.line((0.12, 0.02), (0.3, 0.17))
    else:
        pen.line((0.08, 0.17), (0.21, 0.03), (0.34, 0.17))
    return pen.ink()
