"""PAGE and ALTO XML: a tree whose elements know which bytes of the file they are, so that it can be changed in place.

Nothing that makes XML dangerous is read: no entities of a file's own, no other files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from glyphline.service.jobs.errors import InputError

__all__ = ["Edit", "Element", "edited", "escape", "read_markup"]

_DEEPEST = 200  # levels: PAGE and ALTO have about ten
_WIDE = (b"\xff\xfe", b"\xfe\xff")


@dataclass(slots=True)
class Element:
    """An element.

    Attributes:
        name: Its name as it is written, with its prefix.
        attributes: Its attributes, their names without prefixes.
        line: Line of its start tag, from 1.
        start: Where its start tag begins, in bytes of the file.
        inside: Where its start tag ends.
        last: Where its end tag begins; that of an empty element is its start tag.
        end: Where its end tag ends.
        text: The characters in it, without those of its children.
        children: Its children.
    """

    name: str
    attributes: dict[str, str]
    line: int
    start: int
    inside: int = 0
    last: int = 0
    end: int = 0
    text: str = ""
    children: list[Element] = field(default_factory=list)

    @property
    def tag(self) -> str:
        """Its name without the prefix, as each year's edition of PAGE and ALTO has another namespace."""
        return self.name.rpartition(":")[2]

    @property
    def prefix(self) -> str:
        """The prefix with its colon, or nothing."""
        return self.name[: len(self.name) - len(self.tag)]

    def all(self, *tags: str) -> Iterator[Element]:
        """Yields the elements below it that have one of the names, in the order of the document."""
        for child in self.children:
            if child.tag in tags:
                yield child
            yield from child.all(*tags)

    def own(self, *tags: str) -> list[Element]:
        """Returns its children of these names."""
        return [child for child in self.children if child.tag in tags]


@dataclass(frozen=True, slots=True)
class Edit:
    """Bytes of a file to be replaced: those from `start` to `end` by `text`, which is plain ASCII."""

    start: int
    end: int
    text: str


def edited(content: bytes, edits: list[Edit]) -> bytes:
    """Applies edits that do not overlap; every other byte stays as it is."""
    parts: list[bytes] = []
    position = 0
    for edit in sorted(edits, key=lambda each: (each.start, each.end)):
        parts += [content[position : edit.start], edit.text.encode("ascii")]
        position = edit.end
    return b"".join([*parts, content[position:]])


def escape(text: str) -> str:
    """Writes a text so that it is right in any encoding, between tags and in attributes."""
    marks = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
    return "".join(
        marks.get(character, character if " " <= character <= "~" else f"&#{max(ord(character), 32)};")
        for character in text  # a control character can't stand in XML in any form: a space does
    )


def read_markup(content: bytes, name: str) -> Element:
    """Reads an XML file.

    Args:
        content: Its bytes, in an encoding whose marks are those of ASCII.
        name: Its name, for messages.

    Raises:
        InputError: If it is not well-formed, is in UTF-16, or defines entities, which could make a small file fill the
            memory or read other files.
    """
    if content.startswith(_WIDE):
        raise InputError(f"{name} is in UTF-16; save it as UTF-8")
    root = Element("", {}, 0, 0)
    opened = [root]
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(opened) > _DEEPEST:
            raise InputError(f"{name}, line {parser.CurrentLineNumber}: elements are nested more than {_DEEPEST} deep")
        local = {key.rpartition(":")[2]: value for key, value in attributes.items()}
        element = Element(tag, local, parser.CurrentLineNumber, parser.CurrentByteIndex)
        element.inside = _tag_end(content, element.start)
        opened[-1].children.append(element)
        opened.append(element)

    def end(_: str) -> None:
        element = opened.pop()
        element.last = parser.CurrentByteIndex
        element.end = element.inside if content[element.inside - 2 : element.inside] == b"/>" else 0
        if not element.end:
            element.end = content.index(b">", element.last) + 1
        else:
            element.last = element.start

    def characters(data: str) -> None:
        opened[-1].text += data

    def refuse(*_: object) -> int:
        raise InputError(f"{name}, line {parser.CurrentLineNumber}: XML that defines entities is not read")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.EntityDeclHandler = refuse
    parser.UnparsedEntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise InputError(f"{name} is not XML: {error}") from error
    return root.children[0]


def _tag_end(content: bytes, start: int) -> int:
    """Finds where a start tag ends; a `>` within an attribute's quotes does not end it."""
    quote = b""
    position = start
    while True:
        character = content[position : position + 1]
        if quote:
            quote = b"" if character == quote else quote
        elif character in (b'"', b"'"):
            quote = character
        elif character == b">":
            return position + 1
        position += 1
