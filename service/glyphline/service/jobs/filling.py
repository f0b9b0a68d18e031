"""PAGE and ALTO files with the texts of their lines filled in, and all else as it was, byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from glyphline.models.pages import Element, encoding_of, line_elements, read_markup

__all__ = ["Filling", "fill_in"]


@dataclass(frozen=True, slots=True)
class Filling:
    """What was read in a line."""

    text: str
    confidence: float


@dataclass(frozen=True, slots=True)
class _Edit:
    """Bytes of a file to be replaced: those from `start` to `end` by `text`, which is plain ASCII."""

    start: int
    end: int
    text: str


def fill_in(content: bytes, name: str, texts: Mapping[int, Filling]) -> bytes:
    """Returns the file with texts in place of those that its lines had; all else stays byte for byte.

    Args:
        content: The file.
        name: Its name, for messages.
        texts: What was read, by the number of the line; others are left as they are.

    Raises:
        PageError: If it is not XML that can be read.
    """
    document = read_markup(content, name)
    edits_of = _page_edits if document.tag == "PcGts" else _alto_edits
    edits = [
        edit
        for number, line in enumerate(line_elements(document))
        if number in texts
        for edit in edits_of(line, texts[number])
    ]
    return _edited(content, edits)


def _edited(content: bytes, edits: list[_Edit]) -> bytes:
    """Applies edits that do not overlap; every other byte stays as it is."""
    encoding = encoding_of(content)
    parts: list[bytes] = []
    position = 0
    for edit in sorted(edits, key=lambda each: (each.start, each.end)):
        parts += [content[position : edit.start], edit.text.encode(encoding)]
        position = edit.end
    return b"".join([*parts, content[position:]])


def _page_edits(line: Element, filling: Filling) -> list[_Edit]:
    """Puts a `TextEquiv` where the schema has it: behind the line's shape and words. Words with other texts go."""
    prefix = line.prefix
    new = (
        f'<{prefix}TextEquiv conf="{filling.confidence:.4f}"><{prefix}Unicode>{_escaped(filling.text)}'
        f"</{prefix}Unicode></{prefix}TextEquiv>"
    )
    stale = line.own("TextEquiv") + [word for word in line.own("Word") if any(word.all("TextEquiv"))]
    edits = [_Edit(element.start, element.end, "") for element in stale]
    before = line.own("AlternativeImage", "Coords", "Baseline", "Word")
    return [*edits, _inserted(before[-1].end, new) if before else _inserted_first(line, new)]


def _alto_edits(line: Element, filling: Filling) -> list[_Edit]:
    """Puts one `String` with the whole line, as eScriptorium does, in place of the line's words."""
    box = "".join(
        f' {name}="{_escaped(line.attributes[name])}"'
        for name in ("HPOS", "VPOS", "WIDTH", "HEIGHT")
        if name in line.attributes
    )
    new = f'<{line.prefix}String CONTENT="{_escaped(filling.text)}"{box} WC="{filling.confidence:.4f}"/>'
    words = line.own("String", "SP", "HYP")
    if words:
        return [_Edit(words[0].start, words[0].end, new)] + [_Edit(each.start, each.end, "") for each in words[1:]]
    shapes = line.own("Shape")
    return [_inserted(shapes[-1].end, new) if shapes else _inserted_first(line, new)]


def _inserted(place: int, new: str) -> _Edit:
    return _Edit(place, place, new)


def _inserted_first(line: Element, new: str) -> _Edit:
    """Puts something behind the start tag of an element that may be empty."""
    if line.inside == line.end:  # `<TextLine …/>` has to be opened
        return _Edit(line.last, line.end, f">{new}</{line.name}>")
    return _inserted(line.inside, new)


def _escaped(text: str) -> str:
    """Writes a text so that it is right in any encoding, between tags and in attributes."""
    marks = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
    return "".join(
        marks.get(character, character if " " <= character <= "~" else f"&#{max(ord(character), 32)};")
        for character in text  # a control character can't stand in XML in any form: a space does
    )
