"""The lines of PAGE XML, as Transkribus, eScriptorium and OCR-D write it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from glyphline.models.cut import Points
from glyphline.models.errors import PageError
from glyphline.models.pages.line import PageLine, clean, numbers, outline_of
from glyphline.models.pages.markup import Element

__all__ = ["page_lines"]


def page_lines(document: Element, name: str) -> Iterator[PageLine]:
    """Yields the lines of a file in its order.

    Args:
        document: Its root.
        name: Its name, for messages.

    Raises:
        PageError: If it has no page, or something's points are none.
    """
    pages = list(document.all("Page"))
    if not pages:
        raise PageError(f"{name} is not PAGE XML: its root is 'PcGts', but there is no 'Page' in it")
    for page in pages:
        stated = page.attributes.get("imageFilename", "")
        width, height = numbers(page, "imageWidth", "imageHeight") or (0.0, 0.0)
        elements = list(page.all("TextLine"))
        baselines = [_points(element, "Baseline", name) for element in elements]
        for element, baseline in zip(elements, baselines, strict=True):
            polygon = _points(element, "Coords", name)
            outline, fault = outline_of(
                polygon if len(polygon) > 2 else (),
                baseline,
                baselines,
                "a line with neither polygon nor baseline: draw one",
            )
            label = element.attributes.get("id", str(element.line))
            yield PageLine(label, element.line, stated, outline, fault, (width, height), _text(element))


def _text(line: Element) -> str | None:
    """A line's own text, its first reading; where it has none, its words'."""
    own = _reading(line)
    if own is None:
        words = [_reading(word) for word in line.own("Word")]
        own = " ".join(word for word in words if word)
    return clean(own)


def _reading(element: Element) -> str | None:
    for reading in sorted(element.own("TextEquiv"), key=lambda each: numbers(each, "index") or (0.0,)):
        for content in reading.own("Unicode"):
            return content.text
    return None


def _points(line: Element, tag: str, name: str) -> Points:
    """Points of an element below a line: `points="x,y x,y"`, or children `Point`, as PAGE had them before 2013."""
    for element in line.own(tag):
        stated = element.attributes.get("points")
        try:
            if stated is None:
                points = tuple(
                    (float(each.attributes["x"]), float(each.attributes["y"])) for each in element.own("Point")
                )
            else:
                points = tuple((float(x), float(y)) for x, y in (pair.split(",") for pair in stated.split()))
            if not all(map(math.isfinite, (value for point in points for value in point))):
                raise ValueError
        except (ValueError, KeyError) as error:
            raise PageError(f"{name}, line {element.line}: {tag} has no points 'x,y x,y …': {stated!r}") from error
        return points
    return ()
