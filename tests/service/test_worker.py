"""A worker is ready once it has run whatever it may be given; it says that it lives, and drops what it is told to."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding.options import DecodingOptions, ResolvedOptions
from glyphline.models.decoding.readings import Hypothesis
from glyphline.models.errors import BundleError
from glyphline.models.heads import Head
from glyphline.models.image import GreyImage, ImageLimits
from glyphline.models.joining import Run
from glyphline.models.manifest import MANIFEST_NAME
from glyphline.models.recognizer import MAX_COLUMNS, Recognizer
from glyphline.models.repository import ModelRepository
from glyphline.models.timings import StageTimings
from glyphline.service import worker
from glyphline.service.messages import Beat, Fault, Job, JobResult, Ping, Pong, Ready, Refused, Unload, WorkerConfig

MODEL = "digits-ctc"
# Prints by how many MiB a worker's memory grows after it is ready: as it reads with two models, full batches and all
# others, and as one of them is dropped and loaded again.
GROWTH = """
import gc, sys
from pathlib import Path
import numpy as np
from glyphline.models.image import GreyImage, ImageLimits
from glyphline.service.guides import load_guides
from glyphline.service.messages import WorkerConfig
from glyphline.service.worker import _load

def used():
    rollup = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in rollup if line.startswith("Anonymous:")) / 1024

def load(folder):
    config = WorkerConfig((folder,), "cpu", False, ImageLimits(), 32)
    return _load(folder, config, load_guides({}, {}), "cpu")

folders = [Path(each) for each in sys.argv[1:]]
held = [load(folder) for folder in folders]
ready = used()
random = np.random.default_rng(5)
for count, width in ((1, 2000), (32, 248), (9, 700), (3, 90), (32, 20), (20, 400)):
    strip = GreyImage(random.integers(0, 255, (40, width), dtype=np.uint8))
    for recognizer in held:
        recognizer.recognize([strip] * count)
held.pop()
gc.collect()
held.append(load(folders[-1]))
held[-1].recognize([GreyImage(random.integers(0, 255, (40, 248), dtype=np.uint8))] * 32)
print(used() - ready)
"""


class Recording:
    """A head that notes the shapes it is given, as a GPU's would have to prepare itself for them.

    Args:
        head: Reads the first image; all others are taken to read the same.
        broken: A width that it cannot read.
    """

    provider = "CUDAExecutionProvider"

    def __init__(self, head: Head, broken: int = 0) -> None:
        self._head = head
        self._broken = broken
        self._found: list[Hypothesis] = []
        self.shapes: set[tuple[int, int]] = set()

    def read(
        self, runs: Sequence[Run], options: ResolvedOptions, temperature: float, timings: StageTimings
    ) -> list[list[Hypothesis]]:
        for images, widths in runs:
            if images.shape[3] == self._broken:
                raise RuntimeError("no kernel for this")
            self.shapes.add((images.shape[0], images.shape[3]))
            first = [(images[:1], widths[:1])]
            self._found = self._found or self._head.read(first, options, temperature, timings)[0]
        return [self._found for images, _ in runs for _ in images]


@pytest.fixture(scope="module")
def folder(model_root: Path) -> Path:
    return ModelRepository([model_root]).resolve(MODEL)


@pytest.fixture(scope="module")
def usual(folder: Path) -> Recognizer:
    return Recognizer.load(load_bundle(folder))


def test_complaint_32_the_shapes_of_all_that_may_be_read_are_known_and_few(usual: Recognizer) -> None:
    """Whatever the strips and however many: a network is given none but the shapes that are run at the start."""
    head = Recording(usual._head)
    recognizer = Recognizer(usual.bundle, head)
    known = recognizer.shapes(8)
    assert len(known) == len(set(known)) < 130
    assert not usual.shapes(8)  # whose kernels need no preparation
    random, height = np.random.default_rng(32), usual.bundle.manifest.image.height
    for _ in range(4):
        widths = (2 ** random.uniform(3, 10.9, random.integers(1, 24))).astype(int)
        strips = [GreyImage(np.full((height, width), 255, dtype=np.uint8)) for width in widths]
        recognizer.recognize(strips, max_batch=8)
    assert len(head.shapes) > 20
    assert head.shapes <= set(known)


def test_complaint_32_an_engine_is_given_no_more_than_it_was_made_for(usual: Recognizer) -> None:
    """TensorRT sets memory aside for its largest shape; what the caller allows may be more."""
    head = Recording(usual._head)
    head.provider = "TensorrtExecutionProvider"
    recognizer = Recognizer(usual.bundle, head)
    assert max(size for size, _ in recognizer.shapes(256)) == 32
    strips = [GreyImage(np.full((40, 30), 255, dtype=np.uint8))] * 70
    recognizer.recognize(strips, max_batch=256)
    assert {size for size, _ in head.shapes} == {32, 4, 2}


def test_complaint_27_every_shape_is_run_before_a_worker_is_ready(usual: Recognizer) -> None:
    """And if one cannot be run, the model is refused, with the shape's name."""
    head = Recording(usual._head)
    recognizer = Recognizer(usual.bundle, head)
    worker._warm(recognizer, 2)
    assert head.shapes == set(recognizer.shapes(2))
    for broken in (recognizer.shapes(2)[-1][1], 256):
        with pytest.raises(BundleError, match=f"width {broken}"):
            worker._warm(Recognizer(usual.bundle, Recording(usual._head, broken)), 2)


def test_complaint_27_the_largest_run_comes_before_a_worker_is_ready(usual: Recognizer) -> None:
    """Also where no shape needs to be prepared: the memory that it takes is there before anybody waits."""
    head = Recording(usual._head)
    head.provider = "CPUExecutionProvider"
    worker._warm(Recognizer(usual.bundle, head), 32)
    assert (32, MAX_COLUMNS // 32) in head.shapes
    for most in (1, 10 * MAX_COLUMNS):
        head.shapes.clear()
        worker._warm(Recognizer(usual.bundle, head), min(most, 300))
        assert max(size * width for size, width in head.shapes) <= MAX_COLUMNS


def test_memory_does_not_grow_once_a_worker_is_ready(model_root: Path) -> None:
    """A full batch takes 150 MiB: once for the whole process, whatever it reads with, and at the start."""
    repository = ModelRepository([model_root])
    folders = [str(repository.resolve(name)) for name in (MODEL, "digits")]
    done = subprocess.run([sys.executable, "-c", GROWTH, *folders], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 40


@pytest.fixture
def config(folder: Path) -> WorkerConfig:
    return WorkerConfig((folder,), "cpu", False, ImageLimits(), 32, beat_seconds=0.001)


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Connection, Connection]]:
    monkeypatch.setattr("signal.signal", lambda *_: None)  # the worker is a thread here
    ours, theirs = multiprocessing.Pipe()
    yield ours, theirs
    ours.close()
    theirs.close()


def answer(connection: Connection, kind: type[object]) -> object:
    """Returns the next message that is no sign of life."""
    while True:
        message = connection.recv()
        if not isinstance(message, Beat):
            assert isinstance(message, kind)
            return message


def test_a_worker_answers_and_drops_what_it_is_told_to(
    pipe: tuple[Connection, Connection], config: WorkerConfig, usual: Recognizer, images: list[bytes]
) -> None:
    ours, theirs = pipe
    key = (MODEL, usual.bundle.manifest.version)
    thread = threading.Thread(target=worker.main, args=(theirs, config))
    thread.start()
    answer(ours, Ready)
    ours.send(Ping())
    answer(ours, Pong)
    heard: list[object] = []
    while Beat not in map(type, heard):  # it says that it lives while it reads
        ours.send(Job(key, DecodingOptions(), images[:8]))
        heard.append(ours.recv())
        while not isinstance(heard[-1], JobResult):
            heard.append(ours.recv())
    assert isinstance(heard[-1], JobResult)
    assert len(heard[-1].outcomes) == 8
    ours.send(Unload((key, ("never", 1))))
    held = answer(ours, Ready)
    assert isinstance(held, Ready)
    assert held.providers == {}
    ours.send(Job(key, DecodingOptions(), images[:2]))
    result = answer(ours, JobResult)
    assert isinstance(result, JobResult)
    assert [type(outcome) for outcome in result.outcomes] == [Fault, Fault]
    ours.close()
    thread.join()


def test_a_bundle_that_has_changed_since_is_refused(
    pipe: tuple[Connection, Connection], config: WorkerConfig, folder: Path
) -> None:
    ours, theirs = pipe
    worker.main(theirs, WorkerConfig((folder,), "cpu", False, config.limits, 32, manifests={folder: "0" * 64}))
    refusal = ours.recv()
    assert isinstance(refusal, Refused)
    assert refusal.folder == folder
    assert "changed" in refusal.message
    assert (folder / MANIFEST_NAME).exists()
