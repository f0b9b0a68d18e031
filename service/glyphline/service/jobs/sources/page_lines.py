"""The lines of PAGE and ALTO files, each to be cut from the picture of its page."""

from __future__ import annotations

from collections.abc import Iterator

from glyphline.models.errors import PageError
from glyphline.models.pages import PageLine, find_page, lines_of, picture_name
from glyphline.service.jobs.errors import InputError
from glyphline.service.jobs.items import Item
from glyphline.service.jobs.names import member_id
from glyphline.service.jobs.pictures import CutPicture, FilePicture, Picture, RefusedPicture
from glyphline.service.jobs.rows import printable
from glyphline.service.jobs.storage import is_uri, open_binary

__all__ = ["read_page_lines"]


def read_page_lines(path: str) -> Iterator[Item]:
    """Yields the lines of one file, in its order. Their present texts, where they have any, are their references.

    Raises:
        InputError: If it is neither PAGE nor ALTO.
    """
    try:
        with open_binary(path) as stream:
            lines = lines_of(stream.read(), path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except PageError as error:
        raise InputError(str(error)) from error
    pages = {stated: _find_page(path, stated) for stated in dict.fromkeys(line.stated for line in lines)}
    for number, line in enumerate(lines):
        picture = _picture(path, line, pages[line.stated])
        yield Item(member_id(path, printable(line.label)), picture, line.text, path, number)


def _find_page(path: str, stated: str) -> str | None:
    """Finds the picture of a page; on a storage by its name alone, as asking for every name that could be is slow."""
    if not is_uri(path):
        return find_page(path, stated)
    name = picture_name(stated)
    return f"{path.rpartition('/')[0]}/{name}" if name else None


def _picture(path: str, line: PageLine, page: str | None) -> Picture:
    if page is None:
        return RefusedPicture(path, "file_not_found", f"the picture of its page, {line.stated!r}, is not there")
    if not line.outline:
        return RefusedPicture(page, "image", f"{path}, line {line.line}: {line.fault}")
    return CutPicture(FilePicture(page), line.outline, line.size)
