"""The lines of a file, whichever of the two formats it has."""

from __future__ import annotations

from glyphline.models.errors import PageError
from glyphline.models.pages.alto import alto_lines
from glyphline.models.pages.line import PageLine
from glyphline.models.pages.markup import Element, read_markup
from glyphline.models.pages.page import page_lines

__all__ = ["line_elements", "lines_of"]

_READERS = {"PcGts": page_lines, "alto": alto_lines}


def lines_of(content: bytes, name: str) -> list[PageLine]:
    """Reads the lines of a PAGE or ALTO file, in its order: those with and those without a text or a place.

    Args:
        content: The file.
        name: Its name, for messages.

    Raises:
        PageError: If it is neither PAGE nor ALTO, or damaged; the message says where.
    """
    document = read_markup(content, name)
    if document.tag not in _READERS:
        raise PageError(f"{name}: neither PAGE nor ALTO XML: its root is {document.tag!r}, not 'PcGts' or 'alto'")
    return list(_READERS[document.tag](document, name))


def line_elements(document: Element) -> list[Element]:
    """Returns the elements that `lines_of` makes its lines of, one for one."""
    return [line for page in document.all("Page") for line in page.all("TextLine")]
