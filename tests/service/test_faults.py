"""Faults of Glyphline itself: one image fails and no other, the caller is told nothing, the log is told all."""

from __future__ import annotations

import logging
import multiprocessing
import threading
from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.decoding.readings import Reading
from glyphline.models.errors import ImageError
from glyphline.models.image import GreyImage, ImageLimits
from glyphline.models.recognizer import Recognizer, StageTimings
from glyphline.models.repository import ModelRepository
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc
from glyphline.service import worker
from glyphline.service.client import AsyncClient, RecognitionError
from glyphline.service.guides import Guides
from glyphline.service.messages import Fault, Job, JobResult, ModelKey, Ready, Refused, WorkerConfig
from glyphline.service.metrics import Metrics
from glyphline.service.model_service import ModelServicer
from glyphline.service.reloading import Models

CURSED = b"cursed"


class Faulty(Recognizer):
    """A recogniser with a fault: one image makes it raise what it never should."""

    def recognize(
        self,
        images: Sequence[bytes | GreyImage],
        options: DecodingOptions = DecodingOptions(),  # noqa: B008  (frozen)
        *,
        limits: ImageLimits = ImageLimits(),  # noqa: B008  (frozen)
        max_batch: int = 32,
        timings: StageTimings | None = None,
    ) -> list[Reading | ImageError]:
        if CURSED in images:
            raise ZeroDivisionError("a secret")
        return super().recognize(images, options, limits=limits, max_batch=max_batch, timings=timings)


@pytest.fixture(scope="module")
def config(model_root: Path) -> WorkerConfig:
    """A worker of the default model."""
    return WorkerConfig(
        models=(ModelRepository([model_root]).resolve("digits"),),
        device="cpu",
        allow_cpu_fallback=False,
        limits=ImageLimits(),
        max_batch=32,
    )


def test_an_image_that_uncovers_a_fault_fails_alone(
    shipped_version: int, config: WorkerConfig, images: list[bytes]
) -> None:
    recognizer = Faulty.load(load_bundle(config.models[0]))
    job = Job(("digits", shipped_version), DecodingOptions(), [images[0], CURSED, b"text", images[1]])
    result = worker._read(recognizer, job, config, Guides())
    first, cursed, text, last = result.outcomes
    assert isinstance(first, Reading)
    assert isinstance(last, Reading)
    assert isinstance(text, ImageError)
    assert isinstance(cursed, Fault)
    assert "ZeroDivisionError: a secret" in cursed.traceback


def test_a_worker_reads_what_its_pipe_brings_and_ends_with_it(
    shipped_version: int, config: WorkerConfig, images: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)  # it is a thread here
    ours, theirs = multiprocessing.Pipe()
    thread = threading.Thread(target=worker.main, args=(theirs, config))
    thread.start()
    try:
        ready = ours.recv()
        assert isinstance(ready, Ready)
        assert ready.providers == {("digits", shipped_version): "CPUExecutionProvider"}
        ours.send(Job(("digits", shipped_version), DecodingOptions(), images[:3]))
        result = ours.recv()
        assert isinstance(result, JobResult)
        assert len(result.outcomes) == 3
        assert sum(size for size, _ in result.runs) == 3
        assert set(result.stages) == {"decode_image", "infer", "search"}
    finally:
        ours.close()
        thread.join()
        theirs.close()


def test_a_worker_says_why_it_cannot_load(
    config: WorkerConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)
    ours, theirs = multiprocessing.Pipe()
    worker.main(theirs, WorkerConfig((tmp_path,), "cpu", False, config.limits, 32))
    answer = ours.recv()
    assert isinstance(answer, Refused)
    assert str(tmp_path) in answer.message
    ours.close()
    theirs.close()


async def test_faults_of_the_server_are_told_to_the_log_only(
    model_root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def providers() -> dict[ModelKey, str]:
        raise ZeroDivisionError("a secret")

    server = grpc.aio.server()
    rpc.add_ModelServiceServicer_to_server(
        ModelServicer(Models(model_root, None, Metrics()).catalogue, providers), server
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        with caplog.at_level(logging.ERROR, logger="glyphline"):
            async with AsyncClient(f"127.0.0.1:{port}") as client:
                with pytest.raises(RecognitionError) as failure:
                    await client.get_model()
    finally:
        await server.stop(None)
    assert failure.value.code is grpc.StatusCode.INTERNAL
    assert "secret" not in str(failure.value)
    (record,) = caplog.records
    assert record.exc_info is not None
    assert "a secret" in str(record.exc_info[1])
