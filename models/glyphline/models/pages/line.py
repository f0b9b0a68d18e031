"""A line of a page, and what both formats need to tell where it is."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from glyphline.models.cut import Points, baseline_box
from glyphline.models.pages.markup import Element

__all__ = ["PageLine", "clean", "numbers", "outline_of"]


@dataclass(frozen=True, slots=True)
class PageLine:
    """A line of a page.

    Attributes:
        label: Its id in the file, or the line there where it has none.
        line: Line of the file at which it begins, from 1.
        stated: What the file says of the page's picture: a name, a path of another machine, or an address.
        outline: Its polygon; with two corners, its box. Empty where it has none and none can be told.
        fault: Why it has no outline, and what to do; empty where it has one.
        size: Width and height of the page that it was drawn on; (0, 0) if not stated.
        text: The text that the file has for it, in normal form C; None where it has none.
    """

    label: str
    line: int
    stated: str
    outline: Points
    fault: str
    size: tuple[float, float]
    text: str | None


def outline_of(drawn: Points, baseline: Points, baselines: Sequence[Points], lacking: str) -> tuple[Points, str]:
    """Tells where a line is: where it was drawn, else around its baseline.

    Args:
        drawn: Its polygon or box; empty if it has none.
        baseline: Its baseline; with fewer than two points it is none.
        baselines: Those of all lines of the page, which tell how high a line is.
        lacking: What to say if it has neither.

    Returns:
        Its outline, and why it has none: one of both is empty.
    """
    if drawn:
        return drawn, ""
    if len(baseline) < 2:
        return (), lacking
    known = [points for points in baselines if len(points) > 1]
    box = baseline_box(known, known.index(baseline))
    if box is None:
        return (), "a line with a baseline alone, and no other line to tell how high it is: draw its polygon"
    return box, ""


def numbers(element: Element, *names: str) -> tuple[float, ...] | None:
    """Returns the values of attributes; None where one is missing or no number."""
    try:
        values = tuple(float(element.attributes[name]) for name in names)
    except (KeyError, ValueError):
        return None
    return values if all(map(math.isfinite, values)) else None


def clean(text: str) -> str | None:
    """Returns a line's text on one line and in normal form C; None where nothing is left."""
    return unicodedata.normalize("NFC", " ".join(text.split("\n")).strip()) or None
