"""True texts of a job's images, from a `labels.tsv`."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

from glyphline.service.jobs.inputs import InputError


def load_references(path: Path) -> dict[str, str]:
    """Reads a label file: a name, a tab and the text on each line.

    Args:
        path: UTF-8 file; names are relative to its folder.

    Returns:
        Text (NFC) by the file's real path, as `reference_key` gives it.

    Raises:
        InputError: If the file cannot be read, or a line has no tab or repeats a name with another text.
    """
    references: dict[str, str] = {}
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                name, tab, text = line.rstrip("\r\n").partition("\t")
                if not tab:
                    raise InputError(f"{path}, line {number}: no tab between file name and text: {name!r}")
                text = unicodedata.normalize("NFC", text)
                if references.setdefault(reference_key(path.parent / name), text) != text:
                    raise InputError(f"{path}, line {number}: {name!r} has two different texts")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}") from error
    return references


def reference_key(path: str | Path) -> str:
    """Returns what two paths of one file have in common: its real, absolute path."""
    return os.path.realpath(path)
