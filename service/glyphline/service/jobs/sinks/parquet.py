"""Rows as Parquet, with types of their own for characters and alternatives."""

from __future__ import annotations

import io
import itertools
from pathlib import Path
from typing import Any, BinaryIO

from glyphline.service.jobs.disk import Disk
from glyphline.service.jobs.errors import OutputError
from glyphline.service.jobs.sinks.table import COLUMNS, flat, read_rows

__all__ = ["check_parquet", "write_parquet"]

_GROUP = 50_000  # rows of a row group


def check_parquet() -> None:
    """Makes sure that Parquet can be written.

    Raises:
        OutputError: If pyarrow is not installed.
    """
    try:
        import pyarrow.parquet  # noqa: F401, PLC0415  (of the extra `parquet`)
    except ImportError as error:
        raise OutputError("Parquet needs pyarrow: pip install 'glyphline[parquet]'") from error


def write_parquet(segment: Path, target: Path, disk: Disk) -> None:
    """Writes rows, a row group at a time."""
    import pyarrow as arrow  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    schema = _schema()
    with disk.whole(target) as stream:
        rows = map(flat, read_rows(segment))
        with parquet.ParquetWriter(_Through(disk, stream), schema) as writer:
            while group := list(itertools.islice(rows, _GROUP)):
                writer.write_table(arrow.Table.from_pylist(group, schema))


def _schema() -> Any:  # noqa: ANN401  (pyarrow has no types)
    import pyarrow as arrow  # noqa: PLC0415

    token = arrow.struct(
        [("text", arrow.string()), ("confidence", arrow.float64()), ("span", arrow.list_(arrow.float64()))]
    )
    alternative = arrow.struct(
        [
            ("text", arrow.string()),
            ("confidence", arrow.float64()),
            ("log_probability", arrow.float64()),
            ("tokens", arrow.list_(token)),
        ]
    )
    kinds = {
        "confidence": arrow.float64(),
        "truncated": arrow.bool_(),
        "version": arrow.int64(),
        "tokens": arrow.list_(token),
        "alternatives": arrow.list_(alternative),
    }
    return arrow.schema([(name, kinds.get(name, arrow.string())) for name in COLUMNS])


class _Through(io.RawIOBase):
    """Lets what pyarrow writes go the way of all that a job writes."""

    def __init__(self, disk: Disk, stream: BinaryIO) -> None:
        self._disk = disk
        self._stream = stream

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._stream.tell()

    def write(self, content: Any) -> int:  # noqa: ANN401  (whatever has bytes)
        block = bytes(content)
        self._disk.write(self._stream, block)
        return len(block)
