"""The lines of ALTO XML, as libraries and eScriptorium write it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from glyphline.models.cut import Points
from glyphline.models.errors import PageError
from glyphline.models.pages.line import PageLine, clean, numbers, outline_of
from glyphline.models.pages.markup import Element

__all__ = ["alto_lines"]


def alto_lines(document: Element, name: str) -> Iterator[PageLine]:
    """Yields the lines of a file in its order.

    Args:
        document: Its root.
        name: Its name, for messages.

    Raises:
        PageError: If it measures in another unit than pixels and does not state how large a page is.
    """
    stated = next((each.text.strip() for each in document.all("fileName")), "")
    unit = next((each.text.strip() for each in document.all("MeasurementUnit")), "pixel")
    for page in document.all("Page"):
        width, height = numbers(page, "WIDTH", "HEIGHT") or (0.0, 0.0)
        if unit != "pixel" and min(width, height) <= 0:
            raise PageError(f"{name} measures in {unit} and states no size of the page: lines cannot be found on it")
        elements = list(page.all("TextLine"))
        baselines = [_points(element.attributes.get("BASELINE", "")) for element in elements]
        for element, baseline in zip(elements, baselines, strict=True):
            drawn, lacking = _drawn(element)
            outline, fault = outline_of(drawn, baseline, baselines, lacking)
            label = element.attributes.get("ID", str(element.line))
            yield PageLine(label, element.line, stated, outline, fault, (width, height), _text(element))


def _drawn(line: Element) -> tuple[Points, str]:
    """The line's polygon, else its box; nothing where it has neither, and then what to say of it."""
    lacking = "a line with neither polygon, box nor baseline: draw one"
    for polygon in (each for shape in line.own("Shape") for each in shape.own("Polygon")):
        stated = polygon.attributes.get("POINTS")
        points = _points(stated or "")
        if len(points) > 2:
            return points, ""
        lacking = f"Polygon has no POINTS 'x y x y …' of three corners or more: {stated!r}"
    box = numbers(line, "HPOS", "VPOS", "WIDTH", "HEIGHT")
    if box is None or min(box[2:]) <= 0:
        return (), lacking
    left, top, width, height = box
    return ((left, top), (left + width, top + height)), ""


def _points(stated: str) -> Points:
    """Points of `x y x y …` or `x,y x,y …`; nothing where it is neither (an old BASELINE is one number)."""
    try:
        values = [float(value) for value in stated.replace(",", " ").split()]
    except ValueError:
        return ()
    if len(values) % 2 or not all(map(math.isfinite, values)):
        return ()
    return tuple(zip(values[::2], values[1::2], strict=True))


def _text(line: Element) -> str | None:
    """Words of a line with single spaces between them, and the hyphen at its end."""
    text = ""
    for child in line.own("String", "SP", "HYP"):
        if child.tag == "HYP":
            text = text.rstrip() + child.attributes.get("CONTENT", "-")
        elif text and not text.endswith(" "):
            text += " "
        if child.tag == "String":
            text += child.attributes.get("CONTENT", "")
    return clean(text)
