"""Everything that the paths, patterns and URIs of a job name, told by their endings, one item at a time."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

from glyphline.service.jobs.errors import InputError
from glyphline.service.jobs.items import Item
from glyphline.service.jobs.names import member_id, suffix_of
from glyphline.service.jobs.pictures import FilePicture, TiffPicture
from glyphline.service.jobs.rows import printable
from glyphline.service.jobs.sources.archives import read_tar, read_zip
from glyphline.service.jobs.sources.listing import walk
from glyphline.service.jobs.sources.manifest import read_manifest
from glyphline.service.jobs.sources.page_lines import read_page_lines
from glyphline.service.jobs.sources.parquet import read_parquet
from glyphline.service.jobs.sources.tiff import TIFF_SUFFIXES, pages_of
from glyphline.service.jobs.storage import check_allowed, find_remote, is_uri

__all__ = ["check_paths", "items_of", "names_pages", "paths_from_list"]

_MANIFESTS = frozenset({".csv", ".tsv", ".jsonl", ".ndjson"})
_PAGES = ".xml"
_COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")


def items_of(paths: Iterable[str], *, allow_http: bool = False) -> Iterator[Item]:
    """Yields the pictures that `paths` name, in the order given and sorted inside folders and patterns.

    Folders are searched for images to any depth. A file is what its name's ending says: a list, an archive, a PAGE or
    ALTO file, else an image. A path that exists is taken as it is, even when it holds `*`, `?` or `[`.

    Args:
        paths: Files, folders, patterns (`**` matches any depth) and URIs.
        allow_http: Whether web addresses may be read.

    Raises:
        InputError: If a path does not exist, a pattern matches nothing, or a file is not what its name says.
    """
    for path in paths:
        if is_uri(path):
            check_allowed(path, allow_http=allow_http)
            for file in find_remote(path):
                yield from _items_in(file, allow_http)
            continue
        for match in _matches(path):
            if os.path.isdir(match):
                for file in _walked(match):
                    yield from _images_in(file)
            else:
                yield from _items_in(match, allow_http)


def check_paths(paths: Sequence[str], *, allow_http: bool = False) -> None:
    """Raises InputError now for what `items_of` would only find out in the middle of the job."""
    if not paths:
        raise InputError("no input: name at least one image, folder, list or pattern")
    for path in paths:
        if is_uri(path):
            check_allowed(path, allow_http=allow_http)
        else:
            next(iter(_matches(path)))


def names_pages(paths: Iterable[str]) -> bool:
    """Whether a PAGE or ALTO file may be among what `paths` name; a folder is searched for pictures alone."""
    return any(
        _may_match_pages(path)
        if is_uri(path)
        else any(suffix_of(match) == _PAGES and not os.path.isdir(match) for match in _matches(path))
        for path in paths
    )


def _may_match_pages(uri: str) -> bool:
    """Whether a URI's name allows for such a file: a storage is not asked twice what a pattern matches."""
    suffix = suffix_of(uri)
    return suffix == _PAGES or (glob.has_magic(uri) and (not suffix or glob.has_magic(suffix)))


def paths_from_list(stream: BinaryIO) -> Iterator[str]:
    """Yields one path a line of `stream`; blank lines are skipped. Paths are neither searched nor matched."""
    for line in stream:
        path = os.fsdecode(line.rstrip(b"\r\n"))  # names of files are bytes, and need not be UTF-8
        if path.strip():
            yield path


def _items_in(file: str, allow_http: bool) -> Iterator[Item]:
    suffix = suffix_of(file)
    if file.lower().endswith(_COMPRESSED):
        raise InputError(f"{file}: a compressed tar file can't be read in part; unpack it, or compress it no more")
    if suffix in _MANIFESTS:
        return read_manifest(file, allow_http=allow_http)
    if suffix == ".parquet":
        return read_parquet(file, allow_http=allow_http)
    if suffix == ".tar":
        return read_tar(file)
    if suffix == ".zip":
        return read_zip(file)
    if suffix == _PAGES:
        return read_page_lines(file)
    return _images_in(file)


def _images_in(file: str) -> Iterator[Item]:
    """Yields the picture of a file, or those of its pages."""
    if suffix_of(file) in TIFF_SUFFIXES and not is_uri(file):
        pages = pages_of(file)
        if pages != [1]:
            yield from (Item(member_id(file, page), TiffPicture(file, page)) for page in pages)
            return
    yield Item(printable(file), FilePicture(file))


def _walked(folder: str) -> Iterator[str]:
    try:
        yield from walk(folder)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: cannot be listed: {error.strerror}") from error


def _matches(path: str) -> Iterator[str]:
    if os.path.lexists(path):
        yield path
        return
    if not glob.has_magic(path):
        raise InputError(f"{path}: no such file or folder")
    matches = sorted(glob.glob(path, recursive=True))
    if not matches:
        raise InputError(f"{path}: the pattern matches nothing")
    yield from matches
