"""A page to try a model by hand: what it needs of a picture and of choices, apart from how the page is made."""

from glyphline.service.playground.choices import Choices, Model
from glyphline.service.playground.readers import Answer, LocalReader, Reader, ServerReader
from glyphline.service.playground.reading import Picture, Problem, Shown, read_picture

__all__ = [
    "Answer",
    "Choices",
    "LocalReader",
    "Model",
    "Picture",
    "Problem",
    "Reader",
    "ServerReader",
    "Shown",
    "read_picture",
]
