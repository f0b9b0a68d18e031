from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from glyphline.service.jobs import Chunk, InputError, Item, Journal, Layout, OutputError, Tally
from glyphline.service.jobs.beginning import Start
from glyphline.service.jobs.pictures import FilePicture
from glyphline.service.jobs.rows import RowError

RESTARTS: tuple[Start, ...] = ("resume", "overwrite")
SETTINGS = {"model": "digits", "limits": [1, 2]}


def layout_at(path: Path) -> Layout:
    return Layout.of(path, "jsonl", folder=False)


def chunk(number: int) -> Chunk:
    return Chunk(number, (Item(f"{number}.png", FilePicture(f"{number}.png")),))


def add(journal: Journal, *numbers: int) -> None:
    for number in numbers:
        tally = Tally()
        tally.add(RowError("empty_image", "x"), None)
        journal.add(chunk(number), [json.dumps({"row": number}).encode() + b"\n"], tally)


def stop_after(journal: Journal, *numbers: int) -> None:
    with pytest.raises(KeyboardInterrupt), journal:
        add(journal, *numbers)
        raise KeyboardInterrupt


def rows(layout: Layout) -> list[int]:
    return [json.loads(line)["row"] for line in layout.output.read_text().splitlines()]


def test_the_output_appears_when_it_is_complete(tmp_path: Path) -> None:
    layout = layout_at(tmp_path / "out.jsonl")
    with Journal(layout, SETTINGS, "new") as journal:
        add(journal, 0, 1)
        assert not layout.output.exists()
        journal.finish()
    assert rows(layout) == [0, 1]
    assert sorted(os.listdir(tmp_path)) == ["out.jsonl", "out.jsonl.job"]
    summary = json.loads((layout.job / "summary.json").read_text())
    assert (summary["images"], summary["errors"]) == (2, {"empty_image": 2})


def test_a_stopped_job_goes_on_where_it_was(tmp_path: Path) -> None:
    layout = layout_at(tmp_path / "out.jsonl")
    stop_after(Journal(layout, SETTINGS, "new"), 0, 2)
    with Journal(layout, SETTINGS, "resume") as journal:
        assert journal.kept == 2
        assert [each.number for each in journal.remaining(map(chunk, range(4)))] == [1, 3]
        add(journal, 1, 3)
        journal.finish()
    assert sorted(rows(layout)) == [0, 1, 2, 3]
    with Journal(layout, SETTINGS, "resume") as journal:
        assert journal.finished
        assert journal.tally.images == 4


def test_what_exists_is_refused_before_any_work(tmp_path: Path) -> None:
    layout = layout_at(tmp_path / "out.jsonl")
    layout.output.write_text("old")
    with pytest.raises(OutputError, match="--overwrite"):
        Journal(layout, SETTINGS, "new")
    with pytest.raises(OutputError, match="--overwrite"):
        Journal(layout, SETTINGS, "resume")
    assert layout.output.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_a_job_that_has_begun_is_not_begun_again_by_mistake(tmp_path: Path) -> None:
    layout = layout_at(tmp_path / "out.jsonl")
    stop_after(Journal(layout, SETTINGS, "new"), 0)
    with pytest.raises(OutputError, match="--resume goes on with it"):
        Journal(layout, SETTINGS, "new")
    stop_after(Journal(layout, SETTINGS, "overwrite"), 5)
    with Journal(layout, SETTINGS, "resume") as journal:
        journal.finish()
    assert rows(layout) == [5]


def test_overwriting_replaces_the_old_output_only_at_the_end(tmp_path: Path) -> None:
    layout = layout_at(tmp_path / "out.jsonl")
    layout.output.write_text("old")
    stop_after(Journal(layout, SETTINGS, "overwrite"), 0)
    assert layout.output.read_text() == "old"
    with Journal(layout, SETTINGS, "resume") as journal:
        journal.finish()
    assert rows(layout) == [0]


def test_other_settings_are_refused_with_the_difference(tmp_path: Path) -> None:
    layout = layout_at(tmp_path / "out.jsonl")
    stop_after(Journal(layout, SETTINGS, "new"), 0)
    with pytest.raises(OutputError, match="model was 'digits' and is 'words'; tokens was None and is True"):
        Journal(layout, {**SETTINGS, "model": "words", "tokens": True}, "resume")
    Journal(layout, {**SETTINGS, "limits": (1, 2)}, "resume")  # what JSON cannot tell apart is the same


def test_a_job_that_fails_before_its_first_row_leaves_nothing(tmp_path: Path) -> None:
    for layout in (layout_at(tmp_path / "out.jsonl"), Layout.of(tmp_path / "parts", "jsonl", folder=True)):
        stop_after(Journal(layout, SETTINGS, "new"))
        assert os.listdir(tmp_path) == []


def test_an_output_that_appears_meanwhile_is_not_lost(tmp_path: Path) -> None:
    layout = layout_at(tmp_path / "out.jsonl")
    with pytest.raises(OutputError, match="has appeared meanwhile"), Journal(layout, SETTINGS, "new") as journal:
        add(journal, 0)
        layout.output.write_text("other")
        journal.finish()
    assert layout.output.read_text() == "other"
    layout.output.unlink()
    with Journal(layout, SETTINGS, "resume") as journal:
        journal.finish()
    assert rows(layout) == [0]


@pytest.mark.skipif(os.name == "nt", reason="there are no such locks")
def test_two_processes_cannot_run_one_job(tmp_path: Path) -> None:
    layout = layout_at(tmp_path / "out.jsonl")
    with Journal(layout, SETTINGS, "new") as journal:
        add(journal, 0)
        journal.commit()
        for start in RESTARTS:
            with pytest.raises(OutputError, match="another job"), Journal(layout, SETTINGS, start):
                pass
        journal.finish()
    assert rows(layout) == [0]


def test_a_link_goes_on_pointing_at_its_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "folder" / "real.jsonl")
    with Journal(layout_at(link), SETTINGS, "new") as journal:
        add(journal, 0)
        journal.finish()
    assert link.is_symlink()
    assert (tmp_path / "folder" / "real.jsonl").read_text() == '{"row": 0}\n'


@pytest.mark.parametrize(("name", "reason"), [("missing/out.jsonl", "does not exist"), (".", "not an ordinary file")])
def test_impossible_outputs_are_named(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(OutputError, match=reason):
        Journal(layout_at(tmp_path / name), SETTINGS, "overwrite")


def test_devices_are_not_replaced() -> None:
    with pytest.raises(OutputError, match="not an ordinary file"):
        Journal(layout_at(Path("/dev/null")), SETTINGS, "overwrite")


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    layout = Layout.of(tmp_path, "jsonl", folder=True)
    (tmp_path / "mine.txt").touch()
    for start in ("new", *RESTARTS):
        with pytest.raises(OutputError):
            Journal(layout, SETTINGS, start)
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="is a file"):
        Journal(Layout.of(tmp_path / "file", "jsonl", folder=True), SETTINGS, "new")


def test_overwriting_a_folder_leaves_no_old_part(tmp_path: Path) -> None:
    layout = Layout.of(tmp_path / "out", "jsonl", folder=True, part_rows=1)
    runs: tuple[tuple[Start, tuple[int, ...]], ...] = (("new", (0, 1, 2)), ("overwrite", (7,)))
    for start, numbers in runs:
        with Journal(layout, SETTINGS, start) as journal:
            add(journal, *numbers)
            journal.finish()
    assert sorted(os.listdir(layout.output)) == ["_job", "part-000000.jsonl"]


def test_damage_is_told(tmp_path: Path) -> None:
    layout = layout_at(tmp_path / "out.jsonl")
    stop_after(Journal(layout, SETTINGS, "new", seconds=0), 0, 1)
    ledger, segment = layout.job / "ledger.jsonl", layout.segment(0)
    lines = ledger.read_bytes()
    ledger.write_bytes(b"{}\n" + lines)
    with pytest.raises(OutputError, match=r"ledger\.jsonl, line 1: damaged"), Journal(layout, SETTINGS, "resume"):
        pass
    ledger.write_bytes(lines)
    os.truncate(segment, 5)
    with pytest.raises(OutputError, match="bytes are missing"), Journal(layout, SETTINGS, "resume"):
        pass
    (layout.job / "job.json").write_text("{")
    with pytest.raises(OutputError, match="damaged"):
        Journal(layout, SETTINGS, "resume")
    (layout.job / "job.json").write_text('{"schema": 99}')
    with pytest.raises(OutputError, match="another version"):
        Journal(layout, SETTINGS, "resume")


def test_a_part_of_a_line_does_not_count(tmp_path: Path) -> None:
    layout = layout_at(tmp_path / "out.jsonl")
    stop_after(Journal(layout, SETTINGS, "new", seconds=0), 0, 1)
    ledger = layout.job / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes()[:-20])
    with Journal(layout, SETTINGS, "resume") as journal:
        assert [each.number for each in journal.remaining(map(chunk, range(2)))] == [1]
        add(journal, 1)
        journal.finish()
    assert rows(layout) == [0, 1]


def test_fewer_inputs_are_noticed(tmp_path: Path) -> None:
    layout = layout_at(tmp_path / "out.jsonl")
    stop_after(Journal(layout, SETTINGS, "new"), 0, 1)
    with pytest.raises(InputError, match="fewer"), Journal(layout, SETTINGS, "resume") as journal:
        list(journal.remaining([chunk(0)]))
