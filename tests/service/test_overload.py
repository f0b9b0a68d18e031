"""More than can be done is refused at once, dropped when late, forgotten when nobody waits. Workers are held still."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import grpc
import pytest

from glyphline.service.client import (
    AsyncClient,
    Client,
    DeadlineExceededError,
    OverloadedError,
    RecognitionError,
    Result,
    RetryPolicy,
)

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess

Start = Callable[..., "ServerProcess"]
Hold = Callable[[list[int]], AbstractContextManager[None]]
ONCE = RetryPolicy(attempts=1)


async def wait_for(server: ServerProcess, name: str, value: float, **labels: str) -> None:
    """Waits for a metric without holding up the calls of this loop."""
    await asyncio.to_thread(lambda: server.wait_for_metric(name, value, **labels))


def outcomes(server: ServerProcess) -> dict[str, int]:
    """How many images came to each outcome."""
    names = ("ok", "rejected", "expired", "cancelled", "worker_lost", "internal", "invalid_image")
    counts = {name: int(server.metric("glyphline_images_total", outcome=name)) for name in names}
    return {name: count for name, count in counts.items() if count}


async def test_a_full_queue_refuses_at_once_and_what_waits_is_read(
    start: Start, hold: Hold, images: list[bytes]
) -> None:
    server = start(max_queue=4)
    pids = server.worker_pids
    async with AsyncClient(server.target, timeout=60, retry=ONCE) as client:
        with hold(pids):
            waiting = [asyncio.create_task(client.recognize(images[0]))]
            await wait_for(server, "glyphline_queue_seconds_count", 1)  # the worker has it
            waiting += [asyncio.create_task(client.recognize(images[0])) for _ in range(4)]
            await wait_for(server, "glyphline_queue_depth", 4)
            with pytest.raises(OverloadedError, match="at most 4") as failure:
                await client.recognize(images[0])
            assert failure.value.retryable
            assert failure.value.retry_after
            (outcome,) = await client.recognize_many(images[:1])
            assert isinstance(outcome, OverloadedError)
        assert len({result.text for result in await asyncio.gather(*waiting)}) == 1
    assert await asyncio.to_thread(outcomes, server) == {"ok": 5, "rejected": 2}
    assert server.metric("glyphline_rejected_total", reason="queue_full") == 2


async def test_the_client_comes_back_when_there_is_room(start: Start, hold: Hold, images: list[bytes]) -> None:
    server = start(max_queue=1)
    async with AsyncClient(server.target, timeout=60, retry=RetryPolicy(attempts=100)) as client:
        with hold(server.worker_pids):
            first = asyncio.create_task(client.recognize(images[0]))
            await wait_for(server, "glyphline_queue_seconds_count", 1)
            others = [asyncio.create_task(client.recognize(images[0])) for _ in range(3)]
            await wait_for(server, "glyphline_rejected_total", 2, reason="queue_full")
        assert len({result.text for result in await asyncio.gather(first, *others)}) == 1


async def test_late_work_never_reaches_a_worker(start: Start, hold: Hold, images: list[bytes]) -> None:
    server = start()
    async with AsyncClient(server.target, timeout=60) as client:
        with hold(server.worker_pids):
            first = asyncio.create_task(client.recognize(images[0]))
            await wait_for(server, "glyphline_queue_seconds_count", 1)
            late = await asyncio.gather(
                *(client.recognize(images[0], timeout=0.2) for _ in range(5)), return_exceptions=True
            )
            assert all(isinstance(error, DeadlineExceededError) for error in late)
            await wait_for(server, "glyphline_queue_depth", 0)
        assert isinstance(await first, Result)
    counts = await asyncio.to_thread(outcomes, server)
    assert counts["ok"] == 1
    # A slow machine may see the caller leave before its deadline, or never see the call.
    assert counts.keys() <= {"ok", "expired", "cancelled"}
    assert server.metric("glyphline_batch_size_sum") == 1  # the one that was read
    assert server.metric("grpc_server_handled_total", grpc_method="Recognize", grpc_code="OK") == 1


async def test_a_storm_of_cancellations_harms_nobody_else(start: Start, images: list[bytes]) -> None:
    server = start(workers=2, max_queue=2000)
    chance = random.Random(0)
    async with AsyncClient(server.target, timeout=120) as client:
        expected = [result.text for result in await client.recognize_many(images) if isinstance(result, Result)]

        async def ask(index: int) -> str:
            return (await client.recognize(images[index])).text

        indices = [chance.randrange(len(images)) for _ in range(1000)]
        calls = [asyncio.create_task(ask(index)) for index in indices]
        doomed = set(chance.sample(range(1000), 500))
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        for number in doomed:
            calls[number].cancel()
        results = await asyncio.gather(*calls, return_exceptions=True)
        for number, (index, result) in enumerate(zip(indices, results, strict=True)):
            if number not in doomed:
                assert result == expected[index]
            else:
                assert isinstance(result, asyncio.CancelledError) or result == expected[index]
        await wait_for(server, "glyphline_queue_depth", 0)
        assert await ask(0) == expected[0]
    counts = await asyncio.to_thread(outcomes, server)
    assert counts.keys() <= {"ok", "cancelled"}
    assert not [line for line in server.lines if line["level"] == "error"]


async def test_of_a_batch_in_progress_some_may_leave(start: Start, hold: Hold, images: list[bytes]) -> None:
    server = start()
    async with AsyncClient(server.target, timeout=60) as client:
        with hold(server.worker_pids):
            first = asyncio.create_task(client.recognize(images[0]))
            await wait_for(server, "glyphline_queue_seconds_count", 1)
            calls = [asyncio.create_task(client.recognize(images[0])) for _ in range(4)]
            await wait_for(server, "glyphline_queue_depth", 4)
            calls[0].cancel()
            calls[2].cancel()
            await wait_for(server, "glyphline_images_total", 2, outcome="cancelled")
        assert len({(await call).text for call in (first, calls[1], calls[3])}) == 1
    assert await asyncio.to_thread(outcomes, server) == {"ok": 3, "cancelled": 2}


async def test_high_priority_overtakes(start: Start, hold: Hold, images: list[bytes]) -> None:
    server = start(max_batch=1)
    order: list[str] = []
    async with AsyncClient(server.target, timeout=60) as client:

        async def ask(priority: str) -> None:
            await client.recognize(images[0], priority=priority)  # type: ignore[arg-type]
            order.append(priority)

        with hold(server.worker_pids):
            calls = [asyncio.create_task(client.recognize(images[0]))]
            await wait_for(server, "glyphline_queue_seconds_count", 1)
            for count, priority in enumerate(("low", "normal", "high"), start=1):
                calls.append(asyncio.create_task(ask(priority)))  # type: ignore[arg-type]
                await wait_for(server, "glyphline_queue_depth", count)
        await asyncio.gather(*calls)
    assert order == ["high", "normal", "low"]


async def test_high_priority_overtakes_the_images_of_a_call(start: Start, hold: Hold, images: list[bytes]) -> None:
    """Images too heavy to share a batch go one by one, and what is urgent goes between them."""
    server = start(max_batch_pixels=1)
    async with AsyncClient(server.target, timeout=60) as client:
        with hold(server.worker_pids):
            call = asyncio.create_task(client.recognize_many(images[:8]))
            await wait_for(server, "glyphline_queue_depth", 7)
            urgent = asyncio.create_task(client.recognize(images[0], priority="high"))
            await wait_for(server, "glyphline_queue_depth", 8)
        outcomes, overtaker = await call, await urgent
    results = [outcome for outcome in outcomes if isinstance(outcome, Result)]
    assert [result.metadata.batch_size for result in results] == [1] * 8
    others = sorted(result.metadata.queue_seconds for result in results)[1:]  # the first was with the worker already
    assert overtaker.metadata.queue_seconds < others[0]


async def test_health_answers_while_all_workers_are_busy(start: Start, hold: Hold, images: list[bytes]) -> None:
    server = start()
    async with AsyncClient(server.target, timeout=60) as client:
        with hold(server.worker_pids):
            calls = [asyncio.create_task(client.recognize(images[0]))]
            await wait_for(server, "glyphline_queue_seconds_count", 1)
            calls += [asyncio.create_task(client.recognize(images[0])) for _ in range(299)]
            await wait_for(server, "glyphline_queue_depth", 299)
            await client.wait_until_ready()
            assert (await client.get_model()).name == "digits"
        assert len(await asyncio.gather(*calls)) == 300


def test_a_server_that_is_not_there(images: list[bytes]) -> None:
    with Client("127.0.0.1:1", timeout=5, retry=RetryPolicy(attempts=2)) as client:
        with pytest.raises(RecognitionError) as failure:
            client.recognize(images[0])
        assert failure.value.code is grpc.StatusCode.UNAVAILABLE
        (outcome,) = client.recognize_many(images[:1])
        assert isinstance(outcome, RecognitionError)
        with pytest.raises(RecognitionError, match="not ready"):
            client.wait_until_ready(timeout=0.3)
