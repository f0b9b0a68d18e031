"""A job that is stopped at any operation on the disk, and gone on with, ends as if it had not been stopped."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import pytest

from glyphline.models.decoding import Alternative, Reading
from glyphline.service.jobs import Chunk, Item, Journal, Layout, ModelIdentity, RowError, RowFormat, run
from glyphline.service.jobs.beginning import Start
from glyphline.service.jobs.disk import Disk
from glyphline.service.jobs.engines import ReadChunk
from glyphline.service.jobs.errors import OutputError
from glyphline.service.jobs.items import chunks_of
from glyphline.service.jobs.pictures import FilePicture
from glyphline.service.jobs.rows import Outcome
from glyphline.service.jobs.sinks import Format

MODEL = ModelIdentity("digits", 1, None, "greedy")
ITEMS = [Item(f"{number:03d}.png", FilePicture(f"{number:03d}.png"), str(number)) for number in range(19)]
SIZE = 4
ENOUGH = 1_000_000


class Numbers:
    """An engine that reads a number from every id, and fails where it can be divided by seven."""

    model = MODEL

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    def read(self, chunks: Iterable[Chunk], *, in_order: bool) -> Generator[ReadChunk, None, None]:
        for chunk in chunks:
            yield ReadChunk(chunk, [self._outcome(int(item.id[:3])) for item in chunk.items])

    @staticmethod
    def _outcome(number: int) -> Outcome:
        if number % 7 == 0:
            return RowError("undecodable_image", "no image")
        return Reading(f"{number}", number / 100, (Alternative(f"{number}", number / 100, 0.0),))


class Crash(BaseException):
    """The process is gone."""


class FailingDisk(Disk):
    """A disk on which all goes well for a number of operations and nothing after.

    With `power`, a crash takes what was not confirmed along: bytes that were not synced, and half of them that were
    being written.
    """

    def __init__(self, operations: int, *, power: bool = False, error: type[BaseException] = Crash) -> None:
        self.left = operations
        self.power = power
        self.error = error
        self.unconfirmed: dict[str, int] = {}
        self.count = 0

    def _step(self) -> None:
        self.count += 1
        if self.left <= 0:
            if self.power:
                for path, size in self.unconfirmed.items():
                    if os.path.exists(path) and os.path.getsize(path) > size:
                        os.truncate(path, size)
                self.unconfirmed = {}
            raise self.error(28, "No space left on device")
        self.left -= 1

    def append(self, path: Path) -> BinaryIO:
        self._step()
        return super().append(path)

    def write(self, stream: BinaryIO, content: bytes) -> None:
        self.unconfirmed.setdefault(stream.name, os.path.getsize(stream.name))
        if self.left == 0 and not self.power:
            super().write(stream, content[: len(content) // 2])
        self._step()
        super().write(stream, content)

    def sync(self, stream: BinaryIO) -> None:
        self._step()
        self.unconfirmed.pop(stream.name, None)

    def cut(self, path: Path, size: int) -> None:
        self._step()
        os.truncate(path, size)

    def sync_folder(self, path: Path) -> None:
        pass

    def replace(self, source: Path, target: Path) -> None:
        self._step()
        super().replace(source, target)
        self._step()  # it may also stop just behind a rename

    def remove(self, path: Path) -> None:
        self._step()
        super().remove(path)

    def make_folder(self, path: Path) -> None:
        self._step()
        super().make_folder(path)


def layout_at(folder: Path, kind: Format, parts: bool) -> Layout:
    name = "out" if parts else f"out.{kind}"
    return Layout.of(folder / name, kind, folder=parts, part_rows=9)


def transcribe(layout: Layout, start: Start, disk: FailingDisk | None = None, items: Iterable[Item] = ITEMS) -> None:
    with Journal(layout, {"model": "digits"}, start, disk or FailingDisk(ENOUGH), seconds=0) as journal:
        if not journal.finished:
            run(chunks_of(items, SIZE), Numbers(), journal, RowFormat(MODEL))


def contents(layout: Layout) -> dict[str, str]:
    """Digests of everything that is in the output's place."""
    paths = layout.leftovers()
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


CASES: list[tuple[Format, bool]] = [("jsonl", False), ("csv", False), ("jsonl", True), ("parquet", True)]


@pytest.mark.parametrize("power", [False, True])
@pytest.mark.parametrize(("kind", "parts"), CASES)
def test_a_crash_at_any_operation_loses_no_row_and_repeats_none(
    tmp_path: Path, kind: Format, parts: bool, power: bool
) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    (tmp_path / "whole").mkdir()
    whole = layout_at(tmp_path / "whole", kind, parts)
    counting = FailingDisk(ENOUGH)
    transcribe(whole, "new", counting)
    summary = json.loads((whole.job / "summary.json").read_text())
    assert summary["images"] == len(ITEMS)
    step = 9 if kind == "parquet" else 1  # pyarrow writes in many small pieces
    for operations in range(0, counting.count, step):
        folder = tmp_path / str(operations)
        folder.mkdir()
        layout = layout_at(folder, kind, parts)
        with pytest.raises(Crash):
            transcribe(layout, "new", FailingDisk(operations, power=power))
        # And once more, a few operations on: a crash may follow a crash.
        with suppress(Crash):
            transcribe(layout, "resume", FailingDisk(operations % 11, power=power))
        transcribe(layout, "resume", FailingDisk(ENOUGH))
        assert contents(layout) == contents(whole), operations
        again = json.loads((layout.job / "summary.json").read_text())
        assert {**again, "seconds": 0, "images_per_second": 0} == {**summary, "seconds": 0, "images_per_second": 0}
        assert sorted(path.name for path in layout.job.iterdir()) == [
            "job.json",
            "ledger.jsonl",
            "lock",
            "summary.json",
        ]
        shutil.rmtree(folder)


def test_a_crash_while_an_output_is_replaced_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    whole = layout_at(tmp_path / "whole", "jsonl", False)
    whole.output.parent.mkdir()
    transcribe(whole, "new")
    for operations in range(60):
        folder = tmp_path / str(operations)
        folder.mkdir()
        layout = layout_at(folder, "jsonl", False)
        transcribe(layout, "new", items=ITEMS[:3])
        old = contents(layout)
        with suppress(Crash):
            transcribe(layout, "overwrite", FailingDisk(operations))
        assert contents(layout) in (old, contents(whole))
        try:
            transcribe(layout, "resume")
        except OutputError:  # the old job's settings were removed first: nothing of it can be gone on with
            transcribe(layout, "overwrite")
        assert contents(layout) in (old, contents(whole))
        shutil.rmtree(folder)


def test_a_full_disk_stops_the_job_and_loses_nothing(tmp_path: Path) -> None:
    whole = layout_at(tmp_path / "whole", "jsonl", False)
    whole.output.parent.mkdir()
    transcribe(whole, "new")
    for operations in range(0, 40, 3):
        folder = tmp_path / str(operations)
        folder.mkdir()
        layout = layout_at(folder, "jsonl", False)
        with pytest.raises(OSError, match="No space left"):
            transcribe(layout, "new", FailingDisk(operations, error=OSError))
        transcribe(layout, "resume")
        assert contents(layout) == contents(whole)


@pytest.fixture
def stopped(tmp_path: Path) -> Callable[[int], Layout]:
    """Returns a function that stops a job behind some chunks."""

    def stop(chunks: int) -> Layout:
        layout = layout_at(tmp_path, "jsonl", False)
        with Journal(layout, {"model": "digits"}, "new", seconds=0) as journal, suppress(KeyboardInterrupt):
            for done in Numbers().read(journal.remaining(chunks_of(ITEMS, SIZE)), in_order=True):
                if done.chunk.number == chunks:
                    raise KeyboardInterrupt
                run_one(journal, done)
        return layout

    return stop


def run_one(journal: Journal, done: ReadChunk) -> None:
    class One(Numbers):
        def read(self, chunks: Iterable[Chunk], *, in_order: bool) -> Generator[ReadChunk, None, None]:
            yield done

    with suppress(StopIteration):
        output = _Unfinished(journal)
        run([], One(), output, RowFormat(MODEL))


class _Unfinished:
    """A journal that is not told the end."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.tally = journal.tally
        self.tally.images += 1
        self.remaining = journal.remaining
        self.add = journal.add

    def finish(self) -> None:
        pass


def test_inputs_that_have_changed_are_refused(stopped: Callable[[int], Layout]) -> None:
    layout = stopped(3)
    changed = [*ITEMS[:5], Item("new.png", FilePicture("new.png")), *ITEMS[5:]]
    with pytest.raises(Exception, match=r"from '004\.png' to '006\.png' they are not what they were"):
        transcribe(layout, "resume", items=changed)
    with pytest.raises(Exception, match="there are fewer than before"):
        transcribe(layout, "resume", items=ITEMS[:8])
    transcribe(layout, "resume")
    assert len(layout.output.read_text().splitlines()) == len(ITEMS)


def test_items_that_follow_are_no_change(stopped: Callable[[int], Layout]) -> None:
    layout = stopped(3)
    transcribe(layout, "resume", items=[*ITEMS, Item("099.png", FilePicture("099.png"))])
    assert len(layout.output.read_text().splitlines()) == len(ITEMS) + 1
