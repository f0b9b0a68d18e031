"""WebDataset: tar shards in which files of one key, as `000123.jpg` and `000123.txt`, make one sample."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from glyphline.models.image import SUFFIXES
from glyphline.training.datasets.readers.item import EncodedPicture, LabelledImage
from glyphline.training.datasets.readers.labels import TEXT_KEYS, find_key, label_text
from glyphline.training.datasets.readers.sidecar import side_text
from glyphline.training.errors import DataError

_TEXT_SUFFIXES = (".txt", ".gt.txt", ".text", ".label")
_LARGEST_TEXT = 2**20  # bytes: a line's text or its JSON is far smaller


@dataclass(frozen=True, slots=True)
class TarPicture(EncodedPicture):
    """A picture within a tar file that is not compressed: bytes from `start` on."""

    path: Path
    start: int
    size: int

    def content(self) -> bytes:
        """Returns the image file's bytes."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.start)
                content = file.read(self.size)
        except OSError as error:
            raise DataError(f"{self.path}: {error.strerror}") from error
        if len(content) < self.size:
            raise DataError(f"{self.path} is cut short: {self.size} bytes from {self.start} on are not all there")
        return content


@dataclass(slots=True)
class _Sample:
    number: int
    pictures: list[tuple[str, TarPicture]] = field(default_factory=list)
    text: str | None = None
    record: str | None = None


def read_webdataset(path: Path, text_key: str = "") -> Iterator[LabelledImage]:
    """Reads one shard, or all `.tar` files of a folder in the order of their names.

    A sample's text is in its `.txt`, or under `text` or `label` of its `.json`. Nothing is unpacked: pictures are read
    from within the shard when they are asked for.

    Args:
        path: Shard, or folder of shards.
        text_key: Key of the text in `.json`, where it is none of the usual ones.

    Raises:
        DataError: If a shard is compressed or damaged, or a sample lacks its text or picture.
    """
    shards = [path] if path.is_file() else sorted(path.glob("*.tar"))
    for shard in shards:
        for key, sample in _read_shard(shard).items():
            place = f"{shard}, sample {key}"
            if len(sample.pictures) != 1:
                names = ", ".join(name for name, _ in sample.pictures) or "none"
                raise DataError(f"{place}: a sample has one picture; its pictures are: {names}")
            name, picture = sample.pictures[0]
            text = _text(sample, text_key, shard, place)
            yield LabelledImage(f"{shard.name}/{name}", text, picture, shard, sample.number)


def _text(sample: _Sample, text_key: str, shard: Path, place: str) -> str:
    if sample.text is not None and not text_key:
        return side_text(sample.text, place)
    if sample.record is None:
        raise DataError(f"{place}: no .txt and no .json has its text")
    try:
        record = json.loads(sample.record)
    except ValueError as error:
        raise DataError(f"{place}: its .json is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise DataError(f"{place}: its .json is no object with the text")
    key = find_key(list(record), TEXT_KEYS, text_key, "its text", "text_key", shard)
    return label_text(record[key], key, place)


def _read_shard(path: Path) -> dict[str, _Sample]:
    """Reads a shard's index and its texts."""
    samples: dict[str, _Sample] = {}
    try:
        # "r:" takes no compression: within a compressed file nothing can be found again without reading all before it.
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                if not member.isreg() or member.sparse is not None:
                    continue
                folder, _, name = member.name.rpartition("/")
                stem, dot, extension = name.partition(".")
                if not dot or not stem:
                    continue
                key = f"{folder}/{stem}" if folder else stem
                suffix = f".{extension.lower()}"
                sample = samples.setdefault(key, _Sample(len(samples) + 1))
                if suffix.endswith(SUFFIXES):
                    sample.pictures.append((member.name, TarPicture(path, member.offset_data, member.size)))
                elif suffix in _TEXT_SUFFIXES:
                    sample.text = _decode(archive, member, path)
                elif suffix == ".json":
                    sample.record = _decode(archive, member, path)
    except tarfile.TarError as error:
        raise DataError(
            f"{path} is no tar file that can be read in part: {error} (unpack a compressed one, or compress it no more)"
        ) from error
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    return {key: sample for key, sample in samples.items() if sample.pictures or sample.text is not None}


def _decode(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> str:
    if member.size > _LARGEST_TEXT:
        raise DataError(
            f"{path}: {member.name} has {member.size} bytes; a line of text has no more than {_LARGEST_TEXT}"
        )
    file = archive.extractfile(member)
    assert file is not None, "a regular file has content"
    try:
        return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: {member.name} is not UTF-8: {error.reason} at byte {error.start}") from error
