"""The lines of PAGE and ALTO files, each to be cut from the picture of its page."""

from __future__ import annotations

from collections.abc import Iterator

from glyphline.models.cut import PAGE_LIMITS
from glyphline.models.errors import PageError
from glyphline.models.pages import PageLine, find_page, lines_of, picture_name
from glyphline.service.jobs.items import Item
from glyphline.service.jobs.names import member_id
from glyphline.service.jobs.pictures import CutPicture, FilePicture, Picture, RefusedPicture, fetch
from glyphline.service.jobs.rows import RowError, printable
from glyphline.service.jobs.storage import is_uri

__all__ = ["read_page_lines"]


def read_page_lines(path: str) -> Iterator[Item]:
    """Yields the lines of one file, in its order. Their present texts, where they have any, are their references.

    A file that cannot be read is one picture that cannot be: one of thousands must not stop the job.

    Raises:
        InputError: If what would read it is not installed.
    """
    lines = _lines(path)
    if isinstance(lines, RowError):
        yield Item(printable(path), RefusedPicture(path, lines.code, lines.message))
        return
    pages = {stated: _find_page(path, stated) for stated in dict.fromkeys(line.stated for line in lines)}
    for number, line in enumerate(lines):
        picture = _picture(path, line, pages[line.stated])
        yield Item(member_id(path, printable(line.label)), picture, line.text, path, number)


def _lines(path: str) -> list[PageLine] | RowError:
    content = fetch(FilePicture(path), PAGE_LIMITS)
    if isinstance(content, RowError):
        return content
    assert isinstance(content, bytes), "a file of its own is read as it is"
    try:
        return lines_of(content, path)
    except PageError as error:
        return RowError("undecodable_page", str(error))


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
