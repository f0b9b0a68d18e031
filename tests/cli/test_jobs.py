"""`glyphline transcribe` as a job: going on, other formats, inputs that are no folders, and what is told of it."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tarfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from glyphline.cli import progress
from glyphline.cli.exit_codes import ExitCode

Command = Callable[..., subprocess.CompletedProcess[str]]


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def scans(tmp_path: Path, strips: list[tuple[Path, str]]) -> Path:
    folder = tmp_path / "scans"
    folder.mkdir()
    for number, (path, _) in enumerate(strips[:6]):
        (folder / f"{number}{path.suffix}").write_bytes(path.read_bytes())
    return folder


def test_a_job_is_done_once(invoke: Command, scans: Path, tmp_path: Path) -> None:
    arguments = ["transcribe", "scans", "-o", "out.csv", "--workers", "1", "--quiet"]
    assert invoke(*arguments, "--resume", cwd=tmp_path).returncode == ExitCode.OK
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as lines:
        assert len(list(csv.DictReader(lines))) == 6
    again = invoke(*arguments, "--resume", "--json", cwd=tmp_path)
    assert (again.returncode, json.loads(again.stdout)["images"]) == (ExitCode.OK, 6)
    assert "complete already" in again.stderr
    first = next(scans.iterdir())
    late = first.with_stem("late")
    late.write_bytes(first.read_bytes())
    grown = invoke(*arguments, "--resume", cwd=tmp_path)
    assert grown.returncode == ExitCode.USAGE
    assert "complete with 6 rows, and the inputs name 7 images now" in grown.stderr
    late.unlink()
    refused = invoke(*arguments, cwd=tmp_path)
    assert refused.returncode == ExitCode.USAGE
    assert "exists already" in refused.stderr
    changed = invoke(*arguments, "--resume", "--allowed", "01", cwd=tmp_path)
    assert changed.returncode == ExitCode.USAGE
    assert "allowed was None and is '01'" in changed.stderr
    summary = json.loads((tmp_path / "out.csv.job" / "summary.json").read_text())
    assert summary["settings"]["inputs"] == ["scans"]
    assert re.fullmatch("[0-9a-f]{64}", summary["settings"]["sha256"])


def test_lists_archives_and_crops(invoke: Command, scans: Path, tmp_path: Path, strips: list[tuple[Path, str]]) -> None:
    strip = Image.open(strips[0][0]).convert("L")
    page = Image.new("L", (strip.width + 40, strip.height + 40), 150)
    page.paste(strip, (20, 20))
    page.save(tmp_path / "page.png")
    (tmp_path / "list.csv").write_text(f"path,id,text,x,y,w,h\npage.png,crop,1,20,20,{strip.width},{strip.height}\n")
    with tarfile.open(tmp_path / "shard.tar", "w") as archive:
        archive.add(strips[1][0], "0.png")
        info = tarfile.TarInfo("0.txt")
        info.size = len(strips[1][1].encode())
        archive.addfile(info, io.BytesIO(strips[1][1].encode()))
    inputs = ["list.csv", "shard.tar"]
    planned = invoke("transcribe", *inputs, "--dry-run", "--json", cwd=tmp_path)
    assert json.loads(planned.stdout) | {"output": None} == {
        "images": 2,
        "references": 2,
        "first": "crop",
        "output": None,
        "format": "jsonl",
    }
    done = invoke("transcribe", *inputs, "-o", "out.jsonl", "--workers", "1", "-q", cwd=tmp_path)
    assert done.returncode == ExitCode.OK, done.stderr
    crop, member = rows_of(tmp_path / "out.jsonl")
    assert (crop["id"], crop["text"], crop["source"]) == ("crop", strips[0][1], "page.png")
    assert (member["id"], member["text"], member["reference"]) == ("shard.tar#0.png", strips[1][1], strips[1][1])


def test_pages_come_back_with_their_texts(invoke: Command, tmp_path: Path, strips: list[tuple[Path, str]]) -> None:
    strip = np.asarray(Image.open(strips[0][0]).convert("L"))
    page = np.full((strip.shape[0] + 40, strip.shape[1] + 40), 150, np.uint8)
    page[20:-20, 20:-20] = strip
    Image.fromarray(page).save(tmp_path / "p.png")
    right, bottom = 19 + strip.shape[1], 19 + strip.shape[0]
    (tmp_path / "p.xml").write_text(
        f'<PcGts><Page imageFilename="p.png"><TextLine id="a"><Coords points="20,20 {right},20 {right},{bottom}'
        f' 20,{bottom}"/></TextLine></Page></PcGts>'
    )
    (tmp_path / "broken.xml").write_text("<PcGts>")
    done = invoke("transcribe", "*.xml", "-o", "filled", "--format", "xml", "--workers", "1", "-q", cwd=tmp_path)
    assert done.returncode == ExitCode.IMAGES, done.stderr
    assert f"<Unicode>{strips[0][1]}</Unicode>" in (tmp_path / "filled" / "p.xml").read_text()
    broken, row = rows_of(tmp_path / "filled" / "rows.jsonl")
    assert row["line"] == {"file": "p.xml", "number": 0}
    assert (broken["id"], broken["error"]["code"], "line" in broken) == ("broken.xml", "undecodable_page", False)
    assert "broken.xml is not XML" in broken["error"]["message"]


def test_what_a_job_tells_of_itself(invoke: Command, scans: Path, tmp_path: Path, monkeypatch: Any) -> None:  # noqa: ANN401
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0)
    done = invoke(
        *("transcribe", "scans", "-o", "out.jsonl", "--workers", "1", "--progress", "json"),
        *("--metrics-textfile", "job.prom", "--metrics-port", "0", "--limit", "4"),
        cwd=tmp_path,
    )
    assert done.returncode == ExitCode.OK, done.stderr
    lines = done.stderr.splitlines()
    (told,) = (json.loads(line) for line in lines if line.startswith("{"))
    assert told["images"] == 4
    assert told.keys() == {"images", "failed", "total", "images_per_second", "remaining_seconds", "cer"}
    assert any("metrics at http://127.0.0.1:" in line for line in lines)
    assert 'glyphline_job_images_total{outcome="read"} 4.0' in (tmp_path / "job.prom").read_text()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--resume", "--overwrite"], "choose one"),
        (["--sample", "2"], "a share between 0 and 1"),
        (["--timeout", "5"], "--timeout is for --server"),
        (["--server", "localhost:1", "--workers", "1"], "--workers is for reading here"),
        (["--output", "-", "--format", "csv"], "needs a file or folder"),
        (["--output", "-", "--resume"], "is not kept"),
        (["--metrics-textfile", "no/where.prom"], "--metrics-textfile"),
        (["--metrics-textfile", "job.txt"], "end in .prom"),
        (["--output", "out.txt"], "out.txt: .txt is the ending of no format; name a file that ends in .jsonl, .csv"),
        (["--output", "out", "--format", "xml"], "no input is one: name them, as 'pages/*.xml'"),
        (["--output", "out", "--format", "xml", "--dry-run"], "no input is one"),
        (["--references", "labels.tsv"], "none of the images is listed in labels.tsv: its names are relative"),
        (["--references", "labels.tsv", "--dry-run"], "none of the images is listed in labels.tsv"),
        (["--metrics-port", "99999"], "--metrics-port"),
        (["--metrics-push", "no such:host:x"], "is a Pushgateway there?"),
        (["http://127.0.0.1:1/a.png"], "--allow-http"),
        (["scans/0.jpg", "scans/../scans/0.jpg", "scans/0.jpg"], "comes twice"),
    ],
)
def test_mistakes_are_explained(
    invoke: Command, scans: Path, tmp_path: Path, arguments: list[str], reason: str
) -> None:
    first = next(scans.iterdir()).name
    (tmp_path / "labels.tsv").write_text("0.png\t1\n")
    given = [argument.replace("0.jpg", first) for argument in arguments]
    paths = [] if any("scans" in argument for argument in given) else ["scans"]
    done = invoke("transcribe", *paths, "-o", "out.jsonl", *given, cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert reason in done.stderr
    assert not [name for name in os.listdir(tmp_path) if name.startswith("out")]


def test_the_output_is_asked_for(invoke: Command, scans: Path) -> None:
    done = invoke("transcribe", scans)
    assert done.returncode == ExitCode.USAGE
    assert "--output" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_a_full_disk_is_told_and_the_job_goes_on(
    environment: dict[str, str], glyphline: Command, scans: Path, tmp_path: Path
) -> None:
    arguments = ["transcribe", "scans", "-o", "out.jsonl", "--workers", "1", "--quiet"]

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_200, 1_200))

    stopped = subprocess.run(
        [sys.executable, "-m", "glyphline", *arguments],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=limit,
        check=False,
    )
    assert stopped.returncode == ExitCode.SYSTEM, stopped.stderr
    assert "File too large; no row was written" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert not (tmp_path / "out.jsonl").exists()
    assert glyphline(*arguments, "--resume", cwd=tmp_path).returncode == ExitCode.OK
    assert len(rows_of(tmp_path / "out.jsonl")) == 6


def test_a_folder_that_cannot_be_written_is_told(
    invoke: Command, scans: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    done = invoke("transcribe", "scans", "-o", "out.jsonl", "-q", cwd=tmp_path)
    assert done.returncode == ExitCode.SYSTEM
    assert "out.jsonl.job: Read-only file system; no row was written" in done.stderr


@pytest.mark.slow
def test_a_command_that_is_killed_goes_on_to_the_same_rows(
    environment: dict[str, str], glyphline: Command, tmp_path: Path, strips: list[tuple[Path, str]]
) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(400):
        path, _ = strips[number % len(strips)]
        (folder / f"{number:03d}{path.suffix}").write_bytes(path.read_bytes())
    arguments = ["transcribe", "many", "--workers", "2", "--quiet"]
    assert glyphline(*arguments, "-o", "whole.jsonl", cwd=tmp_path).returncode == ExitCode.OK
    ledger = tmp_path / "out.jsonl.job" / "ledger.jsonl"
    for moment in ("begun", "written"):
        command = [sys.executable, "-m", "glyphline", *arguments, "-o", "out.jsonl", "--resume"]
        with subprocess.Popen(command, cwd=tmp_path, env=environment) as process:
            while process.poll() is None and not (ledger.exists() and (moment == "begun" or ledger.stat().st_size)):
                time.sleep(0.05)
            process.kill()
    assert glyphline(*arguments, "-o", "out.jsonl", "--resume", cwd=tmp_path).returncode == ExitCode.OK
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_metrics_are_served_while_a_job_runs(environment: dict[str, str], scans: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "glyphline", "transcribe", "--files-from", "-", "-o", "out.jsonl"]
    with subprocess.Popen(
        [*command, "--metrics-port", "0", "--workers", "1"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=tmp_path,
        text=True,
    ) as process:
        assert process.stderr is not None
        match = re.search(r"metrics at (http://\S+)", process.stderr.readline())
        assert match
        with urllib.request.urlopen(match[1]) as answer:
            assert b"glyphline_job_running 1.0" in answer.read()
        process.communicate(f"scans/{next(scans.iterdir()).name}\n")
    assert process.returncode == ExitCode.OK
