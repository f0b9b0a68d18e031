"""Names that tell what an input is, and names that rows are given."""

from __future__ import annotations

import os

from glyphline.models.image import SUFFIXES
from glyphline.service.jobs.rows import printable

__all__ = [
    "DRAWING_SUFFIX",
    "IMAGE_SUFFIXES",
    "PATH_COLUMNS",
    "REFERENCE_COLUMNS",
    "is_picture",
    "member_id",
    "suffix_of",
]

# What a folder is searched for. A file that is named, or that a pattern matches, is read whatever its name.
IMAGE_SUFFIXES = frozenset(SUFFIXES)
DRAWING_SUFFIX = ".reading.png"  # of what `glyphline recognize --show` writes, beside the pictures
PATH_COLUMNS = ("path", "uri", "source", "file", "file_name", "filename", "image", "image_path")
REFERENCE_COLUMNS = ("text", "reference", "label", "ground_truth", "transcription")


def suffix_of(name: str) -> str:
    """Returns a name's ending, in lower case."""
    return os.path.splitext(name)[1].lower()


def is_picture(name: str) -> bool:
    """Tells whether a folder or an archive is searched for a name: that of an image, and of no drawn reading."""
    return suffix_of(name) in IMAGE_SUFFIXES and not name.lower().endswith(DRAWING_SUFFIX)


def member_id(file: str, member: object) -> str:
    """Names a picture within a file: `a.tar#0001.png`, `a.tif#2`."""
    return printable(f"{file}#{member}")
