"""Writers of labelled strips: folder with `labels.tsv`, LMDB, WebDataset shards, Parquet.

What they write is read back by `glyphline.training.datasets.readers` byte for byte.
"""

from __future__ import annotations

import io
import tarfile
from abc import ABC, abstractmethod
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Literal, Self, TextIO

from glyphline.models.image import FORMAT_SUFFIXES, read_header
from glyphline.training.errors import DataError

Target = Literal["folder", "lmdb", "webdataset", "parquet"]


def suffix_of(content: bytes) -> str:
    """Returns the file name's ending for an image file's bytes.

    Raises:
        ImageError: If they are no image.
    """
    return FORMAT_SUFFIXES[read_header(content).format]


class Writer(ABC):
    """Writes samples one after another; used in a `with` block, at whose end the data set is whole."""

    def __enter__(self) -> Self:
        """Begins."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Ends the data set."""
        self.close()

    @abstractmethod
    def add(self, name: str, content: bytes, text: str) -> None:
        """Writes one sample.

        Args:
            name: Name of the picture where it comes from; kept where the format has names.
            content: The picture, as the bytes of an image file.
            text: Its text.

        Raises:
            DataError: If the format cannot hold it.
            ImageError: If the bytes are no image.
        """

    @abstractmethod
    def close(self) -> None:
        """Ends the data set."""


class FolderWriter(Writer):
    """A folder of pictures with `labels.tsv`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._taken: set[str] = set()
        path.mkdir(parents=True, exist_ok=True)
        self._labels: TextIO = (path / "labels.tsv").open("w", encoding="utf-8", newline="\n")

    def add(self, name: str, content: bytes, text: str) -> None:
        """Writes one picture and its line; a text that does not fit into a line is refused."""
        if "\n" in text or text.endswith("\r"):
            raise DataError(f"{name}: labels.tsv holds one line a text, and this one has several: {text!r}")
        target = self._name(name, suffix_of(content))
        path = self.path / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self._labels.write(f"{target}\t{text}\n")

    def _name(self, name: str, suffix: str) -> str:
        """A name within the folder that is not taken, whatever the sample was called before."""
        parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", "..", ".")]
        clean = "/".join(
            "".join(c if c.isprintable() and c not in '\t:*?"<>|#' else "_" for c in part) for part in parts
        )
        path = PurePosixPath(clean or "strip")
        stem = (
            str(path.with_suffix(""))
            if path.suffix.lower() in (*FORMAT_SUFFIXES.values(), ".jpeg", ".tiff")
            else str(path)
        )
        chosen, number = f"{stem}{suffix}", 2
        while chosen.lower() in self._taken:  # some file systems take a.png and A.png for one
            chosen, number = f"{stem}-{number}{suffix}", number + 1
        self._taken.add(chosen.lower())
        return chosen

    def close(self) -> None:
        """Ends `labels.tsv`."""
        self._labels.close()


class LmdbWriter(Writer):
    """An LMDB in the layout of the deep-text-recognition-benchmark."""

    BATCH = 1000
    """Samples in a transaction."""

    def __init__(self, path: Path) -> None:
        import lmdb  # noqa: PLC0415  (of the extra `train`, and only this format needs it)

        path.mkdir(parents=True, exist_ok=True)
        # Address space, not disk: the file grows with what is in it.
        self._environment: Any = lmdb.open(str(path), map_size=2**40)
        self._pending: dict[bytes, bytes] = {}
        self._count = 0

    def add(self, name: str, content: bytes, text: str) -> None:
        """Writes one sample; its number is its name."""
        suffix_of(content)
        self._count += 1
        self._pending[b"image-%09d" % self._count] = content
        self._pending[b"label-%09d" % self._count] = text.encode("utf-8")
        if self._count % self.BATCH == 0:
            self._flush()

    def _flush(self) -> None:
        with self._environment.begin(write=True) as transaction:
            for key, value in self._pending.items():
                transaction.put(key, value)
        self._pending.clear()

    def close(self) -> None:
        """Writes what is left, and the number of samples."""
        self._pending[b"num-samples"] = str(self._count).encode()
        self._flush()
        self._environment.close()


class WebDatasetWriter(Writer):
    """Tar shards of a number of samples each, `00000.tar` and so on."""

    def __init__(self, path: Path, shard_size: int = 1000) -> None:
        self.path = path
        self.shard_size = shard_size
        self._count = 0
        self._archive: tarfile.TarFile | None = None
        path.mkdir(parents=True, exist_ok=True)

    def add(self, name: str, content: bytes, text: str) -> None:
        """Writes picture and text side by side; a text that does not fit into a line is refused."""
        if "\n" in text or text.endswith("\r"):
            raise DataError(f"{name}: a text is one line, and this one has several: {text!r}")
        suffix = suffix_of(content)
        if self._count % self.shard_size == 0:
            self.close()
            self._archive = tarfile.open(self.path / f"{self._count // self.shard_size:05d}.tar", "w")  # noqa: SIM115
        assert self._archive is not None
        for ending, data in ((suffix, content), (".txt", text.encode("utf-8"))):
            member = tarfile.TarInfo(f"{self._count:09d}{ending}")
            member.size = len(data)
            self._archive.addfile(member, io.BytesIO(data))
        self._count += 1

    def close(self) -> None:
        """Ends the shard."""
        if self._archive is not None:
            self._archive.close()
            self._archive = None


class ParquetWriter(Writer):
    """A Parquet file with the columns `image` (bytes and path) and `text`, as Hugging Face's `datasets` has them."""

    ROWS = 100
    """Rows in a group, the least that can be read at once."""

    def __init__(self, path: Path) -> None:
        import pyarrow as arrow  # noqa: PLC0415  (of the extra `train`, and only this format needs it)
        from pyarrow import parquet  # noqa: PLC0415

        path.mkdir(parents=True, exist_ok=True)
        image = arrow.struct([("bytes", arrow.binary()), ("path", arrow.string())])
        features = (
            '{"info": {"features": {"image": {"_type": "Image"}, "text": {"dtype": "string", "_type": "Value"}}}}'
        )
        self._schema: Any = arrow.schema([("image", image), ("text", arrow.string())], {"huggingface": features})
        self._table: Any = arrow.Table
        self._file: Any = parquet.ParquetWriter(path / "data.parquet", self._schema, compression="none")
        self._rows: list[dict[str, object]] = []

    def add(self, name: str, content: bytes, text: str) -> None:
        """Writes one row."""
        suffix_of(content)
        self._rows.append({"image": {"bytes": content, "path": name}, "text": text})
        if len(self._rows) == self.ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._file.write_table(self._table.from_pylist(self._rows, self._schema))
            self._rows = []

    def close(self) -> None:
        """Writes what is left, and the file's end."""
        self._flush()
        self._file.close()


def open_writer(path: Path, target: Target, shard_size: int = 1000) -> Writer:
    """Opens a writer of a new data set.

    Args:
        path: Folder of the data set; it must not exist, or be empty.
        target: Its format.
        shard_size: Samples in a shard of `webdataset`.

    Raises:
        DataError: If something is there already.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise DataError(f"{path} exists and is not empty: choose another folder, or remove it")
    if target == "folder":
        return FolderWriter(path)
    if target == "lmdb":
        return LmdbWriter(path)
    return WebDatasetWriter(path, shard_size) if target == "webdataset" else ParquetWriter(path)
