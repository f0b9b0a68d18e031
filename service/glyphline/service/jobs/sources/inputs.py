"""What a job reads: its inputs as they were given, and the items that they come to."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from glyphline.service.jobs.errors import InputError
from glyphline.service.jobs.items import Chunk, Item, chunks_of
from glyphline.service.jobs.pictures import FilePicture, Picture, RefusedPicture
from glyphline.service.jobs.references import reference_key
from glyphline.service.jobs.rows import printable
from glyphline.service.jobs.sources.found import check_paths, items_of, names_pages, paths_from_list
from glyphline.service.jobs.sources.identities import Identities
from glyphline.service.jobs.storage import check_allowed

__all__ = ["STANDARD_INPUT", "Inputs", "unlisted"]

STANDARD_INPUT = "-"
_SCALE = 2**64


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a job. Going through them gives the same items in the same order every time.

    Attributes:
        paths: Files, folders, patterns and URIs.
        files_from: A list of paths, one a line, that are read after them; `-` is the standard input.
        references: True texts by `reference_key`, for items that bring none along.
        allow_http: Whether web addresses may be read.
        limit: Most items; None for all.
        sample: Share of the items that is read, chosen by their ids; None for all.
    """

    paths: tuple[str, ...] = ()
    files_from: str | None = None
    references: Mapping[str, str] = field(default_factory=dict)
    allow_http: bool = False
    limit: int | None = None
    sample: float | None = None

    def check(self) -> None:
        """Raises InputError now for a path that the job would stumble over later."""
        if self.paths or self.files_from is None:
            check_paths(self.paths, allow_http=self.allow_http)
        if self.files_from not in (None, STANDARD_INPUT) and not os.path.isfile(str(self.files_from)):
            raise InputError(f"{self.files_from}: no such file")

    def check_pages(self) -> None:
        """Raises InputError if there cannot be a PAGE or ALTO file among them, in which texts could be filled in."""
        if not names_pages(self.paths):
            raise InputError(
                "--format xml fills texts in PAGE and ALTO files, and no input is one: name them, as 'pages/*.xml';"
                " folders are searched for pictures, and --files-from lists pictures"
            )

    def check_references(self, name: object) -> None:
        """Raises InputError if no item has its text in `references`. Goes through them as far as the first that has.

        Args:
            name: What the references are called.
        """
        if self.repeatable and all(self._reference_of(item) is None for item in self):
            raise InputError(unlisted("none of the images", name))

    @property
    def repeatable(self) -> bool:
        """Whether they can be gone through twice."""
        return self.files_from != STANDARD_INPUT

    def describe(self) -> dict[str, Any]:
        """Says what must be the same for a job to go on; names mean what they do in one folder only."""
        return {
            "folder": printable(os.getcwd()),
            "inputs": [printable(path) for path in self.paths],
            "files_from": None if self.files_from is None else printable(self.files_from),
            "references": _digest(self.references),
            "limit": self.limit,
            "sample": self.sample,
        }

    def __iter__(self) -> Iterator[Item]:
        return itertools.islice(self._chosen(), self.limit)

    def count(self) -> int:
        """Goes through all items."""
        return sum(1 for _ in self)

    def chunks(self, size: int) -> Iterator[Chunk]:
        """Yields the items in chunks.

        Raises:
            InputError: If an input cannot be read, or two items have one id.
        """
        known = Identities()
        for chunk in chunks_of(self, size):
            known.add(chunk.items)
            yield chunk

    def _chosen(self) -> Iterator[Item]:
        for item in self._all():
            if self.sample is not None and not _drawn(item.id, self.sample):
                continue
            if item.reference is None and (reference := self._reference_of(item)) is not None:
                item = dataclasses.replace(item, reference=reference)  # noqa: PLW2901
            yield item

    def _reference_of(self, item: Item) -> str | None:
        if not self.references or not isinstance(item.picture, FilePicture):
            return None
        return self.references.get(reference_key(item.picture.source))

    def _all(self) -> Iterator[Item]:
        yield from items_of(self.paths, allow_http=self.allow_http)
        if self.files_from == STANDARD_INPUT:
            yield from map(self._listed, paths_from_list(sys.stdin.buffer))
        elif self.files_from is not None:
            with open(self.files_from, "rb") as lines:
                yield from map(self._listed, paths_from_list(lines))

    def _listed(self, path: str) -> Item:
        picture: Picture = FilePicture(path)
        try:
            check_allowed(path, allow_http=self.allow_http)
        except InputError as error:
            picture = RefusedPicture(path, "address_refused", str(error))
        return Item(printable(path), picture)


def unlisted(images: str, name: object) -> str:
    """Says that images have no text in a file of references, and what to look for."""
    return (
        f"{images} is listed in {name}: its names are relative to its folder, and it must name the very files that"
        " are read"
    )


def _drawn(identity: str, share: float) -> bool:
    """Decides by an id's hash, so that a job draws the same items whenever it runs, and however many there are."""
    digest = hashlib.blake2b(identity.encode("utf-8", "surrogateescape"), digest_size=8, person=b"sample").digest()
    return int.from_bytes(digest, "little") < share * _SCALE


def _digest(references: Mapping[str, str]) -> str | None:
    if not references:
        return None
    content = "\0".join(f"{key}\0{text}" for key, text in sorted(references.items()))
    return hashlib.blake2b(content.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
