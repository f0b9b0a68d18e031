"""Labelled pictures: label files, and the pictures that they name."""

from __future__ import annotations

from pathlib import Path

from glyphline.models import labels
from glyphline.models.errors import ImageError, LabelsError
from glyphline.models.image import ImageLimits, read_image
from glyphline.models.labels import Label
from glyphline.training.datasets.samples import Grey
from glyphline.training.errors import DataError


def read_labels(path: Path) -> list[Label]:
    """Reads the label file of a data set, as `glyphline.models.labels` does.

    Raises:
        DataError: If the file is missing, is not UTF-8 (the byte is named), or a line has no tab (the line is named).
    """
    if not path.exists():
        raise DataError(f"{path} is missing: a data set is a folder of pictures with labels.tsv (name, tab, text)")
    try:
        return labels.read_labels(path)
    except LabelsError as error:
        raise DataError(str(error)) from error


def read_picture(path: Path) -> Grey:
    """Reads a picture that a label file names.

    Raises:
        DataError: If it is missing or no picture that can be read.
    """
    if not path.exists():
        raise DataError(f"{path} is named in a label file but missing")
    try:
        return read_image(path.read_bytes(), ImageLimits()).pixels
    except ImageError as error:
        raise DataError(f"{path}: {error}") from error
