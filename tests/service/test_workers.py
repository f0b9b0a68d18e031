"""Workers die, hang and come back; each takes at most its own batch along."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import pytest

from glyphline.service.client import AsyncClient, Client, Result, RetryPolicy, UnavailableError

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess

Start = Callable[..., "ServerProcess"]
Hold = Callable[[list[int]], AbstractContextManager[None]]
ONCE = RetryPolicy(attempts=1)
PATIENT = RetryPolicy(attempts=100)  # until the deadline


async def wait_for(server: ServerProcess, name: str, value: float, **labels: str) -> None:
    """Waits for a metric without holding up the calls of this loop."""
    await asyncio.to_thread(lambda: server.wait_for_metric(name, value, **labels))


async def test_a_dying_worker_takes_only_its_own_batch_along(start: Start, images: list[bytes]) -> None:
    server = start(workers=2, max_batch=1)
    pids = server.worker_pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    async with AsyncClient(server.target, timeout=60, retry=ONCE) as client:
        held = [asyncio.create_task(client.recognize(images[0])) for _ in range(2)]
        await wait_for(server, "glyphline_queue_seconds_count", 2)
        waiting = [asyncio.create_task(client.recognize(images[0])) for _ in range(3)]
        await wait_for(server, "glyphline_queue_depth", 3)
        os.kill(pids[0], signal.SIGKILL)
        done, _ = await asyncio.wait(held, return_when=asyncio.FIRST_COMPLETED)
        (lost,) = done
        error = lost.exception()
        assert isinstance(error, UnavailableError)
        assert error.reason == "WORKER_LOST"
        assert error.retryable
        os.kill(pids[1], signal.SIGCONT)
        survivors = [call for call in [*held, *waiting] if call is not lost]
        assert len({result.text for result in await asyncio.gather(*survivors)}) == 1
        await asyncio.to_thread(server.wait_for_line, "worker replaced")
        await wait_for(server, "glyphline_workers", 2)
    assert server.metric("glyphline_worker_losses_total") == 1
    assert server.metric("glyphline_images_total", outcome="worker_lost") == 1
    lost_line = server.wait_for_line("batch lost")
    assert lost_line["request_ids"] == [error.request_id]
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
    assert {error.reason for error in refusals} <= {"NOT_READY", "WORKER_LOST"}
    assert all(error.retry_after for error in refusals)
    assert server.stop() == 0


async def test_a_worker_that_hangs_is_replaced(start: Start, images: list[bytes]) -> None:
    server = start(batch_seconds=0.3)
    (pid,) = server.worker_pids
    os.kill(pid, signal.SIGSTOP)
    async with AsyncClient(server.target, timeout=60, retry=ONCE) as client:
        with pytest.raises(UnavailableError, match="gave no answer within"):
            await client.recognize(images[0])
    async with AsyncClient(server.target, timeout=60, retry=PATIENT) as client:
        assert isinstance(await client.recognize(images[0]), Result)
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


def test_workers_end_with_a_front_process_that_is_killed(
    start: Start, until: Callable[[Callable[[], bool], str], None]
) -> None:
    server = start(workers=2)
    pids = server.worker_pids
    server.process.kill()
    server.wait()

    def gone() -> bool:
        return not any(_runs(pid) for pid in pids)

    until(gone, "workers end")


def _runs(pid: int) -> bool:
    """Tells whether a process runs; one that nobody has waited for yet does not."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
