from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest

from glyphline.service.jobs.disk import Disk
from glyphline.service.jobs.errors import JobError, OutputError
from glyphline.service.jobs.sinks import Format, Layout, choose_format, guess_format, publish

ROWS: list[dict[str, Any]] = [
    {
        "id": "a.png",
        "source": "a.png",
        "text": 'é, "1"',
        "confidence": 0.5,
        "truncated": False,
        "error": None,
        "reference": "e",
        "tokens": [{"text": "é", "confidence": 0.5, "span": [0.0, 2.5]}],
        "alternatives": [{"text": "é", "confidence": 0.5, "log_probability": -1.0, "tokens": []}],
        "model": "digits",
        "version": 2,
        "sha256": "ab",
        "decoder": "greedy",
    },
    {
        "id": "b.zip#1.png",
        "source": "b.zip",
        "place": {"member": "1.png"},
        "crop": {"points": [[0, 1], [2, 3]]},
        "text": None,
        "confidence": None,
        "truncated": None,
        "error": {"code": "empty_image", "message": "no bytes"},
        "model": "digits",
        "version": 2,
        "sha256": None,
        "decoder": "greedy",
    },
]


def published(layout: Layout, rows: list[dict[str, Any]] = ROWS) -> Path:
    layout.job.mkdir(parents=True)
    layout.segment(0).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    publish(layout, 0, Disk())
    publish(layout, 0, Disk())
    return layout.published(0)


def test_csv_has_a_column_for_everything(tmp_path: Path) -> None:
    path = published(Layout.of(tmp_path / "out.csv", "csv", folder=False))
    with path.open(encoding="utf-8", newline="") as lines:
        first, second = csv.DictReader(lines)
    assert (first["text"], first["confidence"], first["truncated"], first["error_code"]) == (
        'é, "1"',
        "0.5",
        "false",
        "",
    )
    assert json.loads(first["tokens"]) == ROWS[0]["tokens"]
    assert (second["text"], second["error_code"], second["error_message"]) == ("", "empty_image", "no bytes")
    assert json.loads(second["place"]) == {"member": "1.png"}
    assert json.loads(second["crop"]) == ROWS[1]["crop"]


def test_parquet_has_types(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    layout = Layout.of(tmp_path / "out", "parquet", folder=True)
    published(layout)
    first, second = parquet.read_table(layout.output).to_pylist()
    assert first["tokens"] == ROWS[0]["tokens"]
    assert first["alternatives"] == ROWS[0]["alternatives"]
    assert (first["version"], first["truncated"], first["error_code"]) == (2, False, None)
    assert (second["text"], second["error_code"], second["sha256"]) == (None, "empty_image", None)


def test_pages_keep_their_paths_and_cannot_leave_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = '<PcGts><Page><TextLine id="a"/><TextLine id="b"/></Page></PcGts>'
    (tmp_path / "work" / "in").mkdir(parents=True)
    (tmp_path / "up.xml").write_text(page)
    (tmp_path / "work" / "in" / "p.xml").write_text(page)
    monkeypatch.chdir(tmp_path / "work")
    rows = [
        {**ROWS[0], "line": {"file": "in/p.xml", "number": 1}},
        {**ROWS[1], "line": {"file": "in/p.xml", "number": 0}},
        {**ROWS[0], "line": {"file": "../up.xml", "number": 0}},
        ROWS[0],
    ]
    layout = Layout.of("out", "xml", folder=True)
    assert published(layout, rows).name == "rows.jsonl"
    assert sorted(os.listdir(layout.output)) == ["_job", "in", "rows.jsonl", "up.xml"]
    filled = (layout.output / "in" / "p.xml").read_text()
    assert filled.startswith('<PcGts><Page><TextLine id="a"/><TextLine id="b"><TextEquiv')


def test_a_page_that_has_changed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{**ROWS[0], "line": {"file": "p.xml", "number": 0}}]
    with pytest.raises(JobError, match=r"p\.xml: No such file.*cannot be filled in"):
        published(Layout.of("out", "xml", folder=True), rows)
    (tmp_path / "p.xml").write_text("<PcGts>")
    with pytest.raises(JobError, match=r"p\.xml is not XML.*cannot be filled in"):
        published(Layout.of("again", "xml", folder=True), rows)


@pytest.mark.parametrize(
    ("output", "stated", "expected"),
    [
        ("out.jsonl", None, ("jsonl", False)),
        ("out.csv", None, ("csv", False)),
        ("out.parquet", None, ("parquet", False)),
        ("out", None, ("jsonl", False)),
        ("out/", None, ("jsonl", True)),
        ("out.csv", "jsonl", ("jsonl", False)),
        ("out", "parquet", ("parquet", True)),
        ("out", "xml", ("xml", True)),
        ("out.NDJSON", None, ("jsonl", False)),
        ("out.txt", "csv", ("csv", False)),
        ("parts.2026/", None, ("jsonl", True)),
    ],
)
def test_the_name_tells_the_format(output: str, stated: Format | None, expected: tuple[str, bool]) -> None:
    assert choose_format(output, stated) == expected


@pytest.mark.parametrize(
    ("output", "advice"),
    [
        ("texts.txt", r"\.jsonl, \.csv or \.parquet, .* --format"),
        ("texts.jsonl.gz", "gz is the ending of no format"),
        ("texts.xml", "add --format xml"),
    ],
)
def test_an_ending_that_is_not_known_is_refused(output: str, advice: str) -> None:
    with pytest.raises(OutputError, match=advice):
        choose_format(output, None)
    assert guess_format(output) == ("jsonl", False), "what is there already may be called anything"
