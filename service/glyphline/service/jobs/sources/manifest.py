"""Lists of pictures with what is known of each: CSV, TSV, JSON Lines and Parquet."""

from __future__ import annotations

import csv
import io
import json
import os
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from glyphline.service.jobs.errors import InputError
from glyphline.service.jobs.items import Item
from glyphline.service.jobs.names import PATH_COLUMNS, REFERENCE_COLUMNS
from glyphline.service.jobs.pictures import CutPicture, FilePicture, Picture, RefusedPicture, TiffPicture
from glyphline.service.jobs.rows import printable
from glyphline.service.jobs.storage import check_allowed, is_uri, join, open_binary

__all__ = ["item_of", "read_manifest"]

_BOX = ("x", "y", "w", "h")
_LONG_NAMES = {"width": "w", "height": "h", "left": "x", "top": "y"}


def read_manifest(path: str, *, allow_http: bool) -> Iterator[Item]:
    r"""Yields the pictures of a CSV, TSV or JSON Lines file, in its order, a line at a time.

    Columns, in any order: the picture (`path`, `uri`, `file_name` and the like; relative to the list's folder), and if
    wanted `id`, the true text (`text`, `reference`, `label`), `page` of a TIFF file, and a box `x`, `y`, `w`, `h` in
    pixels that is to be cut from the picture. A TSV file without a heading is taken for a `labels.tsv`: name, tab,
    text.

    Raises:
        InputError: If it cannot be read, or a line lacks what it needs.
    """
    try:
        with open_binary(path) as binary, io.TextIOWrapper(binary, encoding="utf-8-sig", newline="") as stream:
            lines = _json_lines(path, stream) if path.lower().endswith((".jsonl", ".ndjson")) else _table(path, stream)
            for place, values in lines:
                yield item_of(values, path, place, allow_http=allow_http)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not a list that can be read: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def item_of(values: Mapping[str, Any], path: str, place: str, *, allow_http: bool) -> Item:
    """Makes the item of one line.

    Args:
        values: What stands in it, by column.
        path: The list.
        place: The line, for messages.
        allow_http: Whether web addresses may be read.

    Raises:
        InputError: If it names no picture, or a number is none.
    """
    name = next((values[column] for column in PATH_COLUMNS if values.get(column)), None)
    if not isinstance(name, str):
        raise InputError(f"{place}: names no picture; its column is called {', '.join(PATH_COLUMNS[:4])} or the like")
    try:
        os.fsencode(name)
    except UnicodeEncodeError as error:
        raise InputError(f"{place}: the picture's name has {name[error.start]!r}, which is half a character") from error
    source = join(path.rpartition("/")[0] if is_uri(path) else os.path.dirname(path), name)
    picture: Picture = FilePicture(source)
    suffix = ""
    try:
        check_allowed(source, allow_http=allow_http)
    except InputError as error:
        picture = RefusedPicture(source, "address_refused", str(error))
    page, box = _number(values.get("page"), "page", place), _box(values, place)
    if page is not None:
        picture = TiffPicture(source, int(page))
        suffix = f"#{int(page)}"
    if box is not None:
        x, y, w, h = box
        picture = CutPicture(picture, ((x, y), (x + w - 1, y + h - 1)))
        suffix += f"#{x:g},{y:g},{w:g},{h:g}"
    stated = values.get("id")
    identity = printable(source) + suffix if stated in (None, "") else _text(stated, "id", place)
    return Item(identity, picture, _reference(values, place))


def _reference(values: Mapping[str, Any], place: str) -> str | None:
    column = next((column for column in REFERENCE_COLUMNS if values.get(column) is not None), None)
    return None if column is None else unicodedata.normalize("NFC", _text(values[column], column, place))


def _text(value: object, name: str, place: str) -> str:
    """Returns a text as it stands in the list. Of 12.50 only 12.5 has come here; a whole number is written one way."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise InputError(f'{place}: {name} is {value!r}, which is no text; write it as a text, as "12.50"')
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{place}: {name} has {value[error.start]!r}, which is half a character") from error
    return value


def _box(values: Mapping[str, Any], place: str) -> tuple[float, float, float, float] | None:
    crop = values.get("crop")
    if isinstance(crop, Sequence) and not isinstance(crop, str) and len(crop) == len(_BOX):
        values = dict(zip(_BOX, crop, strict=True))
    named = {_LONG_NAMES.get(name, name): value for name, value in values.items()}
    x, y, w, h = (_number(named.get(name), name, place) for name in _BOX)
    if x is None and y is None and w is None and h is None:
        return None
    if x is None or y is None or w is None or h is None or w < 1 or h < 1:
        raise InputError(f"{place}: a crop is four numbers x, y, w, h, and w and h are at least 1")
    return x, y, w, h


def _number(value: object, name: str, place: str) -> float | None:
    if value is None or value == "":
        return None
    try:
        number = float(value)  # type: ignore[arg-type]  # whatever it is, it is a number or it is refused
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < 1e9 or (name == "page" and number < 1):
        raise InputError(f"{place}: {name} is {value!r}, and should be a number")
    return number


def _table(path: str, stream: io.TextIOWrapper) -> Iterator[tuple[str, dict[str, Any]]]:
    tabs = path.lower().endswith(".tsv")
    # In a TSV file a quotation mark is one: labels have them.
    lines = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(stream)
    heading = next(lines, None)
    if heading is None:
        return
    names = [name.strip().lower() for name in heading]
    if not set(names) & set(PATH_COLUMNS):
        if not tabs or len(heading) != 2:
            known = ", ".join(PATH_COLUMNS)
            raise InputError(f"{path}: its first line is no heading with a column for the picture, one of {known}")
        names = ["path", "text"]
        yield f"{path}, line 1", dict(zip(names, heading, strict=True))
    for values in lines:
        if not any(values):
            continue
        place = f"{path}, line {lines.line_num}"
        if len(values) > len(names):
            raise InputError(f"{place}: has {len(values)} values for {len(names)} columns")
        yield place, dict(zip(names, values, strict=False))


def _json_lines(path: str, stream: io.TextIOWrapper) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            values = json.loads(line)
        except ValueError as error:
            raise InputError(f"{place}: not JSON: {error}") from error
        if not isinstance(values, dict):
            raise InputError(f"{place}: should be a JSON object")
        yield place, values
