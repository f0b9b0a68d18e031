"""Label files: `labels.tsv`, a picture's file name, a tab, and its text."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from glyphline.training.errors import DataError


def read_labels(path: Path) -> list[tuple[str, str]]:
    """Reads a label file.

    Args:
        path: UTF-8 file, one `name<TAB>text` a line; the text may be empty and is brought to NFC.

    Returns:
        `(name, text)` in the order of the file.

    Raises:
        DataError: If the file is missing, or a line has no tab (the line is named).
    """
    if not path.exists():
        raise DataError(f"{path} is missing: a data set is a folder of pictures with labels.tsv (name, tab, text)")
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        name, tab, text = line.partition("\t")
        if not tab:
            raise DataError(f"{path}, line {number}: no tab between file name and text: {line!r}")
        rows.append((name, unicodedata.normalize("NFC", text)))
    return rows
