"""Parquet files: lists of pictures, or the pictures themselves as bytes, as Hugging Face's `datasets` writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from glyphline.service.jobs.errors import InputError
from glyphline.service.jobs.items import Item
from glyphline.service.jobs.names import REFERENCE_COLUMNS, member_id
from glyphline.service.jobs.pictures import ParquetPicture
from glyphline.service.jobs.sources.manifest import item_of
from glyphline.service.jobs.storage import open_binary

__all__ = ["read_parquet"]

_IMAGE_COLUMNS = ("image", "img", "picture", "bytes", "content", "png", "jpg")
_ROWS = 1024


def read_parquet(path: str, *, allow_http: bool) -> Iterator[Item]:
    """Yields the pictures of a file, a few rows at a time.

    Raises:
        InputError: If it is no Parquet file, has no column of pictures or paths, or what reads it is not installed.
    """
    try:
        import pyarrow  # noqa: PLC0415  (of the extra `parquet`, which only this format needs)
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise InputError(f"{path}: Parquet needs pyarrow: pip install 'glyphline[parquet]'") from error
    try:
        with open_binary(path) as stream:
            file = parquet.ParquetFile(stream)
            column = _image_column(file.schema_arrow)
            yield from _listed(file, path, allow_http) if column is None else _held(file, path, column)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: no Parquet file that can be read: {error}") from error


def _image_column(schema: Any) -> str | None:  # noqa: ANN401  (pyarrow has no types)
    """Finds the column that holds pictures; None where there is only a column of paths."""
    from pyarrow import types  # noqa: PLC0415

    def holds_bytes(kind: Any) -> bool:  # noqa: ANN401
        if types.is_struct(kind):
            return "bytes" in {kind.field(index).name for index in range(kind.num_fields)}
        return bool(types.is_binary(kind) or types.is_large_binary(kind))

    found: list[str] = [name for name in schema.names if holds_bytes(schema.field(name).type)]
    named = [name for name in found if name.lower() in _IMAGE_COLUMNS]
    return next(iter([*named, *found]), None)


def _listed(file: Any, path: str, allow_http: bool) -> Iterator[Item]:  # noqa: ANN401
    number = 0
    for batch in file.iter_batches(batch_size=_ROWS):
        for values in batch.to_pylist():
            number += 1
            lowered = {name.lower(): value for name, value in values.items()}
            yield item_of(lowered, path, f"{path}, row {number}", allow_http=allow_http)


def _held(file: Any, path: str, column: str) -> Iterator[Item]:  # noqa: ANN401
    names = file.schema_arrow.names
    wanted = [name for name in names if name != column and name.lower() in ("id", *REFERENCE_COLUMNS)]
    number = 0
    for group in range(file.num_row_groups):
        if not wanted:
            rows: Iterator[dict[str, Any]] = ({} for _ in range(file.metadata.row_group(group).num_rows))
        else:
            batches = file.iter_batches(batch_size=_ROWS, row_groups=[group], columns=wanted)
            rows = (row for batch in batches for row in batch.to_pylist())
        for index, values in enumerate(rows):
            number += 1
            lowered = {name.lower(): value for name, value in values.items()}
            identity = lowered.get("id")
            text = next((lowered[name] for name in REFERENCE_COLUMNS if isinstance(lowered.get(name), str)), None)
            picture = ParquetPicture(path, number, column, group, index)
            yield Item(member_id(path, number) if identity is None else str(identity), picture, text)
