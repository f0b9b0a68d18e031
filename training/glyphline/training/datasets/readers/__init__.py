"""Readers of labelled strips in the formats that people have: one module a format, one function for all."""

from glyphline.training.datasets.readers.dataset import FORMATS, Cut, Format, read_dataset, recognise
from glyphline.training.datasets.readers.item import LabelledImage, Picture, check_files, missing_files, tell_missing

__all__ = [
    "FORMATS",
    "Cut",
    "Format",
    "LabelledImage",
    "Picture",
    "check_files",
    "missing_files",
    "read_dataset",
    "recognise",
    "tell_missing",
]
