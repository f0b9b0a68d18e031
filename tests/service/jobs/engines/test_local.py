import itertools
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding import Reading
from glyphline.models.errors import BundleError
from glyphline.models.image import ImageLimits
from glyphline.models.recognizer import Recognizer
from glyphline.service.jobs import Item, JobError, LocalEngine, ModelIdentity, RowError, WorkerSettings
from glyphline.service.jobs.items import chunks_of
from glyphline.service.jobs.pictures import FilePicture
from glyphline.service.jobs.rows import Outcome


class Poison:
    """A picture whose arrival kills the worker, as a fault in a native library would."""

    source = "killer.png"

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (70,)

    def place(self) -> dict[str, Any]:
        return {}

    def read(self, _: ImageLimits) -> bytes:
        return b""


def items(paths: Iterable[str]) -> Iterator[Item]:
    return (Item(f"{number}", Poison() if path == "poison" else FilePicture(path)) for number, path in enumerate(paths))


def read_all(engine: LocalEngine, paths: Iterable[str], *, size: int = 64, in_order: bool = True) -> list[Outcome]:
    with engine:
        done = list(engine.read(chunks_of(items(paths), size), in_order=in_order))
    return [outcome for each in sorted(done, key=lambda one: one.chunk.number) for outcome in each.outcomes]


@pytest.fixture(scope="module")
def texts(bundle: Path, strips: list[tuple[Path, str]]) -> dict[str, str]:
    """What the model reads in each strip, one at a time."""
    recognizer = Recognizer.load(load_bundle(bundle))
    readings = {str(path): recognizer.recognize([path.read_bytes()])[0] for path, _ in strips}
    return {path: reading.text for path, reading in readings.items() if isinstance(reading, Reading)}


@pytest.mark.parametrize("in_order", [True, False])
def test_outcomes_belong_to_their_pictures_whatever_fails(
    engine: LocalEngine, bad_files: dict[str, str], texts: dict[str, str], in_order: bool
) -> None:
    good = itertools.cycle(texts)
    sources = [path for bad in bad_files for path in (*itertools.islice(good, 37), bad)]
    outcomes = read_all(engine, sources, in_order=in_order)
    for source, outcome in zip(sources, outcomes, strict=True):
        if isinstance(outcome, RowError):
            assert outcome.code == bad_files[source]
        else:
            assert outcome.text == texts[source]


def test_complaint_37_inputs_are_taken_only_as_far_as_needed(engine: LocalEngine, texts: dict[str, str]) -> None:
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        for path in itertools.cycle(texts):
            taken += 1
            yield path

    with closing(engine.read(chunks_of(items(endless()), 64), in_order=True)) as read:
        for _ in itertools.islice(read, 5):
            pass
    assert taken <= 64 * (5 + 3 * 2 + 1)
    assert not multiprocessing.active_children()


def test_a_killed_worker_costs_nothing_but_time(engine: LocalEngine, texts: dict[str, str]) -> None:
    sources = list(itertools.islice(itertools.cycle(texts), 400))
    read = engine.read(chunks_of(items(sources), 64), in_order=True)
    done = [next(read)]
    for child in multiprocessing.active_children():
        os.kill(child.pid or 0, signal.SIGKILL)
    done += read
    assert [each.chunk.number for each in done] == list(range(7))
    assert [outcome.text for each in done for outcome in each.outcomes if isinstance(outcome, Reading)] == [
        texts[source] for source in sources
    ]


def test_an_image_that_kills_its_worker_fails_alone(engine: LocalEngine, texts: dict[str, str]) -> None:
    paths = list(texts)[:6]
    outcomes = read_all(engine, [*paths[:3], "poison", *paths[3:]])
    assert [isinstance(outcome, RowError) for outcome in outcomes] == [False] * 3 + [True] + [False] * 3
    assert outcomes[3] == RowError("worker_crashed", "the worker process died while it read this image")


def test_workers_that_only_die_end_the_job(bundle: Path, identity: ModelIdentity) -> None:
    with pytest.raises(JobError, match="in a row died"):
        read_all(LocalEngine(WorkerSettings(bundle), identity, 1), ["poison"] * 9)


@pytest.mark.skipif(sys.platform == "win32", reason="files are counted otherwise there")
def test_workers_that_cannot_be_started_are_told(bundle: Path) -> None:
    program = (
        "import os, resource, sys\nfrom pathlib import Path\n"
        "from glyphline.service.jobs import Chunk, Item, JobError, LocalEngine, ModelIdentity, WorkerSettings\n"
        "from glyphline.service.jobs.pictures import FilePicture\n"
        f"engine = LocalEngine(WorkerSettings(Path({str(bundle)!r})), ModelIdentity('digits', 1, None, 'greedy'), 2)\n"
        "chunks = [Chunk(0, (Item('a', FilePicture('a.png')),))]\n"
        "free, most = os.dup(0), resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "for spare in map(int, sys.argv[1:]):\n"  # none: not even the pool; a few: the pool and no process
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (free + spare, most))\n"
        "    try:\n"
        "        print(list(engine.read(chunks, in_order=True)))\n"
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


def test_a_damaged_bundle_is_named(
    identity: ModelIdentity, bundle: Path, texts: dict[str, str], tmp_path: Path
) -> None:
    copy = tmp_path / "bundle"
    shutil.copytree(bundle, copy)
    graph = next(copy.glob("*.onnx"))
    content = bytearray(graph.read_bytes())
    content[len(content) // 2] ^= 1
    graph.write_bytes(content)
    with pytest.raises(BundleError, match=graph.name):
        read_all(LocalEngine(WorkerSettings(copy), identity, 1), texts)


def test_no_input_gives_no_rows(engine: LocalEngine) -> None:
    assert read_all(engine, []) == []


def test_neither_grpc_nor_torch_is_needed() -> None:
    program = "import sys, glyphline.service.jobs; sys.exit(any(name in sys.modules for name in ('grpc', 'torch')))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
