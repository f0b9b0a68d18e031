"""PAGE and ALTO XML: the lines of pages, where they are, and what they say. The same for training and for reading."""

from glyphline.models.pages.line import PageLine
from glyphline.models.pages.lines import line_elements, lines_of
from glyphline.models.pages.markup import Element, encoding_of, read_markup
from glyphline.models.pages.picture import find_page, picture_name

__all__ = [
    "Element",
    "PageLine",
    "encoding_of",
    "find_page",
    "line_elements",
    "lines_of",
    "picture_name",
    "read_markup",
]
