"""Devices of a server: which there are, how many workers they come to, and which worker has which."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import onnxruntime
import pytest
from pydantic import ValidationError

from glyphline.models.image import ImageLimits
from glyphline.models.repository import ModelRepository
from glyphline.models.session import available_threads
from glyphline.service import worker
from glyphline.service.messages import Refused, WorkerConfig
from glyphline.service.settings import ServerSettings

CORES = available_threads()


@pytest.mark.parametrize(
    ("device", "workers", "count", "threads"),
    [
        ("cpu", 0, CORES, 1),
        ("cpu", 3, 3, 1),
        ("cuda", 0, 1, CORES),
        ("cuda:1", 0, 1, CORES),
        ("cuda:0,2", 0, 2, max(1, CORES // 2)),
        ("cuda:0,2", 5, 5, max(1, CORES // 5)),
    ],
)
def test_there_is_a_worker_for_each_core_or_each_gpu(device: str, workers: int, count: int, threads: int) -> None:
    """A GPU's worker decodes images with its share of the cores, the CPU's have one each."""
    settings = ServerSettings(device=device, workers=workers)
    assert (settings.worker_count, settings.worker_threads) == (count, threads)


@pytest.mark.parametrize(
    ("device", "workers", "reason"),
    [
        ("tpu", 0, "unknown device 'tpu'"),
        ("cuda:0,0", 0, "names a GPU twice"),
        ("cuda:0,1,2", 2, "3 GPUs, for which --workers 2 are too few"),
    ],
)
def test_what_cannot_be_is_refused(device: str, workers: int, reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        ServerSettings(device=device, workers=workers)


@pytest.mark.skipif("CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="there may be GPUs")
@pytest.mark.parametrize(("index", "device"), [(0, "cuda:2"), (1, "cuda:5"), (2, "cuda:2")])
def test_complaint_31_workers_take_the_gpus_in_turns_and_say_which_is_not_there(
    index: int, device: str, model_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)  # the worker is this process
    monkeypatch.setattr("os.nice", lambda _: 0)
    ours, theirs = multiprocessing.Pipe()
    folder = ModelRepository([model_root]).resolve("digits-ctc")
    with ours, theirs:
        worker.main(theirs, WorkerConfig((folder,), "cuda:2,5", False, ImageLimits(), 32), index=index)
        refusal = ours.recv()
    assert isinstance(refusal, Refused)
    assert refusal.lacks_device
    assert f"device {device!r} is not available" in refusal.message
