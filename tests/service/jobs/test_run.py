from __future__ import annotations

import io
import json
from collections.abc import Generator, Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from glyphline.models.decoding import Alternative, Reading
from glyphline.models.image import ImageLimits
from glyphline.service.jobs import (
    Chunk,
    InputError,
    Inputs,
    Item,
    JobError,
    Journal,
    Layout,
    ModelIdentity,
    RowError,
    RowFormat,
    StreamOutput,
    run,
)
from glyphline.service.jobs.engines import ReadChunk
from glyphline.service.jobs.items import chunks_of
from glyphline.service.jobs.pictures import FilePicture, fetch
from glyphline.service.jobs.rows import Outcome

READING = Reading("1", 0.5, (Alternative("1", 0.5, 0.0),))


class Scripted:
    """An engine that says of every item what stands in its id."""

    model = ModelIdentity("digits", 1, None, "greedy")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    def read(self, chunks: Iterable[Chunk], *, in_order: bool) -> Generator[ReadChunk, None, None]:
        for chunk in chunks:
            yield ReadChunk(chunk, [self.outcome(item.id) for item in chunk.items])

    @staticmethod
    def outcome(name: str) -> Outcome:
        return READING if name.startswith("good") else RowError(name.rstrip("0123456789"), "the reason")


def job(names: Iterable[str], size: int = 64) -> list[dict[str, object]]:
    stream = io.BytesIO()
    items = (Item(name, FilePicture(name)) for name in names)
    tally = run(chunks_of(items, size), Scripted(), StreamOutput(stream), RowFormat(Scripted.model))
    rows = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert tally.images == len(rows)
    assert not rows or tally.seconds > 0
    return rows


def test_rows_in_order() -> None:
    rows = job(["good1", "empty_image1", "good2"], 2)
    assert [row["id"] for row in rows] == ["good1", "empty_image1", "good2"]
    assert [row["text"] for row in rows] == ["1", None, "1"]


def test_nothing_to_read_is_an_error() -> None:
    with pytest.raises(InputError, match="no input"):
        job([])


def test_storage_that_is_gone_stops_the_job_before_it_is_taken_for_bad_pictures() -> None:
    with pytest.raises(JobError, match="none of 64 pictures in a row could be opened, file_not_found64 the first"):
        job([*(f"good{number}" for number in range(64)), *(f"file_not_found{number}" for number in range(64, 128))])
    few = [f"permission_denied{number}" for number in range(20)]
    assert len(job(few)) == 20, "a few files may be missing"
    mixed = [f"file_not_found{number}" for number in range(63)] + ["good"]
    assert len(job(mixed)) == 64
    assert len(job(f"undecodable_image{number}" for number in range(64))) == 64


def test_storage_that_goes_between_two_chunks_costs_no_row() -> None:
    names = [*(f"good{number}" for number in range(20)), *(f"unreadable_file{number}" for number in range(60))]
    stream = io.BytesIO()
    items = (Item(name, FilePicture(name)) for name in names)
    with pytest.raises(JobError, match="none of 32 pictures in a row could be opened, unreadable_file0 the first"):
        run(chunks_of(items, 26), Scripted(), StreamOutput(stream), RowFormat(Scripted.model))
    assert not stream.getvalue(), "its chunk is read again as a whole when the storage is back"
    short = [*names[:51], "good"]
    assert len(job(short, 26)) == 52, "it came back, or the pictures are at fault after all"


class Breaking(Scripted):
    """An engine that fetches pictures, and whose machine goes down after some chunks."""

    def __init__(self, chunks: int) -> None:
        self.chunks = chunks

    def read(self, chunks: Iterable[Chunk], *, in_order: bool) -> Generator[ReadChunk, None, None]:
        del in_order
        for done, chunk in enumerate(chunks):
            if done == self.chunks:
                raise JobError("down")
            found = [fetch(item.picture, ImageLimits()) for item in chunk.items]
            yield ReadChunk(chunk, [each if isinstance(each, RowError) else READING for each in found])


def test_a_job_with_a_broken_page_among_others_goes_on_to_the_same_rows(tmp_path: Path) -> None:
    for number in range(6):
        line = '<TextLine id="a"/>' if number != 2 else '<TextLine id="a">'  # which never ends
        (tmp_path / f"{number}.xml").write_text(f'<PcGts><Page imageFilename="p.png">{line * 2}</Page></PcGts>')
    (tmp_path / "extra.png").write_bytes(b"one")
    inputs = Inputs((str(tmp_path / "*.xml"), str(tmp_path / "extra.png")))
    outputs = []
    for name, moments in (("whole", [100]), ("stopped", [1, 1, 100])):
        layout = Layout.of(tmp_path / f"{name}.jsonl", "jsonl", folder=False)
        for moment in moments:
            chunks = chunks_of(_apart(inputs), 3)
            try:
                with Journal(layout, {}, "resume", seconds=0) as journal:
                    run(chunks, Breaking(moment), journal, RowFormat(Scripted.model))
            except JobError:
                assert moment == 1
        outputs.append(layout.output.read_bytes())
    assert outputs[0] == outputs[1]
    errors = [row["error"] and row["error"]["code"] for row in map(json.loads, outputs[0].splitlines())]
    assert len(errors) == 12
    assert errors.count("undecodable_page") == errors.count(None) == 1


def _apart(items: Iterable[Item]) -> Iterable[Item]:
    """Gives the lines of a page, which have one name here, each one of its own."""
    return (replace(item, id=f"{item.id}{item.line}") for item in items)
