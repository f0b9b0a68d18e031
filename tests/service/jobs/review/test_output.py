"""A job's rows are read back, whatever they were written as and however far the job is."""

import csv
import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from glyphline.service.jobs import InputError
from glyphline.service.jobs.beginning import SCHEMA, SETTINGS, SUMMARY
from glyphline.service.jobs.disk import Disk
from glyphline.service.jobs.review import open_output
from glyphline.service.jobs.sinks.parquet import write_parquet
from glyphline.service.jobs.sinks.table import write_csv

MakeRow = Callable[..., dict[str, Any]]


@pytest.fixture
def rows(row: MakeRow) -> list[dict[str, Any]]:
    return [
        row("a.png", "1\t\n\"2'", 0.25, reference="é,", tokens=[{"text": "1", "confidence": 0.5, "span": [0.0, 1.5]}]),
        row("b.tif#2", "", 0.75, place={"page": 2}, crop={"points": [[0, 0], [4, 4]]}),
        row("c.png", None),
    ]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return path


def begin(job: Path, **settings: object) -> None:
    job.mkdir(parents=True, exist_ok=True)
    (job / SETTINGS).write_text(json.dumps({"schema": SCHEMA, "settings": settings}))


def told(rows: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """What of rows is the same in all formats."""
    kept = ("id", "source", "text", "confidence", "error", "reference", "place", "crop", "version")
    return [{name: row[name] for name in kept if row.get(name) is not None} for row in rows]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_all_formats_give_the_same_rows(tmp_path: Path, rows: list[dict[str, Any]], suffix: str) -> None:
    segment = write(tmp_path / "rows.jsonl", rows)
    target = tmp_path / f"out.{suffix}"
    if suffix == "csv":
        write_csv(segment, target, Disk())
    elif suffix == "parquet":
        if find_spec("pyarrow") is None:
            pytest.skip("needs the extra `parquet`")
        write_parquet(segment, target, Disk())
    else:
        segment.rename(target)
    output = open_output(str(target))
    assert told(output) == told(rows)
    first = next(iter(output))
    assert [(token["text"], token["confidence"]) for token in first["tokens"]] == [("1", 0.5)]
    assert output.finished


def test_a_job_that_is_not_finished_has_its_rows_so_far(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    folder = tmp_path / "out"
    begin(folder / "_job", format="csv", folder="/scans", max_pixels=7)
    write_csv(write(tmp_path / "first", rows[:1]), folder / "part-000000.csv", Disk())
    write(folder / "_job" / "rows-000000.jsonl", rows[:1])  # published, and not removed before a crash
    with write(folder / "_job" / "rows-000001.jsonl", rows[1:]).open("a") as stream:
        stream.write('{"id": "half')
    (folder / ".part-000001.csv.new").write_text("half")
    (folder / "notes.csv").write_text("none of ours")
    output = open_output(str(folder))
    assert not output.finished
    assert [row["id"] for row in output] == [row["id"] for row in rows]
    assert output.limits.max_pixels == 7
    assert output.located(rows[0])["source"] == "/scans/a.png"
    assert output.located({"source": "s3://bucket/a.png"})["source"] == "s3://bucket/a.png"


def test_a_finished_job_without_its_folder_and_with_it(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    path = write(tmp_path / "out.jsonl", rows)
    assert open_output(str(path)).located(rows[0])["source"] == "a.png"
    begin(tmp_path / "out.jsonl.job", format="jsonl", folder="/scans")
    (tmp_path / "out.jsonl.job" / SUMMARY).write_text("{}")
    assert open_output(str(path)).finished


def test_the_first_rows_of_a_job_into_a_file(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    begin(tmp_path / "out.csv.job", format="csv")
    with pytest.raises(InputError, match="no rows yet"):
        open_output(str(tmp_path / "out.csv"))
    write(tmp_path / "out.csv.job" / "rows-000000.jsonl", rows)
    assert told(open_output(str(tmp_path / "out.csv"))) == told(rows)


def test_filled_pages(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    write(tmp_path / "filled" / "rows.jsonl", rows)
    (tmp_path / "filled" / "p.xml").write_text("<PcGts/>")
    assert told(open_output(str(tmp_path / "filled"))) == told(rows)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("none.jsonl", None, "no output"),
        ("a.jsonl", '{"text": "1"}\n', "row 1: no row"),
        ("a.jsonl", "[1]\n", "row 1: no row"),
        ("a.jsonl", "text\n", "line 1: not JSON"),
        ("a.csv", "name,text\na,b\n", "row 1: no row"),
        ("a.csv", "id,text,confidence\na,b,much\n", "row 1: no row"),
        ("a.csv", "id,text\n\udcff,b\n", "cannot be read|can be read"),
        ("a.parquet", "text", "not Parquet"),
    ],
)
def test_what_is_no_output_is_told(tmp_path: Path, name: str, content: str | None, reason: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    if name.endswith(".parquet") and find_spec("pyarrow") is None:
        pytest.skip("needs the extra `parquet`")
    with pytest.raises(InputError, match=reason):
        list(open_output(str(tmp_path / name)))


def test_long_lines_fit_into_a_cell(tmp_path: Path, row: MakeRow) -> None:
    tokens = [{"text": "1", "confidence": 0.123456, "span": [0.0, 1.5]}] * 4_000
    write_csv(write(tmp_path / "rows", [row("a", "1" * 4_000, tokens=tokens)]), tmp_path / "out.csv", Disk())
    before = csv.field_size_limit(131_072)
    try:
        assert [len(each["tokens"]) for each in open_output(str(tmp_path / "out.csv"))] == [4_000]
    finally:
        csv.field_size_limit(before)


def test_a_name_that_does_not_tell_the_format(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    write_csv(write(tmp_path / "rows.jsonl", rows), tmp_path / "texts.txt", Disk())
    begin(tmp_path / "texts.txt.job", format="csv")
    assert [row["id"] for row in open_output(str(tmp_path / "texts.txt"))] == [row["id"] for row in rows]
