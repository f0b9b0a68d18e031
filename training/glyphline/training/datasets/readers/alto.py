"""ALTO XML: pages with their lines, as libraries and eScriptorium write them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

from glyphline.models.cut import Points
from glyphline.training.datasets.readers.cut import PagePicture, baseline_boxes, find_page
from glyphline.training.datasets.readers.item import LabelledImage
from glyphline.training.datasets.readers.page import box_of
from glyphline.training.datasets.readers.xml import Element, read_xml
from glyphline.training.errors import DataError


def read_alto(path: Path, root: Path, cut: str = "polygon") -> Iterator[LabelledImage]:
    """Reads the lines of one file. Lines without text are left out: they are those that nobody has transcribed.

    Args:
        path: The XML file.
        root: Folder that names are relative to.
        cut: `polygon`, or `box` for the line's box.

    Raises:
        DataError: If it is not ALTO XML, its picture is missing, or a line is nowhere.
    """
    document = read_xml(path)
    if document.tag != "alto":
        raise DataError(f"{path} is not ALTO XML: its root is {document.tag!r}, not 'alto'")
    name = path.relative_to(root).as_posix()
    picture = find_page(path, next((each.text.strip() for each in document.all("fileName")), ""))
    unit = next((each.text.strip() for each in document.all("MeasurementUnit")), "pixel")
    for page in document.all("Page"):
        stated = _numbers(page, ("WIDTH", "HEIGHT"))
        size = (0.0, 0.0) if stated is None else (stated[0], stated[1])
        if unit != "pixel" and 0.0 in size:
            raise DataError(f"{path} measures in {unit} and states no size of the page: lines cannot be found on it")
        lines = list(page.all("TextLine"))
        baselines = {id(line): _points(line.attributes.get("BASELINE", "")) for line in lines}
        known = [points for points in baselines.values() if len(points) > 1]
        for line in lines:
            text = _text(line)
            if not text:
                continue
            place = f"{path}, line {line.line}"
            outline = _outline(line, cut, place)
            if not outline:
                own = baselines[id(line)]
                if len(own) < 2:
                    raise DataError(f"{place}: a line with neither polygon, box nor baseline")
                outline = baseline_boxes(known, known.index(own), place)
            label = line.attributes.get("ID", str(line.line))
            yield LabelledImage(f"{name}#{label}", text, PagePicture(picture, outline, size), path, line.line)


def _text(line: Element) -> str:
    """Words of a line with single spaces between them, and the hyphen at its end."""
    text = ""
    for child in line.children:
        if child.tag == "String":
            text += (" " if text and not text.endswith(" ") else "") + child.attributes.get("CONTENT", "")
        elif child.tag == "SP" and text and not text.endswith(" "):
            text += " "
        elif child.tag == "HYP":
            text = text.rstrip() + child.attributes.get("CONTENT", "-")
    return unicodedata.normalize("NFC", text.strip())


def _outline(line: Element, cut: str, place: str) -> Points:
    """The line's polygon or box; nothing where it has neither."""
    for polygon in (each for shape in line.own("Shape") for each in shape.own("Polygon")):
        points = _points(polygon.attributes.get("POINTS", ""))
        if len(points) > 2:
            return points if cut == "polygon" else box_of(points)
        raise DataError(f"{place}: Polygon has no POINTS 'x y x y …': {polygon.attributes.get('POINTS')!r}")
    box = _numbers(line, ("HPOS", "VPOS", "WIDTH", "HEIGHT"))
    if box is None or min(box[2:]) <= 0:
        return ()
    left, top, width, height = box
    return ((left, top), (left + width, top + height))


def _points(stated: str) -> Points:
    """Points of `x y x y …` or `x,y x,y …`; nothing where it is neither (an old BASELINE is one number)."""
    try:
        numbers = [float(number) for number in stated.replace(",", " ").split()]
    except ValueError:
        return ()
    if len(numbers) % 2:
        return ()
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


def _numbers(element: Element, names: tuple[str, ...]) -> tuple[float, ...] | None:
    try:
        return tuple(float(element.attributes[name]) for name in names)
    except (KeyError, ValueError):
        return None
