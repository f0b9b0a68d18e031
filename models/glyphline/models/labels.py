"""Label files: `labels.tsv` says what pictures read, one a line: the picture's name, a tab, its text."""

import codecs
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from glyphline.models.errors import LabelsError

__all__ = ["Label", "read_labels"]


@dataclass(frozen=True, slots=True)
class Label:
    """One line of a label file.

    Attributes:
        line: Its number in the file, from 1.
        name: The picture's file name, relative to the file's folder.
        text: What the picture reads, in Unicode normal form C; empty for a picture without any writing.
    """

    line: int
    name: str
    text: str


def read_labels(path: Path) -> list[Label]:
    """Reads a label file.

    Args:
        path: UTF-8 file, with or without a byte order mark, lines ended by LF or CR LF. Blank lines are skipped.

    Returns:
        Its labels in their order. A name may come more than once.

    Raises:
        LabelsError: If the file cannot be read, is not UTF-8 (the byte is named), or lines have no tab: the first few
            are named, and all are in the error's `lines`.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LabelsError(f"{path}: {error.strerror}") from error
    start = len(codecs.BOM_UTF8) if content.startswith(codecs.BOM_UTF8) else 0
    try:
        lines = content[start:].decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise LabelsError(f"{path}: not UTF-8 at byte {start + error.start}") from error
    labels: list[Label] = []
    without_tab: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        name, tab, text = line.removesuffix("\r").partition("\t")
        if not tab:
            without_tab.append((number, name))
        labels.append(Label(number, name, unicodedata.normalize("NFC", text)))
    if without_tab:
        named = "; ".join(
            f"line {number}: no tab between file name and text: {name!r}" for number, name in without_tab[:5]
        )
        more = f"; and {len(without_tab) - 5:,} more such lines" if len(without_tab) > 5 else ""
        raise LabelsError(f"{path}, {named}{more}", str(path), tuple(without_tab))
    return labels
