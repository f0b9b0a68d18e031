"""`glyphline review`: from a job to a page, and from the page's labels to a model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from glyphline.cli.exit_codes import ExitCode

Command = Callable[..., subprocess.CompletedProcess[str]]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return path


@pytest.fixture
def rows(strips: list[tuple[Path, str]], tmp_path: Path) -> list[dict[str, Any]]:
    """Rows of a job that was run in the test's folder: the more of them, the surer."""
    (tmp_path / "scans").mkdir()
    made: list[dict[str, Any]] = []
    for number, (path, text) in enumerate(strips[:5]):
        name = f"scans/{number}{path.suffix}"
        shutil.copyfile(path, tmp_path / name)
        made.append({"id": name, "source": name, "text": text, "confidence": 0.5 + number / 10, "error": None})
    error = {"code": "empty_image", "message": "the file is empty"}
    made.append({"id": "scans/e.png", "source": "scans/e.png", "text": None, "confidence": None, "error": error})
    return made


def ids_of(page: Path) -> list[str]:
    data = page.read_text(encoding="utf-8").partition('id="data">')[2].partition("</script>")[0]
    return [row["id"] for row in json.loads(data)["rows"]]


def test_without_references_it_is_the_least_sure(invoke: Command, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    write(tmp_path / "out.jsonl", rows[::-1])
    done = invoke("review", "out.jsonl", "--limit", "2", cwd=tmp_path)
    assert done.returncode == ExitCode.OK, done.stderr
    assert ids_of(tmp_path / "review.html") == [rows[0]["id"], rows[1]["id"], "scans/e.png"]
    assert "3 of 6 rows are shown" in done.stderr
    assert "The 2 least sure readings: the confidence from which on 99 % are right is not known" in done.stderr
    again = invoke("review", "out.jsonl", cwd=tmp_path)
    assert again.returncode == ExitCode.USAGE
    assert "--overwrite" in again.stderr
    stated = invoke("review", "out.jsonl", "--below", "0.75", "--overwrite", "--json", cwd=tmp_path)
    assert stated.returncode == ExitCode.OK, stated.stderr
    summary = json.loads(stated.stdout)
    assert (summary["chosen_by"], summary["threshold"]) == ("confidence", 0.75)
    assert summary["shown"] == {"reference": 0, "disagreement": 0, "confidence": 3, "error": 1}


def test_with_references_it_is_what_the_accuracy_asks_for(
    invoke: Command, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    known = [
        {**rows[0], "id": str(number), "confidence": number / 40, "reference": rows[0]["text"] + ("x" * (number < 10))}
        for number in range(40)
    ]
    write(tmp_path / "out.jsonl", known + rows[1:])
    done = invoke("review", "out.jsonl", "--accuracy", "0.9", "--json", cwd=tmp_path)
    assert done.returncode == ExitCode.OK, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["chosen_by"], summary["references"], summary["references_needed"]) == ("references", 40, 30)
    assert summary["threshold"] == 7 / 40  # of the 33 readings from there on 3 are wrong
    assert summary["found"] == {"reference": 10, "disagreement": 0, "confidence": 0, "error": 1}


def test_sentences_read_well_for_none_and_one(invoke: Command, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    write(tmp_path / "errors.jsonl", rows[-1:])
    done = invoke("review", "errors.jsonl", cwd=tmp_path)
    assert done.stderr.startswith("1 of 1 row is shown.\nNo reading for its confidence alone: ")
    write(tmp_path / "sure.jsonl", rows[:1])
    done = invoke("review", "sure.jsonl", "--below", "0", "--overwrite", cwd=tmp_path)
    told = "0 of 1 row is shown.\nReadings with a confidence below 0, as asked. There are none.\n"
    assert done.stderr.startswith(told)


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
def test_names_that_are_not_utf8(invoke: Command, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    name = "scans/caf\\xe9.png"  # as a job writes it
    (tmp_path / rows[0]["source"]).rename(tmp_path / "scans" / os.fsdecode(b"caf\xe9.png"))
    write(tmp_path / "out.jsonl", [{**rows[0], "id": name, "source": name}, *rows[1:]])
    done = invoke("review", "out.jsonl", cwd=tmp_path)
    assert done.returncode == ExitCode.OK, done.stderr
    assert name in ids_of(tmp_path / "review.html")
    (tmp_path / "labels.tsv").write_text(f"{name}\t12\n")
    done = invoke("review", "out.jsonl", "--labels", "labels.tsv", "--dataset", "set", cwd=tmp_path)
    assert done.returncode == ExitCode.OK, done.stderr
    assert [path.stem for path in (tmp_path / "set" / "scans").iterdir()] == ["caf_e9"]


def test_against_another_job(invoke: Command, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    write(tmp_path / "out.jsonl", rows)
    other = [{**rows[4], "text": "other"}, *rows[1:4]]
    write(tmp_path / "other.jsonl", other)
    write(tmp_path / "strange.jsonl", [{**rows[0], "id": "strange"}])
    compared = ("review", "out.jsonl", "--below", "0", "--against")
    done = invoke(*compared, "other.jsonl", "-o", "page.html", cwd=tmp_path)
    assert done.returncode == ExitCode.OK, done.stderr
    assert ids_of(tmp_path / "page.html") == [rows[4]["id"], "scans/e.png"]
    assert "Readings that differ from those of other.jsonl: 1. Rows that are not in it: 2." in done.stderr
    refused = invoke(*compared, "strange.jsonl", cwd=tmp_path)
    assert refused.returncode == ExitCode.USAGE
    assert "give a job of the same inputs" in refused.stderr


def test_pictures_that_are_gone_are_told(invoke: Command, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    write(tmp_path / "out.jsonl", rows)
    (tmp_path / rows[2]["source"]).unlink()
    done = invoke("review", "out.jsonl", cwd=tmp_path)
    assert done.returncode == ExitCode.IMAGES
    assert f"1 picture could not be had again: {rows[2]['id']}" in done.stderr
    assert len(ids_of(tmp_path / "review.html")) == 6


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["none.jsonl"], "no output of `glyphline transcribe`"),
        (["out.jsonl", "--accuracy", "1"], "above 0 and below 1"),
        (["out.jsonl", "--below", "-1"], "give a confidence"),
        (["out.jsonl", "--below", "0.9", "--accuracy", "0.9"], "choose one"),
        (["out.jsonl", "--labels", "labels.tsv"], "belong together"),
        (["out.jsonl", "--labels", "l.tsv", "--dataset", "d", "--limit", "3"], "--limit is for the page"),
        (["out.jsonl", "--labels", "none.tsv", "--dataset", "d"], "none.tsv"),
        (["out.jsonl", "-o", "scans"], "is a folder"),
        (["out.jsonl", "-o", "out.jsonl", "--overwrite"], "ends in .html"),
        (["out.jsonl", "-o", "no/page.html"], "create it first"),
    ],
)
def test_mistakes_are_explained(
    invoke: Command, rows: list[dict[str, Any]], tmp_path: Path, arguments: list[str], reason: str
) -> None:
    write(tmp_path / "out.jsonl", rows)
    before = set(tmp_path.iterdir())
    done = invoke("review", *arguments, cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert reason in done.stderr
    assert set(tmp_path.iterdir()) == before


def test_labels_become_a_data_set(invoke: Command, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    write(tmp_path / "out.jsonl", rows)
    (tmp_path / "labels.tsv").write_text(f"{rows[0]['id']}\t{rows[0]['text']}\n{rows[1]['id']}\t99\n")
    done = invoke("review", "out.jsonl", "--labels", "labels.tsv", "--dataset", "set", "--json", cwd=tmp_path)
    assert done.returncode == ExitCode.OK, done.stderr
    assert json.loads(done.stdout) == {"output": "set", "pictures": 2, "changed": 1, "without_picture": 0}
    (tmp_path / rows[0]["source"]).unlink()
    lost = invoke("review", "out.jsonl", "--labels", "labels.tsv", "--dataset", "other", cwd=tmp_path)
    assert lost.returncode == ExitCode.IMAGES
    assert "1 picture, corrected, is in other" in lost.stderr
