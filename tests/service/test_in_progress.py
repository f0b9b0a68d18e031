"""What has begun is waited for; what begins meanwhile is not."""

from __future__ import annotations

import asyncio

from glyphline.service.in_progress import InProgress


async def test_nothing_in_progress_is_nothing_to_wait_for() -> None:
    await asyncio.wait_for(InProgress().ended(), 60)


async def test_only_what_began_before_is_waited_for() -> None:
    work = InProgress()
    go, later = asyncio.Event(), asyncio.Event()

    async def do(event: asyncio.Event) -> None:
        with work.working():
            await event.wait()

    before = [asyncio.create_task(do(go)) for _ in range(3)]
    await asyncio.sleep(0)
    waits = [asyncio.create_task(work.ended()) for _ in range(2)]
    await asyncio.sleep(0)
    after = asyncio.create_task(do(later))
    before[0].cancel()
    await asyncio.wait({before[0]})
    assert not any(wait.done() for wait in waits)
    go.set()
    await asyncio.wait_for(asyncio.gather(*waits), 60)
    assert len(work) == 1
    later.set()
    await after
    assert not len(work)
