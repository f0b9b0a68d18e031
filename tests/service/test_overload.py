"""More than can be done is refused at once, dropped when late, forgotten when nobody waits. Workers are held still."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
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
Until = Callable[[Callable[[], bool], str], None]
ONCE = RetryPolicy(attempts=1)


async def wait_for(server: ServerProcess, name: str, value: float, **labels: str) -> None:
    """Waits for a metric without holding up the calls of this loop."""
    await asyncio.to_thread(lambda: server.wait_for_metric(name, value, **labels))


async def no_call_is_left(server: ServerProcess, until: Until) -> None:
    """Waits until nothing is in progress: no image waits, and every call that began has ended."""
    await wait_for(server, "glyphline_queue_depth", 0)

    def ended() -> bool:
        return server.metric("grpc_server_started_total") == server.metric("grpc_server_handled_total")

    await asyncio.to_thread(until, ended, "every call has ended")


def outcomes(server: ServerProcess) -> dict[str, int]:
    """How many images came to each outcome."""
    names = ("ok", "rejected", "expired", "cancelled", "worker_lost", "internal", "invalid_image")
    counts = {name: int(server.metric("glyphline_images_total", outcome=name)) for name in names}
    return {name: count for name, count in counts.items() if count}


async def test_complaint_13_a_full_queue_refuses_at_once_and_what_waits_is_read(
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


async def test_complaint_13_a_burst_is_refused_with_a_reason_and_never_cancelled(
    start: Start, hold: Hold, images: list[bytes]
) -> None:
    """More calls arrive than gRPC holds by itself before the server can look at one of them."""
    server = start(max_queue=32)
    server.wait_for_line("ready")
    async with AsyncClient(server.target, timeout=120, retry=ONCE) as client:
        await client.recognize(images[0])
        with hold([server.process.pid]):
            calls = [asyncio.create_task(client.recognize(images[0])) for _ in range(1300)]
            await asyncio.wait(calls, timeout=1.0)
        results = await asyncio.gather(*calls, return_exceptions=True)
    refused = [result for result in results if isinstance(result, OverloadedError)]
    read = [result for result in results if isinstance(result, Result)]
    assert len(refused) + len(read) == 1300
    assert read
    assert all(error.reason == "QUEUE_FULL" and error.retry_after for error in refused)


async def test_the_client_comes_back_when_there_is_room(start: Start, hold: Hold, images: list[bytes]) -> None:
    server = start(max_queue=1)
    async with AsyncClient(server.target, timeout=60, retry=RetryPolicy(attempts=100)) as client:
        with hold(server.worker_pids):
            first = asyncio.create_task(client.recognize(images[0]))
            await wait_for(server, "glyphline_queue_seconds_count", 1)
            others = [asyncio.create_task(client.recognize(images[0])) for _ in range(3)]
            await wait_for(server, "glyphline_rejected_total", 2, reason="queue_full")
        assert len({result.text for result in await asyncio.gather(first, *others)}) == 1


async def test_complaint_10_late_work_never_reaches_a_worker(start: Start, hold: Hold, images: list[bytes]) -> None:
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


async def test_complaint_11_the_status_tells_which_limit_was_hit(start: Start, hold: Hold, images: list[bytes]) -> None:
    """DEADLINE_EXCEEDED is the caller's own deadline and nothing else, wherever it is noticed."""
    server = start(max_queue=1)
    async with AsyncClient(server.target, timeout=60, retry=ONCE) as client:
        with hold(server.worker_pids):
            held = asyncio.create_task(client.recognize(images[0]))
            await wait_for(server, "glyphline_queue_seconds_count", 1)
            late = asyncio.create_task(client.recognize(images[0], timeout=0.3))
            with pytest.raises(DeadlineExceededError) as deadline:
                await late
            waiting = asyncio.create_task(client.recognize(images[0]))
            await wait_for(server, "glyphline_queue_depth", 1)
            with pytest.raises(OverloadedError) as full:
                await client.recognize(images[0])
        assert (await held).text == (await waiting).text
    assert deadline.value.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert (full.value.code, full.value.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL")


async def test_complaint_12_cancellations_that_race_with_answers_count_once(
    server: ServerProcess, until: Until, images: list[bytes]
) -> None:
    """Every call is cancelled at the moment at which another is answered, over and over."""
    before = outcomes(server)
    async with AsyncClient(server.target, timeout=60) as client:
        for _ in range(30):
            calls = [asyncio.create_task(client.recognize(images[index])) for index in range(8)]
            await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(await client.recognize(images[0]), Result)
        await no_call_is_left(server, until)
    counts = await asyncio.to_thread(outcomes, server)
    new = {name: count - before.get(name, 0) for name, count in counts.items()}
    assert {name for name, count in new.items() if count} <= {"ok", "cancelled"}
    assert new["ok"] > 30
    assert sum(new.values()) <= 30 * 8 + 1
    assert not [line for line in server.lines if line["level"] in ("warning", "error")]


async def test_complaint_07_a_storm_of_cancellations_leaves_nothing_behind(
    server: ServerProcess, until: Until, images: list[bytes]
) -> None:
    """Of 2,000 calls 1,000 are cancelled at random moments: all others are read, each is counted once, none stays."""
    chance, before = random.Random(0), outcomes(server)
    async with AsyncClient(server.target, timeout=120) as client:
        expected = [result.text for result in await client.recognize_many(images) if isinstance(result, Result)]

        async def ask(index: int) -> str:
            return (await client.recognize(images[index])).text

        for _ in range(2):
            indices = [chance.randrange(len(images)) for _ in range(1000)]
            calls = [asyncio.create_task(ask(index)) for index in indices]
            doomed = chance.sample(range(1000), 500)
            await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            for number in doomed:
                calls[number].cancel()
                left = [call for call in calls if not call.done()]
                if left and chance.random() < 0.1:  # so that calls are hit on their way, waiting, read, and answered
                    await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            results = await asyncio.gather(*calls, return_exceptions=True)
            for number, (index, result) in enumerate(zip(indices, results, strict=True)):
                if isinstance(result, asyncio.CancelledError):
                    assert number in doomed
                else:
                    assert result == expected[index]
        await no_call_is_left(server, until)
        assert await ask(0) == expected[0]
    counts = await asyncio.to_thread(outcomes, server)
    new = {name: count - before.get(name, 0) for name, count in counts.items()}
    assert {name for name, count in new.items() if count} <= {"ok", "cancelled"}
    assert 1000 < sum(new.values()) <= 2000 + len(images) + 1
    assert not [line for line in server.lines if line["level"] == "error"]


async def test_complaint_06_of_a_batch_in_progress_some_may_leave(
    start: Start, hold: Hold, images: list[bytes]
) -> None:
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


async def test_complaint_24_health_answers_while_all_workers_are_busy(
    start: Start, hold: Hold, images: list[bytes]
) -> None:
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


async def test_complaint_16_after_an_overload_the_server_answers_as_before(
    start: Start, until: Until, images: list[bytes]
) -> None:
    """Far more is asked than can be done, each with a deadline: what is read is read for those who still wait."""
    server = start(max_queue=256)
    server.wait_for_line("ready")
    async with AsyncClient(server.target, timeout=60, retry=ONCE) as client:
        expected = [result.text for result in await client.recognize_many(images) if isinstance(result, Result)]
        before = server.metric("glyphline_batch_size_sum")

        async def ask(index: int) -> str:
            return (await client.recognize(images[index], timeout=3.0)).text

        calls: dict[asyncio.Task[str], int] = {}
        for wave in range(15):
            calls |= {asyncio.create_task(ask(index)): index for index in range(len(images)) for _ in range(4)}
            done, _ = await asyncio.wait(calls, timeout=0.1)
            if wave > 3 and any(isinstance(call.exception(), OverloadedError) for call in done):
                break  # the queue has been full: it is an overload
        await asyncio.gather(*calls, return_exceptions=True)
        answered = 0
        for call, index in calls.items():
            error = call.exception()
            if error is None:
                answered += 1
                assert call.result() == expected[index]
            else:
                assert isinstance(error, DeadlineExceededError | OverloadedError), error
        assert answered
        await no_call_is_left(server, until)
        read = server.metric("glyphline_batch_size_sum") - before
        assert answered >= 0.5 * read
        again = await asyncio.gather(*(client.recognize(image) for image in images))
        assert [result.text for result in again] == expected
    counts = await asyncio.to_thread(outcomes, server)
    assert counts.keys() <= {"ok", "rejected", "expired", "cancelled"}


async def test_no_client_waits_for_all_that_another_sent(
    start: Start, hold: Hold, images: list[bytes], tmp_path: Path
) -> None:
    """Callers with tokens of two names are two clients: the second is soon read, though the first sent much before."""
    tokens = tmp_path / "tokens"
    tokens.write_text("".join(f"{name}: sha256:{sha256(name.encode()).hexdigest()}\n" for name in ("much", "little")))
    server = start(max_batch=1, tokens=tokens)
    async with (
        AsyncClient(server.target, timeout=60, token="much") as first,
        AsyncClient(server.target, timeout=60, token="little") as second,
    ):
        with hold(server.worker_pids):
            large = asyncio.create_task(first.recognize_many(images[:20]))
            await wait_for(server, "glyphline_queue_depth", 19)
            small = asyncio.create_task(second.recognize(images[0]))
            await wait_for(server, "glyphline_queue_depth", 20)
        waited = (await small).metadata.queue_seconds
        results = [result for result in await large if isinstance(result, Result)]
    assert len(results) == 20
    assert sum(result.metadata.queue_seconds < waited for result in results) <= 2


def test_a_server_that_is_not_there(images: list[bytes]) -> None:
    with Client("127.0.0.1:1", timeout=5, retry=RetryPolicy(attempts=2)) as client:
        with pytest.raises(RecognitionError) as failure:
            client.recognize(images[0])
        assert failure.value.code is grpc.StatusCode.UNAVAILABLE
        (outcome,) = client.recognize_many(images[:1])
        assert isinstance(outcome, RecognitionError)
        with pytest.raises(RecognitionError, match="not ready"):
            client.wait_until_ready(timeout=0.3)
