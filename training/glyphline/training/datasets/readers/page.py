"""PAGE XML: pages with their lines, as Transkribus, eScriptorium and OCR-D write them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

from glyphline.models.cut import Points
from glyphline.training.datasets.readers.cut import PagePicture, baseline_boxes, find_page
from glyphline.training.datasets.readers.item import LabelledImage
from glyphline.training.datasets.readers.xml import Element, read_xml
from glyphline.training.errors import DataError


def read_page(path: Path, root: Path, cut: str = "polygon") -> Iterator[LabelledImage]:
    """Reads the lines of one file. Lines without text are left out: they are those that nobody has transcribed.

    Args:
        path: The XML file.
        root: Folder that names are relative to.
        cut: `polygon`, or `box` for all of the polygon's box.

    Raises:
        DataError: If it is not PAGE XML, its picture is missing, or a line is nowhere.
    """
    document = read_xml(path)
    pages = document.own("Page")
    if document.tag != "PcGts" or not pages:
        raise DataError(f"{path} is not PAGE XML: its root is {document.tag!r}, not 'PcGts' with a 'Page'")
    name = path.relative_to(root).as_posix()
    for page in pages:
        picture = find_page(path, page.attributes.get("imageFilename", ""))
        size = (_number(page, "imageWidth"), _number(page, "imageHeight"))
        lines = list(page.all("TextLine"))
        baselines = {id(line): _points(line, "Baseline", path) for line in lines}
        known = [points for points in baselines.values() if points]
        for line in lines:
            text = _text(line)
            if not text:
                continue
            outline = _points(line, "Coords", path)
            place = f"{path}, line {line.line}"
            if len(outline) < 3:
                own = baselines[id(line)]
                if not own:
                    raise DataError(f"{place}: a line with neither polygon nor baseline")
                outline = baseline_boxes(known, known.index(own), place)
            elif cut == "box":
                outline = box_of(outline)
            label = line.attributes.get("id", str(line.line))
            yield LabelledImage(f"{name}#{label}", text, PagePicture(picture, outline, size), path, line.line)


def box_of(polygon: Points) -> Points:
    """Returns the corners of a polygon's box."""
    x, y = [point[0] for point in polygon], [point[1] for point in polygon]
    return ((min(x), min(y)), (max(x), max(y)))


def _number(element: Element, name: str) -> float:
    try:
        return float(element.attributes.get(name, "0"))
    except ValueError:
        return 0.0


def _text(line: Element) -> str:
    """A line's own text, its first reading; where it has none, its words'."""
    own = _reading(line)
    if own is None:
        words = [_reading(word) for word in line.own("Word")]
        own = " ".join(word for word in words if word)
    return unicodedata.normalize("NFC", " ".join(own.split("\n")).strip())


def _reading(element: Element) -> str | None:
    readings = sorted(element.own("TextEquiv"), key=lambda each: _number(each, "index"))
    for reading in readings:
        for content in reading.own("Unicode"):
            return content.text
    return None


def _points(line: Element, tag: str, path: Path) -> Points:
    """Points of an element below a line: `points="x,y x,y"`, or children `Point`, as PAGE had them before 2013."""
    for element in line.own(tag):
        stated = element.attributes.get("points")
        try:
            if stated is not None:
                pairs = [pair.split(",") for pair in stated.split()]
                return tuple((float(x), float(y)) for x, y in pairs)
            return tuple((float(each.attributes["x"]), float(each.attributes["y"])) for each in element.own("Point"))
        except (ValueError, KeyError) as error:
            raise DataError(f"{path}, line {element.line}: {tag} has no points 'x,y x,y …': {stated!r}") from error
    return ()
