"""Folders of pictures with one label file: `labels.tsv`, CSV or JSON Lines."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from glyphline.training.datasets.labels import read_labels
from glyphline.training.datasets.readers.item import FilePicture, LabelledImage
from glyphline.training.errors import DataError

IMAGE_KEYS = ("image", "file_name", "filename", "file", "path", "name")
TEXT_KEYS = ("text", "label", "transcription", "ground_truth", "words")
"""Names of the two columns, in the order in which they are looked for; capitals do not matter."""

DELIMITERS = (",", ";", "\t", "|")


def read_tsv(path: Path) -> Iterator[LabelledImage]:
    """Reads `labels.tsv`: a line is a file name, a tab and the text, without quoting and without a heading.

    A first line that only names the columns (`file_name<TAB>text`) is passed over, unless there is such a file.
    """
    for label in read_labels(path):
        file = path.parent / label.name
        heading = label.name.lower() in IMAGE_KEYS and label.text.lower() in TEXT_KEYS
        if label.line == 1 and heading and not file.exists():
            continue
        yield LabelledImage(label.name, label.text, FilePicture(file), path, label.line)


def read_csv(path: Path, image_key: str = "", text_key: str = "") -> Iterator[LabelledImage]:
    """Reads a CSV file with a heading; fields may be quoted, the delimiter is found in the heading.

    Args:
        path: The file; names of pictures are relative to its folder.
        image_key: Name of the column of file names, where it is none of `IMAGE_KEYS`.
        text_key: Name of the column of texts, where it is none of `TEXT_KEYS`.
    """
    text = read_text(path)
    heading = text.partition("\n")[0]
    delimiter = max(DELIMITERS, key=heading.count)
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        columns = [name for name in rows.fieldnames or () if name is not None]
        image, words = find_keys(columns, path, image_key, text_key)
        numbered = ((rows.line_num, row) for row in rows)
        yield from _with_pictures(path, numbered, image, words)
    except csv.Error as error:
        raise DataError(f"{path}, line {rows.reader.line_num}: not CSV: {error}") from error


def read_jsonl(path: Path, image_key: str = "", text_key: str = "") -> Iterator[LabelledImage]:
    """Reads JSON Lines: one object a line with the picture's file name and its text.

    Args:
        path: The file; names of pictures are relative to its folder.
        image_key: Key of file names, where it is none of `IMAGE_KEYS`.
        text_key: Key of texts, where it is none of `TEXT_KEYS`.
    """
    records: list[tuple[int, Mapping[str, object]]] = []
    # Not str.splitlines: JSON may hold separators like U+2028 within a string.
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: not JSON: {error}") from error
        if not isinstance(record, dict):
            raise DataError(f"{path}, line {number}: a line is an object with the picture's name and its text")
        records.append((number, record))
    if records:
        image, words = find_keys(records[0][1], path, image_key, text_key)
        yield from _with_pictures(path, records, image, words)


def _with_pictures(
    path: Path, rows: Iterable[tuple[int, Mapping[str, object]]], image: str, words: str
) -> Iterator[LabelledImage]:
    for number, row in rows:
        place = f"{path}, line {number}"
        name, text = row.get(image), row.get(words)
        if not isinstance(name, str) or not name:
            raise DataError(f"{place}: {image!r} is no file name: {name!r}")
        yield LabelledImage(name, label_text(text, words, place), FilePicture(path.parent / name), path, number)


def label_text(value: object, key: str, place: str) -> str:
    """Returns a record's text in normal form C; whole numbers are taken as they are written.

    Raises:
        DataError: If there is none.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise DataError(f"{place}: {key!r} is no text: {value!r}")
    return unicodedata.normalize("NFC", value)


def find_keys(columns: Iterable[str], path: Path, image_key: str = "", text_key: str = "") -> tuple[str, str]:
    """Finds the columns of pictures and texts.

    Raises:
        DataError: If one is not there; the message has the columns that are.
    """
    there = list(columns)
    return (
        find_key(there, IMAGE_KEYS, image_key, "the picture", "image_key", path),
        find_key(there, TEXT_KEYS, text_key, "its text", "text_key", path),
    )


def find_key(columns: list[str], known: tuple[str, ...], given: str, what: str, option: str, path: Path) -> str:
    """Finds one column: the one that is given, or the first known one; capitals and outer spaces do not matter.

    Raises:
        DataError: If it is not there.
    """
    by_name = {column.strip().lower(): column for column in reversed(columns)}
    for name in (given.strip().lower(),) if given else known:
        if name in by_name:
            return by_name[name]
    wanted = f"called {given!r}" if given else f"for {what}: one of {', '.join(known)}, or say which by {option}"
    raise DataError(f"{path} has no column {wanted}; its columns are: {', '.join(map(repr, columns)) or 'none'}")


def read_text(path: Path) -> str:
    """Reads a UTF-8 file, with or without a byte order mark.

    Raises:
        DataError: If it cannot be read or is not UTF-8; the byte is named.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error
