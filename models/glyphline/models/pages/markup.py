"""A tree of an XML file whose elements know their lines, and which bytes of the file they are.

Nothing that makes XML dangerous is read: no entities of a file's own, no other files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from glyphline.models.errors import PageError

__all__ = ["Element", "encoding_of", "read_markup"]

_DEEPEST = 200  # levels: PAGE and ALTO have about ten


@dataclass(slots=True)
class Element:
    """An element.

    Attributes:
        name: Its name as it is written, with its prefix.
        attributes: Its attributes, their names without prefixes.
        line: Line of its start tag, from 1.
        start: Where its start tag begins, in bytes of the file.
        inside: Where its start tag ends.
        last: Where its end tag begins; of an empty element the `/>`.
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


def encoding_of(content: bytes) -> str:
    """Returns how the marks of an XML file are encoded: as in UTF-16, or as in ASCII, like those of all the others."""
    if content[:2] in (b"\xff\xfe", b"<\0"):
        return "utf-16-le"
    if content[:2] in (b"\xfe\xff", b"\0<"):
        return "utf-16-be"
    return "ascii"


def read_markup(content: bytes, name: str) -> Element:
    """Reads an XML file.

    Args:
        content: Its bytes.
        name: Its name, for messages.

    Returns:
        Its root.

    Raises:
        PageError: If it is not well-formed, or defines entities, which could make a small file fill the memory or read
            other files.
    """
    return _Builder(content, name).root()


class _Builder:
    """Makes the tree of what expat tells.

    Expat tells where a tag begins, in any encoding, and not where it ends: that is where the next thing begins.
    So everything in the file has to be told, down to comments.
    """

    def __init__(self, content: bytes, name: str) -> None:
        self._content = content
        self._name = name
        self._closing = "/>".encode(encoding_of(content))
        self._document = Element("", {}, 0, 0)
        self._open: list[tuple[Element, list[str]]] = [(self._document, [])]
        self._begun: Element | None = None  # the start tag that is not known to have ended
        self._ended: Element | None = None  # the end tag likewise
        self._parser = expat.ParserCreate()
        self._parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.DefaultHandlerExpand = self._other
        self._parser.EntityDeclHandler = self._refuse
        self._parser.UnparsedEntityDeclHandler = self._refuse
        self._parser.ExternalEntityRefHandler = self._refuse

    def root(self) -> Element:
        """Reads the file."""
        try:
            self._parser.Parse(self._content, True)
        except expat.ExpatError as error:
            raise PageError(f"{self._name} is not XML: {error}") from error
        except (LookupError, ValueError) as error:  # an encoding that does not exist, or of several bytes a character
            raise PageError(f"{self._name} is in an encoding that is not read: {error}; save it as UTF-8") from error
        self._settle(len(self._content))
        return self._document.children[0]

    def _settle(self, position: int) -> None:
        """Ends the tag before this position."""
        if self._begun is not None:
            self._begun.inside = position
        if self._ended is not None:
            self._ended.end = position
        self._begun = self._ended = None

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._settle(self._parser.CurrentByteIndex)
        if len(self._open) > _DEEPEST:
            raise PageError(f"{self._place()}: elements are nested more than {_DEEPEST} deep")
        local = {key.rpartition(":")[2]: value for key, value in attributes.items() if not key.startswith("xmlns")}
        element = Element(tag, local, self._parser.CurrentLineNumber, self._parser.CurrentByteIndex)
        self._open[-1][0].children.append(element)
        self._open.append((element, []))
        self._begun = element

    def _end(self, _: str) -> None:
        element, texts = self._open.pop()
        element.text = "".join(texts)
        position = self._parser.CurrentByteIndex
        empty = self._begun is element and self._content.endswith(self._closing, element.start, position)
        self._settle(position)
        if empty:  # of `<a/>` the end is told where it ends; of `<a></a>` where its end tag begins
            element.last, element.end = position - len(self._closing), position
        else:
            element.last = position
            self._ended = element

    def _characters(self, data: str) -> None:
        self._settle(self._parser.CurrentByteIndex)
        self._open[-1][1].append(data)

    def _other(self, _: str) -> None:
        self._settle(self._parser.CurrentByteIndex)

    def _refuse(self, *_: object) -> int:
        raise PageError(f"{self._place()}: XML that defines entities is not read; write what they stand for")

    def _place(self) -> str:
        return f"{self._name}, line {self._parser.CurrentLineNumber}"
