"""XML without what makes it dangerous: no entities of its own, no other files, and every element knows its line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from glyphline.training.errors import DataError

_DEEPEST = 200  # levels: PAGE and ALTO have about ten


@dataclass(slots=True)
class Element:
    """An element.

    Attributes:
        tag: Its name without a namespace, as each year's edition of PAGE and ALTO has another.
        attributes: Its attributes, their names without namespaces.
        line: Line of its start tag, from 1.
        text: The characters in it, without those of its children.
        children: Its children.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def all(self, *tags: str) -> Iterator[Element]:
        """Yields the elements below it that have one of the names, in the order of the document."""
        for child in self.children:
            if child.tag in tags:
                yield child
            yield from child.all(*tags)

    def own(self, tag: str) -> list[Element]:
        """Returns its children of this name."""
        return [child for child in self.children if child.tag == tag]


class _RootSeen(Exception):
    """The root element has begun; all that follows does not matter."""


def root_tag(path: Path) -> str:
    """Returns the name of a file's root element, without a namespace, and reads no further.

    Raises:
        DataError: If it is not XML up to there.
    """
    found = ""
    parser = expat.ParserCreate(namespace_separator="}")

    def start(name: str, _: dict[str, str]) -> None:
        nonlocal found
        found = name.rpartition("}")[2]
        raise _RootSeen

    parser.StartElementHandler = start
    try:
        with path.open("rb") as file:
            while block := file.read(4096):
                parser.Parse(block)
            parser.Parse(b"", True)
    except _RootSeen:
        return found
    except expat.ExpatError as error:
        raise DataError(f"{path} is not XML: {error}") from error
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    return found


def read_xml(path: Path) -> Element:
    """Reads an XML file.

    Raises:
        DataError: If it is not well-formed, or defines entities, which could make a small file fill the memory or read
            other files.
    """
    root = Element("", {}, 0)
    open_elements = [root]
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(open_elements) > _DEEPEST:
            raise DataError(f"{path}, line {parser.CurrentLineNumber}: elements are nested more than {_DEEPEST} deep")
        local = {key.rpartition("}")[2]: value for key, value in attributes.items()}
        element = Element(name.rpartition("}")[2], local, parser.CurrentLineNumber)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_: str) -> None:
        open_elements.pop()

    def characters(data: str) -> None:
        open_elements[-1].text += data

    def refuse(*_: object) -> int:
        raise DataError(f"{path}, line {parser.CurrentLineNumber}: XML that defines entities is not read")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.EntityDeclHandler = refuse
    parser.UnparsedEntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    try:
        parser.Parse(path.read_bytes(), True)
    except expat.ExpatError as error:
        raise DataError(f"{path} is not XML: {error}") from error
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    return root.children[0]
