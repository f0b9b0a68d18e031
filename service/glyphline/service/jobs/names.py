"""Names that tell what an input is, and names that rows are given."""

from __future__ import annotations

import os

from glyphline.models.image import SUFFIXES
from glyphline.service.jobs.rows import printable

__all__ = ["IMAGE_SUFFIXES", "PATH_COLUMNS", "REFERENCE_COLUMNS", "member_id", "suffix_of"]

# What a folder is searched for. A file that is named, or that a pattern matches, is read whatever its name.
IMAGE_SUFFIXES = frozenset(SUFFIXES)
PATH_COLUMNS = ("path", "uri", "source", "file", "file_name", "filename", "image", "image_path")
REFERENCE_COLUMNS = ("text", "reference", "label", "ground_truth", "transcription")


def suffix_of(name: str) -> str:
    """Returns a name's ending, in lower case."""
    return os.path.splitext(name)[1].lower()


def member_id(file: str, member: object) -> str:
    """Names a picture within a file: `a.tar#0001.png`, `a.tif#2`."""
    return printable(f"{file}#{member}")
