"""True texts of a job's images, from a `labels.tsv`."""

from __future__ import annotations

import os
from pathlib import Path

from glyphline.models.errors import LabelsError
from glyphline.models.labels import read_labels
from glyphline.service.jobs.errors import InputError


def load_references(path: Path) -> dict[str, str]:
    """Reads a label file: a name, a tab and the text on each line.

    Args:
        path: UTF-8 file; names are relative to its folder.

    Returns:
        Text (NFC) by the file's real path, as `reference_key` gives it.

    Raises:
        InputError: If the file cannot be read, or a line has no tab or repeats a name with another text.
    """
    try:
        labels = read_labels(path)
    except LabelsError as error:
        raise InputError(str(error)) from error
    references: dict[str, str] = {}
    for label in labels:
        if references.setdefault(reference_key(path.parent / label.name), label.text) != label.text:
            raise InputError(f"{path}, line {label.line}: {label.name!r} has two different texts")
    return references


def reference_key(path: str | Path) -> str:
    """Returns what two paths of one file have in common: its real, absolute path."""
    return os.path.realpath(path)
