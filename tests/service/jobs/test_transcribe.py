import itertools
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding import Reading
from glyphline.models.errors import BundleError
from glyphline.models.recognizer import Recognizer
from glyphline.service.jobs import Job, JobError, RowError, WorkerSettings, load_references, transcribe


class Poison(str):
    """A path whose arrival kills the worker, as a fault in a native library would."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (70,)


@pytest.fixture(scope="module")
def texts(bundle: Path, strips: list[tuple[Path, str]]) -> dict[str, str]:
    """What the model reads in each strip, one at a time."""
    recognizer = Recognizer.load(load_bundle(bundle))
    readings = {str(path): recognizer.recognize([path.read_bytes()])[0] for path, _ in strips}
    return {path: reading.text for path, reading in readings.items() if isinstance(reading, Reading)}


def test_rows_come_in_order_whatever_fails(job: Job, bad_files: dict[str, str], texts: dict[str, str]) -> None:
    good = itertools.cycle(texts)
    sources = [path for bad in bad_files for path in (*itertools.islice(good, 37), bad)]
    rows = list(transcribe(iter(sources), job))
    assert [row.source for row in rows] == sources
    for row in rows:
        if isinstance(row.outcome, RowError):
            assert row.outcome.code == bad_files[row.source]
        else:
            assert row.outcome.text == texts[row.source]
        assert (row.model, row.version, row.reference) == ("digits", 1, None)


def test_references_are_found_by_file(job: Job, strips_folder: Path, strips: list[tuple[Path, str]]) -> None:
    referenced = replace(job, references=load_references(strips_folder / "labels.tsv"))
    relative = [os.path.relpath(path) for path, _ in strips[:3]]
    assert [row.reference for row in transcribe(relative, referenced)] == [text for _, text in strips[:3]]


def test_complaint_37_inputs_are_taken_only_as_far_as_needed(job: Job, texts: dict[str, str]) -> None:
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        for path in itertools.cycle(texts):
            taken += 1
            yield path

    with closing(transcribe(endless(), job)) as rows:
        for _ in itertools.islice(rows, 300):
            pass
    assert taken <= 300 + 64 * (3 * job.workers + 1)
    assert not multiprocessing.active_children()


def test_a_killed_worker_costs_nothing_but_time(job: Job, texts: dict[str, str]) -> None:
    sources = list(itertools.islice(itertools.cycle(texts), 400))
    rows = transcribe(sources, job)
    first = next(rows)
    for child in multiprocessing.active_children():
        os.kill(child.pid or 0, signal.SIGKILL)
    read = [first, *rows]
    assert [row.source for row in read] == sources
    assert not [row for row in read if isinstance(row.outcome, RowError)]


def test_an_image_that_kills_its_worker_fails_alone(job: Job, texts: dict[str, str]) -> None:
    paths = list(texts)[:6]
    rows = list(transcribe([*paths[:3], Poison("killer.png"), *paths[3:]], job))
    assert [isinstance(row.outcome, RowError) for row in rows] == [False] * 3 + [True] + [False] * 3
    assert rows[3].outcome == RowError("worker_crashed", "the worker process died while it read this image")


def test_workers_that_only_die_end_the_job(job: Job) -> None:
    with pytest.raises(JobError, match="in a row died"):
        list(transcribe([Poison("killer.png")] * 9, replace(job, workers=1)))


@pytest.mark.skipif(sys.platform == "win32", reason="files are counted otherwise there")
def test_workers_that_cannot_be_started_are_told(bundle: Path) -> None:
    program = (
        "import os, resource, sys\nfrom pathlib import Path\n"
        "from glyphline.service.jobs import Job, JobError, WorkerSettings, transcribe\n"
        f"job = Job(WorkerSettings(Path({str(bundle)!r})), 'digits', 1, workers=2)\n"
        "free, most = os.dup(0), resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "for spare in map(int, sys.argv[1:]):\n"  # none: not even the pool; a few: the pool and no process
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (free + spare, most))\n"
        "    try:\n"
        "        print(list(transcribe(['a.png'], job)))\n"
        "    except JobError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "1", "8"], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("worker processes could not be started: ") for line in lines), lines


def test_a_damaged_bundle_is_named(job: Job, bundle: Path, texts: dict[str, str], tmp_path: Path) -> None:
    copy = tmp_path / "bundle"
    shutil.copytree(bundle, copy)
    graph = next(copy.glob("*.onnx"))
    content = bytearray(graph.read_bytes())
    content[len(content) // 2] ^= 1
    graph.write_bytes(content)
    with pytest.raises(BundleError, match=graph.name):
        list(transcribe(list(texts), replace(job, settings=WorkerSettings(copy))))


def test_no_input_gives_no_rows(job: Job) -> None:
    assert list(transcribe([], job)) == []


def test_neither_grpc_nor_torch_is_needed() -> None:
    program = "import sys, glyphline.service.jobs; sys.exit(any(name in sys.modules for name in ('grpc', 'torch')))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
