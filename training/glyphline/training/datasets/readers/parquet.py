"""Parquet as Hugging Face's `datasets` writes it: a column of images, bytes or paths, and a column of texts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from glyphline.training.datasets.readers.item import EncodedPicture, FilePicture, LabelledImage
from glyphline.training.datasets.readers.labels import find_keys, label_text
from glyphline.training.errors import DataError

_GROUPS = 4  # row groups that a process keeps: Parquet can't be read in smaller pieces


@dataclass(frozen=True, slots=True)
class ParquetPicture(EncodedPicture):
    """A picture in one cell of a Parquet file."""

    path: Path
    column: str
    group: int
    row: int

    def content(self) -> bytes:
        """Returns the image file's bytes."""
        value = _images(_open(self.path), self.column, self.group)[self.row].as_py()
        if isinstance(value, dict):
            content, name = value.get("bytes"), value.get("path")
        else:
            content, name = (value, None) if isinstance(value, bytes) else (None, value)
        if content is not None:
            return bytes(content)
        if not isinstance(name, str):
            raise DataError(f"{self.path}, row {self.row + 1} of group {self.group}: {self.column!r} has no picture")
        return FilePicture(self.path.parent / name).content()


def _open(path: Path) -> Any:  # noqa: ANN401  (pyarrow has no types)
    """Opens a Parquet file; once in a process as long as it does not change."""
    try:
        state = path.stat()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    return _open_state(path, os.getpid(), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=16)
def _open_state(path: Path, *_: int) -> Any:  # noqa: ANN401  (pyarrow has no types)
    import pyarrow as arrow  # noqa: PLC0415  (of the extra `train`, and only this format needs it)
    from pyarrow import parquet  # noqa: PLC0415

    try:
        return parquet.ParquetFile(path)
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"{path} is no Parquet file: {error}") from error


@lru_cache(maxsize=_GROUPS)
def _images(file: Any, column: str, group: int) -> Any:  # noqa: ANN401  (pyarrow has no types)
    import pyarrow as arrow  # noqa: PLC0415

    try:
        return file.read_row_group(group, columns=[column]).column(0)
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"row group {group} of a Parquet file cannot be read: {error}") from error


def _class_names(file: Any, column: str) -> list[str] | None:  # noqa: ANN401  (pyarrow has no types)
    """Names that a column of class numbers stands for, as Hugging Face notes them in the file."""
    try:
        noted = json.loads((file.schema_arrow.metadata or {})[b"huggingface"])
        names = noted["info"]["features"][column]["names"]
    except (KeyError, TypeError, ValueError):
        return None
    return [str(name) for name in names] if isinstance(names, list) else None


def read_parquet(path: Path, image_key: str = "", text_key: str = "") -> Iterator[LabelledImage]:
    """Reads the texts of one file, or of all `.parquet` files below a folder in the order of their names.

    Args:
        path: File or folder.
        image_key: Column of images, where it has none of the usual names.
        text_key: Column of texts, where it has none of the usual names.

    Raises:
        DataError: If a file is none of Parquet, or lacks a column.
    """
    import pyarrow as arrow  # noqa: PLC0415

    root = path.parent if path.is_file() else path
    for shard in [path] if path.is_file() else sorted(path.rglob("*.parquet")):
        file = _open(shard)
        image, words = find_keys(file.schema_arrow.names, shard, image_key, text_key)
        _check_images(file.schema_arrow.field(image).type, shard, image)
        names = _class_names(file, words)
        number = 0
        for group in range(file.num_row_groups):
            try:
                texts = file.read_row_group(group, columns=[words]).column(0).to_pylist()
            except (arrow.ArrowException, OSError) as error:
                raise DataError(f"{shard}, row group {group}: {error}") from error
            for row, value in enumerate(texts):
                number += 1
                known = isinstance(value, int) and names is not None and 0 <= value < len(names)
                text = label_text(
                    names[value] if known and names is not None else value, words, f"{shard}, row {number}"
                )
                source = f"{shard.relative_to(root).as_posix()}#{number}"
                yield LabelledImage(source, text, ParquetPicture(shard, image, group, row), shard, number)


def _check_images(kind: Any, path: Path, column: str) -> None:  # noqa: ANN401  (pyarrow has no types)
    from pyarrow import types  # noqa: PLC0415

    flat = types.is_binary(kind) or types.is_large_binary(kind) or types.is_string(kind) or types.is_large_string(kind)
    fields = {kind.field(index).name for index in range(kind.num_fields)} if types.is_struct(kind) else set()
    if not flat and not fields & {"bytes", "path"}:
        raise DataError(f"{path}: {column!r} is {kind}, and neither bytes, nor a path, nor a struct of bytes and path")
