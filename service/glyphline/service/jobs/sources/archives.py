"""Pictures in tar files, among them WebDataset shards, and in zip files; nothing is unpacked to the disk."""

from __future__ import annotations

import json
import tarfile
import unicodedata
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field

from glyphline.service.jobs.errors import InputError
from glyphline.service.jobs.items import Item
from glyphline.service.jobs.names import REFERENCE_COLUMNS, is_picture, member_id
from glyphline.service.jobs.pictures import Picture, RefusedPicture, TarPicture, ZipPicture
from glyphline.service.jobs.rows import printable
from glyphline.service.jobs.storage import open_binary

__all__ = ["read_tar", "read_zip"]

_TEXT_SUFFIXES = (".txt", ".gt.txt", ".text", ".label")
_LARGEST_TEXT = 2**20  # bytes: a line's text or its JSON is far smaller
_ENCRYPTED = 1


@dataclass(slots=True)
class _Sample:
    """Files that follow each other and have one key: pictures and, in a WebDataset shard, their text."""

    key: str
    pictures: list[TarPicture] = field(default_factory=list)
    text: str | None = None


def read_tar(path: str) -> Iterator[Item]:
    """Yields the pictures of a tar file in its order; no list of them is held.

    Of a WebDataset shard, in which files of one key follow each other, a picture's reference is in the `.txt` or under
    `text` or `label` of the `.json` of its key.

    Raises:
        InputError: If it is compressed, damaged, or no tar file.
    """
    try:
        # "r:" takes no compression: within a compressed file nothing can be found again without reading all before it.
        with open_binary(path) as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
            sample = _Sample("")
            while (member := archive.next()) is not None:
                archive.members.clear()  # type: ignore[attr-defined]  # else it keeps them all
                if not member.isreg() or member.sparse is not None:
                    continue
                key, suffix = _key(member.name)
                if key != sample.key:
                    yield from _items(path, sample)
                    sample = _Sample(key)
                if is_picture(member.name) and not _hidden(member.name):
                    sample.pictures.append(TarPicture(path, member.name, member.offset_data, member.size))
                elif suffix in _TEXT_SUFFIXES:
                    sample.text = _line(_text(archive, member, path))
                elif suffix == ".json":
                    sample.text = _text_of(_text(archive, member, path)) or sample.text
            yield from _items(path, sample)
    except tarfile.TarError as error:
        raise InputError(
            f"{path}: no tar file that can be read in part: {error} (unpack a compressed one, or compress it no more)"
        ) from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def read_zip(path: str) -> Iterator[Item]:
    """Yields the pictures of a zip file in the order of its directory, which is held in memory.

    Raises:
        InputError: If it is damaged, or no zip file.
    """
    try:
        with open_binary(path) as stream, zipfile.ZipFile(stream) as archive:
            for member in archive.infolist():
                name = member.filename
                if member.is_dir() or not is_picture(name) or _hidden(name):
                    continue
                picture: Picture = ZipPicture(
                    path,
                    name,
                    member.header_offset,
                    member.compress_size,
                    member.file_size,
                    member.compress_type,
                    member.CRC,
                )
                if member.flag_bits & _ENCRYPTED:
                    picture = RefusedPicture(path, "unreadable_file", f"{name} is encrypted")
                yield Item(member_id(path, name), picture)
    except zipfile.BadZipFile as error:
        raise InputError(f"{path}: no zip file: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _items(path: str, sample: _Sample) -> Iterator[Item]:
    for picture in sample.pictures:
        yield Item(member_id(path, picture.member), picture, sample.text)


def _hidden(member: str) -> bool:
    return any(part.startswith(".") and part not in (".", "..") for part in member.split("/"))


def _key(member: str) -> tuple[str, str]:
    """Splits a name as WebDataset does: at the first dot behind the folders."""
    folder, _, name = member.rpartition("/")
    stem, _, extension = name.partition(".")
    return f"{folder}/{stem}", f".{extension.lower()}"


def _text(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> str:
    place = f"{path}: {printable(member.name)}"
    if member.size > _LARGEST_TEXT:
        raise InputError(f"{place} has {member.size:,} bytes; a line of text has no more than {_LARGEST_TEXT:,}")
    file = archive.extractfile(member)
    assert file is not None, "a regular file has content"
    try:
        return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{place} is not UTF-8: {error.reason} at byte {error.start}") from error


def _line(text: str) -> str:
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").rstrip("\n"))


def _text_of(record: str) -> str | None:
    """Finds the text in a sample's JSON, which may as well be about something else."""
    try:
        values = json.loads(record)
    except ValueError:
        return None
    if not isinstance(values, dict):
        return None
    texts = (values.get(name) for name in REFERENCE_COLUMNS)
    return next((_line(text) for text in texts if isinstance(text, str)), None)
