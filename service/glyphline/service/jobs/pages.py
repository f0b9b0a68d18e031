"""The lines of PAGE and ALTO files: where they are on their page, and the same file with their texts filled in."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from glyphline.models.cut import Points, baseline_box
from glyphline.service.jobs.errors import InputError
from glyphline.service.jobs.markup import Edit, Element, edited, escape, read_markup
from glyphline.service.jobs.names import IMAGE_SUFFIXES
from glyphline.service.jobs.storage import is_uri

__all__ = ["Filling", "PageLine", "fill_in", "find_page", "lines_of"]

_ALTO_WORDS = ("String", "SP", "HYP")


@dataclass(frozen=True, slots=True)
class PageLine:
    """A line of a page.

    Attributes:
        label: Its id in the file, or its number.
        stated: What the file says of the page's picture: a name, a path of another machine, or an address.
        outline: Its polygon; with two corners, its box. Empty where it has none and none can be told.
        size: Width and height of the page that it was drawn on; (0, 0) if not stated.
        text: The text that the file has for it, if any.
    """

    label: str
    stated: str
    outline: Points
    size: tuple[float, float]
    text: str | None


@dataclass(frozen=True, slots=True)
class Filling:
    """What was read in a line."""

    text: str
    confidence: float


def lines_of(content: bytes, name: str) -> list[PageLine]:
    """Reads the lines of a file, in its order.

    Raises:
        InputError: If it is neither PAGE nor ALTO, or a line's points are none.
    """
    document = read_markup(content, name)
    if document.tag == "PcGts":
        return [line for page in document.own("Page") for line in _page_lines(page, name)]
    if document.tag == "alto":
        return _alto_lines(document, name)
    raise InputError(f"{name}: neither PAGE nor ALTO XML: its root is {document.tag!r}, not 'PcGts' or 'alto'")


def fill_in(content: bytes, name: str, texts: Mapping[int, Filling]) -> bytes:
    """Returns the file with texts in place of those that its lines had; all else stays byte for byte.

    Args:
        content: The file.
        name: Its name, for messages.
        texts: What was read, by the number of the line; others are left as they are.
    """
    document = read_markup(content, name)
    page = document.tag == "PcGts"
    edits: list[Edit] = []
    for number, line in enumerate(document.all("TextLine")):
        if number in texts:
            edits += _page_edits(line, texts[number]) if page else _alto_edits(line, texts[number])
    return edited(content, edits)


def find_page(xml: str, stated: str) -> str | None:
    """Finds the picture of a page: the one that its file names, or the one with the file's own name.

    Args:
        xml: Path or URI of the XML file.
        stated: What it says of the picture.

    Returns:
        Its path, or None if none is there.
    """
    name = stated.replace("\\", "/").rpartition("/")[2]
    if is_uri(xml):  # asking a storage for every name that could be would be slow
        folder = xml.rpartition("/")[0]
        return f"{folder}/{name}" if name else None
    folder, file = os.path.split(xml)
    stem = file.partition(".")[0]
    bases = dict.fromkeys((PurePosixPath(name).stem if name else stem, os.path.splitext(file)[0], stem))
    names = ([name] if name else []) + [f"{base}{suffix}" for base in bases for suffix in sorted(IMAGE_SUFFIXES)]
    for place in (folder, os.path.join(folder, os.pardir)):  # Transkribus puts the XML into a folder `page`
        for each in names:
            path = os.path.join(place, each)
            if os.path.isfile(path):
                return os.path.normpath(path)
    return None


def _page_lines(page: Element, name: str) -> list[PageLine]:
    size = (_number(page, "imageWidth"), _number(page, "imageHeight"))
    elements = list(page.all("TextLine"))
    baselines = [_page_points(line, "Baseline", name) for line in elements]
    known = [points for points in baselines if points]
    lines = []
    for line, baseline in zip(elements, baselines, strict=True):
        outline = _page_points(line, "Coords", name)
        if len(outline) < 3:
            outline = (baseline_box(known, known.index(baseline)) if baseline else None) or ()
        label = line.attributes.get("id", str(line.line))
        lines.append(PageLine(label, page.attributes.get("imageFilename", ""), outline, size, _page_text(line)))
    return lines


def _page_points(line: Element, tag: str, name: str) -> Points:
    """Points of an element below a line: `points="x,y x,y"`, or children `Point`, as PAGE had them before 2013."""
    for element in line.own(tag):
        stated = element.attributes.get("points")
        try:
            if stated is not None:
                pairs = [pair.split(",") for pair in stated.split()]
                return tuple((float(x), float(y)) for x, y in pairs)
            return tuple((float(each.attributes["x"]), float(each.attributes["y"])) for each in element.own("Point"))
        except (ValueError, KeyError) as error:
            raise InputError(f"{name}, line {element.line}: {tag} has no points 'x,y x,y …': {stated!r}") from error
    return ()


def _page_text(line: Element) -> str | None:
    readings = sorted(line.own("TextEquiv"), key=lambda each: _number(each, "index"))
    for reading in readings:
        for content in reading.own("Unicode"):
            return unicodedata.normalize("NFC", " ".join(content.text.split("\n")).strip()) or None
    return None


def _page_edits(line: Element, filling: Filling) -> list[Edit]:
    """Puts a `TextEquiv` where the schema has it: behind the line's shape and words. Words with other texts go."""
    prefix = line.prefix
    new = (
        f'<{prefix}TextEquiv conf="{filling.confidence:.4f}"><{prefix}Unicode>{escape(filling.text)}</{prefix}Unicode>'
        f"</{prefix}TextEquiv>"
    )
    stale = line.own("TextEquiv") + [word for word in line.own("Word") if any(word.all("TextEquiv"))]
    edits = [Edit(element.start, element.end, "") for element in stale]
    before = line.own("AlternativeImage", "Coords", "Baseline", "Word")
    if before:
        place = before[-1].end
        return [*edits, Edit(place, place, new)]
    return [*edits, *_inserted_first(line, new)]


def _alto_lines(document: Element, name: str) -> list[PageLine]:
    stated = next((each.text.strip() for each in document.all("fileName")), "")
    unit = next((each.text.strip() for each in document.all("MeasurementUnit")), "pixel")
    lines = []
    for page in document.all("Page"):
        size = (_number(page, "WIDTH"), _number(page, "HEIGHT"))
        if unit != "pixel" and 0.0 in size:
            raise InputError(f"{name} measures in {unit} and states no size of the page: lines cannot be found on it")
        elements = list(page.all("TextLine"))
        baselines = [_alto_points(line.attributes.get("BASELINE", "")) for line in elements]
        known = [points for points in baselines if len(points) > 1]
        for line, baseline in zip(elements, baselines, strict=True):
            outline = _alto_outline(line)
            if not outline and len(baseline) > 1:
                outline = baseline_box(known, known.index(baseline)) or ()
            label = line.attributes.get("ID", str(line.line))
            lines.append(PageLine(label, stated, outline, size, _alto_text(line)))
    return lines


def _alto_outline(line: Element) -> Points:
    for polygon in (each for shape in line.own("Shape") for each in shape.own("Polygon")):
        points = _alto_points(polygon.attributes.get("POINTS", ""))
        if len(points) > 2:
            return points
    left, top, width, height = (_number(line, name) for name in ("HPOS", "VPOS", "WIDTH", "HEIGHT"))
    return ((left, top), (left + width, top + height)) if width > 0 and height > 0 else ()


def _alto_points(stated: str) -> Points:
    """Points of `x y x y …` or `x,y x,y …`; nothing where it is neither (an old BASELINE is one number)."""
    try:
        numbers = [float(number) for number in stated.replace(",", " ").split()]
    except ValueError:
        return ()
    return () if len(numbers) % 2 else tuple(zip(numbers[::2], numbers[1::2], strict=True))


def _alto_text(line: Element) -> str | None:
    text = ""
    for child in line.own(*_ALTO_WORDS):
        if child.tag == "String":
            text += (" " if text and not text.endswith(" ") else "") + child.attributes.get("CONTENT", "")
        elif child.tag == "SP" and text and not text.endswith(" "):
            text += " "
        elif child.tag == "HYP":
            text = text.rstrip() + child.attributes.get("CONTENT", "-")
    return unicodedata.normalize("NFC", text.strip()) or None


def _alto_edits(line: Element, filling: Filling) -> list[Edit]:
    """Puts one `String` with the whole line, as eScriptorium does, in place of the line's words."""
    box = "".join(
        f' {name}="{escape(line.attributes[name])}"'
        for name in ("HPOS", "VPOS", "WIDTH", "HEIGHT")
        if name in line.attributes
    )
    new = f'<{line.prefix}String CONTENT="{escape(filling.text)}"{box} WC="{filling.confidence:.4f}"/>'
    words = line.own(*_ALTO_WORDS)
    if words:
        return [Edit(words[0].start, words[0].end, new)] + [Edit(each.start, each.end, "") for each in words[1:]]
    shapes = line.own("Shape")
    if shapes:
        return [Edit(shapes[-1].end, shapes[-1].end, new)]
    return _inserted_first(line, new)


def _inserted_first(line: Element, new: str) -> list[Edit]:
    """Puts something behind the start tag of an element that may be empty."""
    if line.inside == line.end:  # `<TextLine …/>` has to be opened
        return [Edit(line.inside - 2, line.inside, f">{new}</{line.name}>")]
    return [Edit(line.inside, line.inside, new)]


def _number(element: Element, name: str) -> float:
    try:
        return float(element.attributes.get(name, "0"))
    except ValueError:
        return 0.0
