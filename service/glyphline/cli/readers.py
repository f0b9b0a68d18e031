"""Two ways to have images read for `glyphline recognize`: in this process, or by a server."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyphline.cli.exit_codes import CommandError

if TYPE_CHECKING:
    from glyphline.models.image import ImageLimits
    from glyphline.service.jobs import Row, RowError

STANDARD_INPUT = "-"
_BATCH = 32


@dataclass(frozen=True, slots=True)
class Picture:
    """One image that was asked for.

    Attributes:
        source: Path, or `-`.
        content: Its bytes, or why there are none.
    """

    source: str
    content: bytes | RowError


@dataclass(frozen=True, slots=True)
class Answer:
    """A picture and what was read from it."""

    picture: Picture
    row: Row


Reader = Callable[[Sequence[Picture]], list["Row"]]


def read_pictures(sources: Iterable[str], reader: Reader, limits: ImageLimits) -> Iterator[Answer]:
    """Yields an answer for each source, in order; a few pictures at a time, so any number of them fits.

    Args:
        sources: Paths; `-` is the standard input.
        reader: Reads the pictures that have content and keeps their order.
        limits: Larger files are not read into memory.
    """
    remaining = iter(sources)
    while batch := [_picture(source, limits) for source in itertools.islice(remaining, _BATCH)]:
        for picture, row in zip(batch, reader(batch), strict=True):
            yield Answer(picture, row)


def _picture(source: str, limits: ImageLimits) -> Picture:
    from glyphline.service.jobs.files import read_content, read_stream

    if source != STANDARD_INPUT:
        return Picture(source, read_content(source, limits))
    if sys.stdin.isatty():
        raise CommandError("- reads a picture from the standard input, and that is the keyboard; add `< FILE`")
    return Picture(source, read_stream(sys.stdin.buffer, limits))
