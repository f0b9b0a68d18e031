"""Files on this machine and, with the extra `remote`, wherever fsspec reaches: s3, gs, az, http and others."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, BinaryIO, cast

from glyphline.service.jobs.errors import InputError
from glyphline.service.jobs.names import is_picture

__all__ = ["check_allowed", "find_remote", "is_uri", "join", "open_binary"]

_URI = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_OPEN_WEB = ("http://", "https://")


def is_uri(location: str) -> bool:
    """Whether it is a URI, as `s3://bucket/a.png`, and no path."""
    return _URI.match(location) is not None


def check_allowed(location: str, *, allow_http: bool) -> None:
    """Makes sure that a web address is read only where that was allowed: a list of addresses may be anybody's.

    Raises:
        InputError: If it is one and they are not allowed.
    """
    if not allow_http and location.lower().startswith(_OPEN_WEB):
        raise InputError(f"{location}: web addresses are read only with --allow-http")


def join(folder: str, name: str) -> str:
    """Returns where a name of a list lies: below the list's folder, unless it is absolute or a URI."""
    if is_uri(name):
        return name
    if is_uri(folder):
        return name if name.startswith("/") else f"{folder.rstrip('/')}/{name}"
    return os.path.join(folder, name)


def open_binary(location: str) -> BinaryIO:
    """Opens a file for reading.

    A path must lead to a regular file: a pipe would keep the job waiting for as long as nobody writes to it.

    Raises:
        OSError: If it cannot be opened.
        InputError: If it is a URI and what reads it is not installed.
    """
    if is_uri(location):
        system, path = _filesystem(location)
        return cast("BinaryIO", system.open(path, "rb"))
    try:
        stream = open(location, "rb", opener=_open_at_once)  # noqa: SIM115  (the caller closes it)
    except IsADirectoryError as error:
        raise IsADirectoryError(error.errno, "is a folder") from error
    except FileNotFoundError as error:
        if os.path.islink(location):
            raise FileNotFoundError(error.errno, "is a link to nothing") from error
        raise
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(0, "is not a regular file")
    return stream


def find_remote(uri: str) -> Iterator[str]:
    """Yields the files that a URI names: itself, those that its pattern matches, or those below it in order.

    Args:
        uri: A file, a pattern or a folder. A file that is named or matched is taken whatever its name.

    Raises:
        InputError: If there is no such thing, or the storage cannot be reached.
    """
    system, path = _filesystem(uri)
    try:
        if any(mark in path for mark in "*?["):
            matches = sorted(str(match) for match in system.glob(path))
            if not matches:
                raise InputError(f"{uri}: the pattern matches nothing")
            yield from (str(system.unstrip_protocol(match)) for match in matches)
        elif system.isdir(path):
            yield from (str(system.unstrip_protocol(match)) for match in _walk(system, path))
        elif system.exists(path):
            yield uri
        else:
            raise InputError(f"{uri}: no such file or folder")
    except InputError:
        raise
    except Exception as error:  # each storage has its own
        raise InputError(f"{uri}: cannot be looked into: {_reason(error)}") from error


def _walk(system: Any, folder: str) -> Iterator[str]:  # noqa: ANN401  (fsspec has no types)
    """Yields a folder's files in the order of their names, one folder's listing at a time."""
    entries = sorted(system.ls(folder, detail=True), key=lambda entry: str(entry["name"]))
    for entry in entries:
        name = str(entry["name"])
        base = name.rstrip("/").rpartition("/")[2]
        if base.startswith(".") or name.rstrip("/") == folder.rstrip("/"):
            continue
        if entry["type"] == "directory":
            yield from _walk(system, name)
        elif is_picture(base):
            yield name


@lru_cache(maxsize=64)
def _system(protocol: str) -> Any:  # noqa: ANN401  (fsspec has no types)
    """Returns fsspec's reader of a protocol; it keeps its connections."""
    try:
        import fsspec  # noqa: PLC0415  (of the extra `remote`, which only URIs need)
    except ImportError as error:
        raise InputError(f"{protocol}:// needs fsspec: pip install 'glyphline[remote]'") from error
    try:
        return fsspec.filesystem(protocol)
    except (ImportError, ValueError) as error:
        raise InputError(f"{protocol}:// cannot be read: {error}") from error


def _filesystem(uri: str) -> tuple[Any, str]:
    system = _system(uri.partition("://")[0].lower())
    return system, str(system._strip_protocol(uri))


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def _open_at_once(path: str, flags: int) -> int:
    """Opens a file; a pipe without a writer does not keep it waiting."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # Windows has neither the flag nor such pipes
