import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glyphline.cli.exit_codes import ExitCode

Command = Callable[..., subprocess.CompletedProcess[str]]


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def folder(tmp_path: Path, strips: list[tuple[Path, str]]) -> Path:
    """Good and bad pictures at several depths."""
    root = tmp_path / "scans"
    for name, (path, _) in zip(("b.png", "a/1.png", "a/2.png", "c/чек.png", "z.png"), strips, strict=False):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, root / name)
    (root / "a" / "empty.png").touch()
    (root / "a" / "text.png").write_text("not a picture")
    (root / "c" / "cut.png").write_bytes(strips[0][0].read_bytes()[:60])
    (root / "notes.txt").write_text("left out")
    return root


IN_ORDER = ["a/1.png", "a/2.png", "a/empty.png", "a/text.png", "b.png", "c/cut.png", "c/чек.png", "z.png"]
BAD = {"a/empty.png": "empty_image", "a/text.png": "undecodable_image", "c/cut.png": "undecodable_image"}


def test_a_folder_becomes_rows_in_order(shipped_version: int, glyphline: Command, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    done = glyphline("transcribe", "scans", "--output", output, "--workers", "2", cwd=tmp_path)
    assert done.returncode == ExitCode.IMAGES, done.stderr
    rows = rows_of(output)
    assert [row["source"] for row in rows] == [f"scans/{name}" for name in IN_ORDER]
    for name, row in zip(IN_ORDER, rows, strict=True):
        assert (row["model"], row["version"]) == ("digits", shipped_version)
        assert (row["error"] and row["error"]["code"]) == BAD.get(name)
        assert (row["text"] is None) == (name in BAD)
    read = glyphline("recognize", *(f"scans/{name}" for name in IN_ORDER if name not in BAD), "--json", cwd=tmp_path)
    assert [json.loads(line)["text"] for line in read.stdout.splitlines()] == [
        row["text"] for row in rows if not row["error"]
    ]
    assert "5 of 8 images read" in done.stderr
    assert "2 undecodable_image" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_summary_with_references(glyphline: Command, strips_folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    done = glyphline(
        "transcribe",
        strips_folder,
        "-o",
        output,
        "--references",
        strips_folder / "labels.tsv",
        "--json",
        "--workers",
        "1",
    )
    assert done.returncode == ExitCode.OK, done.stderr
    summary = json.loads(done.stdout)
    rows = rows_of(output)
    assert (summary["images"], summary["failed"], summary["output"]) == (len(rows), 0, str(output))
    assert summary["evaluation"]["images"] == len(rows)
    assert summary["evaluation"]["exact"] == pytest.approx(
        sum(row["text"] == row["reference"] for row in rows) / len(rows), abs=1e-6
    )


def test_references_that_fit_no_image_of_a_list_that_is_read_once(
    invoke: Command, folder: Path, tmp_path: Path
) -> None:
    """Of other inputs it is known, and said, before anything is read."""
    (tmp_path / "labels.tsv").write_text("other.png\t1\n")
    name = str(folder / "b.png").encode()
    done = invoke(
        *("transcribe", "--files-from", "-", "-o", "-", "--references", tmp_path / "labels.tsv", "--workers", "1"),
        stdin=name,
    )
    assert done.returncode == ExitCode.USAGE
    warned, counts, _, error = done.stderr.splitlines()
    assert "no image so far is listed" in warned
    assert error.startswith("glyphline transcribe: all rows are written, but none of the images is listed in ")
    assert re.match(r"1 of 1 image read in [\d.]+ s \([\d.]+ images/s\)$", counts)
    assert not counts.startswith("1 of 1 image read in 0.0 s")
    assert json.loads(done.stdout)["text"] is not None


def test_lists_and_standard_output(glyphline: Command, folder: Path, tmp_path: Path) -> None:
    names = ["scans/b.png", "scans/missing.png", "scans/z.png"]
    done = glyphline("transcribe", "--files-from", "-", "--output", "-", stdin="\n".join(names).encode(), cwd=tmp_path)
    assert done.returncode == ExitCode.IMAGES
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["source"] for row in rows] == names
    assert rows[1]["error"]["code"] == "file_not_found"
    (tmp_path / "list").write_text(names[2])
    done = glyphline("transcribe", names[0], "--files-from", "list", "-o", "-", "-q", cwd=tmp_path)
    assert [json.loads(line)["source"] for line in done.stdout.splitlines()] == names[::2]
    assert done.stderr == ""


def test_alternatives_and_tokens(invoke: Command, folder: Path, tmp_path: Path) -> None:
    invoke("transcribe", folder / "b.png", "-o", tmp_path / "o", "--alternatives", "2", "--tokens")
    (row,) = rows_of(tmp_path / "o")
    assert row["alternatives"][0]["text"] == row["text"]
    assert "".join(token["text"] for token in row["tokens"]) == row["text"]


def test_an_existing_output_is_kept_unless_told_otherwise(invoke: Command, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    output.write_text("old")
    done = invoke("transcribe", folder / "b.png", "-o", output)
    assert done.returncode == ExitCode.USAGE
    assert "--overwrite" in done.stderr
    assert output.read_text() == "old"
    assert invoke("transcribe", folder / "b.png", "-o", output, "--overwrite").returncode == 0
    assert len(rows_of(output)) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        ([], ExitCode.USAGE, "no input"),
        (["missing.png"], ExitCode.USAGE, "missing.png: no such file"),
        (["scans/*.nothing"], ExitCode.USAGE, "matches nothing"),
        (["empty"], ExitCode.USAGE, "no input"),
        (["scans", "--files-from", "missing"], ExitCode.USAGE, "missing: no such file"),
        (["scans", "--references", "missing.tsv"], ExitCode.USAGE, "missing.tsv"),
        (["scans", "--model", "nonsense"], ExitCode.MODEL, "nonsense"),
        (["scans", "--allowed", "€"], ExitCode.USAGE, "€"),
        (["scans", "--json", "--output", "-"], ExitCode.USAGE, "standard output"),
        (["scans", "--output", "no/where.jsonl"], ExitCode.USAGE, "does not exist"),
    ],
)
def test_mistakes_are_explained_and_leave_nothing(
    invoke: Command, folder: Path, *, arguments: list[str], code: ExitCode, reason: str
) -> None:
    tmp_path = folder.parent
    (tmp_path / "empty").mkdir()
    before = sorted(os.listdir(tmp_path))
    done = invoke("transcribe", "--output", "out.jsonl", *arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_references_may_begin_with_a_byte_order_mark(invoke: Command, folder: Path, tmp_path: Path, mark: str) -> None:
    (tmp_path / "labels.tsv").write_text(f"{mark}scans/b.png\t1\n", encoding="utf-8")
    done = invoke(
        "transcribe", folder / "b.png", "-o", tmp_path / "o", "--references", tmp_path / "labels.tsv", "--json"
    )
    assert json.loads(done.stdout)["evaluation"]["images"] == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_does_not_hold_the_job_up(invoke: Command, folder: Path, tmp_path: Path) -> None:
    os.mkfifo(folder / "a" / "0.png")
    done = invoke("transcribe", folder / "a" / "0.png", folder / "b.png", "-o", tmp_path / "o", "--workers", "1")
    assert done.returncode == ExitCode.IMAGES
    first, second = rows_of(tmp_path / "o")
    assert first["error"] == {"code": "unreadable_file", "message": "is not a regular file"}
    assert second["error"] is None


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_without_permission(glyphline: Command, folder: Path, tmp_path: Path) -> None:
    (folder / "b.png").chmod(0)
    assert glyphline("transcribe", folder / "b.png", "-o", tmp_path / "o").returncode == ExitCode.IMAGES
    assert rows_of(tmp_path / "o")[0]["error"]["code"] == "permission_denied"


@pytest.fixture
def picture(tmp_path: Path, encode: Callable[..., bytes]) -> Path:
    """A small picture that is read quickly."""
    path = tmp_path / "blank.png"
    path.write_bytes(encode(np.full((40, 20), 255, np.uint8)))
    return path


@contextmanager
def job_in_progress(picture: Path, output: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Starts a job and holds it in the middle: it has written rows and waits for more names.

    The names are long and a pipe holds 23 of them, so when all 500 are written the job has taken at least 477: more
    than the three chunks of 128 that it reads ahead of its first row.
    """
    names = (f"{picture.parent}/{'./' * (1_400 + number)}{picture.name}\n" for number in range(500))
    with subprocess.Popen(
        [sys.executable, "-m", "glyphline", "transcribe", "--files-from", "-", "-o", output, "--workers", "1"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdin is not None
            process.stdin.write("".join(names).encode())
            process.stdin.flush()
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.TERMINATED)]
)
def test_a_stopped_job_leaves_no_output(
    picture: Path, tmp_path: Path, environment: dict[str, str], number: signal.Signals, code: ExitCode
) -> None:
    output = tmp_path / "out.jsonl"
    with job_in_progress(picture, output, environment) as process:
        os.kill(process.pid, number)
        _, messages = process.communicate()
    assert process.returncode == code, messages
    assert messages.count(b"\n") == 1, messages  # no traceback, nor what Python says of semaphores that are left
    assert not output.exists()
    kept = len(rows_of(tmp_path / "out.jsonl.job" / "rows-000000.jsonl"))
    assert kept >= 128
    assert f"{kept} rows are kept, and --resume goes on" in messages.decode()


def test_ctrl_c_reaches_the_workers_too_and_is_no_matter(
    picture: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    with job_in_progress(picture, tmp_path / "out.jsonl", environment) as process:
        os.killpg(process.pid, signal.SIGINT)
        _, messages = process.communicate()
    assert process.returncode == ExitCode.INTERRUPTED
    assert b"Traceback" not in messages
    assert b"stopped" in messages


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes that are not its own, as Linux can")
def test_a_killed_job_leaves_neither_output_nor_workers(
    picture: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    output = tmp_path / "out.jsonl"
    with job_in_progress(picture, output, environment) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        handles = [os.pidfd_open(int(child)) for child in children]
        process.kill()
        process.communicate()
    assert not output.exists()
    assert handles
    for handle in handles:
        ended, _, _ = select.select([handle], [], [], 30)
        os.close(handle)
        assert ended


def test_a_reader_that_goes_away_ends_the_job_quietly(
    picture: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    names = "\n".join(f"{picture.parent}/{'./' * number}{picture.name}" for number in range(1_000)).encode()
    (tmp_path / "list").write_bytes(names)
    process = subprocess.Popen(
        [sys.executable, "-m", "glyphline", "transcribe", "--files-from", tmp_path / "list", "-o", "-", "-q"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr:
        assert b"Traceback" not in process.stderr.read()
    assert process.wait() == ExitCode.PIPE_CLOSED


def test_workers_by_the_hundred_are_refused(invoke: Command, strips_folder: Path, tmp_path: Path) -> None:
    done = invoke("transcribe", strips_folder, "-o", tmp_path / "out.jsonl", "--workers", "5000")
    assert done.returncode == ExitCode.USAGE
    assert "--workers 5000: at most" in done.stderr
    assert not list(tmp_path.iterdir())
