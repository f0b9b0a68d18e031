"""The lines of PAGE and ALTO files, each to be cut from the picture of its page."""

from __future__ import annotations

from collections.abc import Iterator

from glyphline.service.jobs.errors import InputError
from glyphline.service.jobs.items import Item
from glyphline.service.jobs.names import member_id
from glyphline.service.jobs.pages import find_page, lines_of
from glyphline.service.jobs.pictures import CutPicture, FilePicture, Picture, RefusedPicture
from glyphline.service.jobs.rows import printable
from glyphline.service.jobs.storage import open_binary

__all__ = ["read_page_lines"]


def read_page_lines(path: str) -> Iterator[Item]:
    """Yields the lines of one file, in its order. Their present texts, where they have any, are their references.

    Raises:
        InputError: If it is neither PAGE nor ALTO.
    """
    try:
        with open_binary(path) as stream:
            content = stream.read()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    found: dict[str, str | None] = {}
    for number, line in enumerate(lines_of(content, path)):
        if line.stated not in found:
            found[line.stated] = find_page(path, line.stated)
        page = found[line.stated]
        picture: Picture
        if page is None:
            picture = RefusedPicture(path, "file_not_found", f"the picture of its page, {line.stated!r}, is not there")
        elif not line.outline:
            picture = RefusedPicture(page, "image", "the line has neither polygon nor box, nor a baseline among others")
        else:
            picture = CutPicture(FilePicture(page), line.outline, line.size)
        yield Item(member_id(path, printable(line.label)), picture, line.text, path, number)
