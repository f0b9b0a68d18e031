"""Workers die, hang and come back; each takes at most its own batch along."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from glyphline.service.client import AsyncClient, Client, RecognitionError, Result, RetryPolicy, UnavailableError

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess

Start = Callable[..., "ServerProcess"]
Hold = Callable[[list[int]], AbstractContextManager[None]]
ONCE = RetryPolicy(attempts=1)
PATIENT = RetryPolicy(attempts=100)  # until the deadline


async def wait_for(server: ServerProcess, name: str, value: float, **labels: str) -> None:
    """Waits for a metric without holding up the calls of this loop."""
    await asyncio.to_thread(lambda: server.wait_for_metric(name, value, **labels))


async def test_complaint_09_what_a_dying_worker_held_is_read_by_another(start: Start, images: list[bytes]) -> None:
    """Nobody is told of the death but the operator; who left meanwhile changes nothing."""
    server = start(workers=2, max_batch=1)
    pids = server.worker_pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    async with AsyncClient(server.target, timeout=60, retry=ONCE) as client:
        held = [asyncio.create_task(client.recognize(images[0])) for _ in range(2)]
        await wait_for(server, "glyphline_queue_seconds_count", 2)
        waiting = [asyncio.create_task(client.recognize(images[0])) for _ in range(4)]
        await wait_for(server, "glyphline_queue_depth", 4)
        waiting.pop().cancel()
        os.kill(pids[0], signal.SIGKILL)
        await asyncio.to_thread(server.wait_for_line, "batch lost")
        os.kill(pids[1], signal.SIGCONT)
        assert len({result.text for result in await asyncio.gather(*held, *waiting)}) == 1
        await asyncio.to_thread(server.wait_for_line, "worker replaced")
        await wait_for(server, "glyphline_workers", 2)
    assert server.metric("glyphline_worker_losses_total") == 1
    assert server.metric("glyphline_images_total", outcome="ok") == 5
    assert server.metric("glyphline_images_total", outcome="worker_lost") == 0
    assert len(server.wait_for_line("batch lost")["request_ids"]) == 1
    assert server.stop() == 0


FATAL = """
import os, signal, sys
if any("multiprocessing.spawn" in part for part in sys.orig_argv):
    from glyphline.models import recognizer
    read_image = recognizer.read_image
    def read_or_die(content, *rest):
        if content.endswith(b"fatal"):
            os.kill(os.getpid(), signal.SIGKILL)
        return read_image(content, *rest)
    recognizer.read_image = read_or_die
"""


async def test_an_image_that_kills_workers_fails_alone(
    start: Start, hold: Hold, images: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers are made to die over one image, as over a fault of a library; it is found among those of its batch."""
    (tmp_path / "sitecustomize.py").write_text(FATAL, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])))
    server = start(workers=2)
    async with AsyncClient(server.target, timeout=60, retry=ONCE) as client:
        with hold(server.worker_pids):
            first = [asyncio.create_task(client.recognize(images[0])) for _ in range(2)]
            await wait_for(server, "glyphline_queue_seconds_count", 2)
            calls = [asyncio.create_task(client.recognize(image)) for image in [images[0]] * 3 + [images[0] + b"fatal"]]
            await wait_for(server, "glyphline_queue_depth", 4)
        *good, fatal = await asyncio.gather(*first, *calls, return_exceptions=True)
        assert len({result.text for result in good if isinstance(result, Result)}) == 1
        assert len(good) == 5
        assert isinstance(fatal, RecognitionError)
        assert (fatal.code, fatal.reason) == (grpc.StatusCode.INTERNAL, "IMAGE_FATAL")
        assert not fatal.retryable
    async with AsyncClient(server.target, timeout=60, retry=PATIENT) as client:
        assert isinstance(await client.recognize(images[0]), Result)  # once a worker is there again, on a slow machine
    assert 2 <= server.metric("glyphline_worker_losses_total") <= 3
    assert server.metric("glyphline_images_total", outcome="worker_lost") == 1
    assert server.metric("glyphline_images_total", outcome="ok") == 6
    assert server.stop() == 0


def test_an_idle_worker_is_missed_and_readiness_follows(start: Start, images: list[bytes]) -> None:
    server = start()
    (pid,) = server.worker_pids
    with Client(server.target, timeout=60, retry=PATIENT) as client:
        client.wait_until_ready()
        os.kill(pid, signal.SIGKILL)
        server.wait_for_line("worker lost")
        assert isinstance(client.recognize(images[0]), Result)  # tried again until the next worker is there
        assert server.metric("glyphline_model_ready", model="digits") == 1
        (again,) = [server.wait_for_line("worker replaced")["pid"]]
        assert again != pid
    assert server.stop() == 0


def test_without_any_worker_the_server_says_that_it_is_not_ready(
    start: Start, hold: Hold, images: list[bytes], until: Callable[[Callable[[], bool], str], None]
) -> None:
    server = start()
    (pid,) = server.worker_pids
    with Client(server.target, timeout=60, retry=ONCE) as client:
        os.kill(pid, signal.SIGKILL)
        server.wait_for_line("worker lost")
        refusals = []

        def refused() -> bool:
            try:
                client.recognize(images[0])
            except UnavailableError as error:
                refusals.append(error)
                return False
            return True

        until(refused, "the server reads again")
    assert {error.reason for error in refusals} <= {"NOT_READY"}
    assert all(error.retry_after for error in refusals)
    assert server.stop() == 0


async def test_a_worker_that_hangs_is_replaced(start: Start, images: list[bytes]) -> None:
    server = start(batch_seconds=3)
    (pid,) = server.worker_pids
    os.kill(pid, signal.SIGSTOP)
    async with AsyncClient(server.target, timeout=60, retry=ONCE) as client:
        assert isinstance(await client.recognize(images[0]), Result)  # by the next worker
    assert "gave no answer within" in server.wait_for_line("batch lost")["reason"]
    assert server.metric("glyphline_worker_losses_total") == 1
    assert server.stop() == 0


async def test_batches_lost_with_a_worker_are_read_in_the_end(start: Start, images: list[bytes]) -> None:
    server = start(workers=2)
    pids = server.worker_pids
    async with AsyncClient(server.target, timeout=60, retry=PATIENT) as client:
        expected = await client.recognize_many(images)
        calls = [asyncio.create_task(client.recognize_many(images, batch_size=4)) for _ in range(8)]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for outcomes in await asyncio.gather(*calls):
            texts = [outcome.text for outcome in outcomes if isinstance(outcome, Result)]
            assert texts == [outcome.text for outcome in expected if isinstance(outcome, Result)]
            assert len(texts) == len(images)


def health(server: ServerProcess) -> int:
    with grpc.insecure_channel(server.target) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        status: int = stub.Check(health_pb2.HealthCheckRequest(), timeout=60).status  # type: ignore[attr-defined]
        return status


@pytest.mark.slow
async def test_complaint_25_readiness_needs_a_sign_of_life(
    start: Start, until: Callable[[Callable[[], bool], str], None], images: list[bytes]
) -> None:
    """A worker that hangs, idle or at work, is missed long before its batch's time is up, and health follows."""
    server = start(heartbeat_seconds=4, batch_seconds=3600)
    (pid,) = server.worker_pids
    assert health(server) == health_pb2.HealthCheckResponse.SERVING
    os.kill(pid, signal.SIGSTOP)  # idle
    assert "no sign of life" in server.wait_for_line("worker hangs")["reason"]
    until(lambda: health(server) == health_pb2.HealthCheckResponse.NOT_SERVING, "health notices")
    pid = server.wait_for_line("worker replaced")["pid"]
    until(lambda: health(server) == health_pb2.HealthCheckResponse.SERVING, "health recovers")
    os.kill(pid, signal.SIGSTOP)  # at work, as far as the front process knows
    async with AsyncClient(server.target, timeout=60, retry=ONCE) as client:
        assert isinstance(await client.recognize(images[0]), Result)  # by the next worker
    assert "no sign of life" in server.wait_for_line("batch lost")["reason"]
    assert server.metric("glyphline_worker_losses_total") == 2
    assert server.stop() == 0
