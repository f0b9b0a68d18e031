"""The client that `servers.py` starts in a process of its own and tells by lines of JSON what load to make.

The first line in says whom to call and with which images; the answer comes once the server has read one rightly. Each
further line asks for a window of load, and its answer has a record of each call: when it was due, how long it took from
then on, and what came of it (nothing: the right text).

Closed loop: a number of callers, each sending its next image when its last one is answered. Open loop: images arrive at
random moments (a Poisson process), alone or several at once, whatever the server does, so that a server that falls
behind cannot hide it by slowing its callers. Some of them may be cancelled.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from server_calls import CALLERS, Caller, CallError

WRONG = "WRONG"
CANCELLED = "CANCELLED BY THE CLIENT"
READY_SECONDS = 120.0
# A closed loop has no deadline, but no benchmark waits for ever.
LONGEST_SECONDS = 60.0


@dataclass(slots=True)
class Recorder:
    """Makes calls and notes what came of them.

    Attributes:
        caller: Makes a call.
        expected: Text of each image.
        begun: When the window began.
        records: Of each call when it was due, how long it took from then on, and what came of it.
        lateness: How long after it was due each call was sent: the client's own fault.
    """

    caller: Caller
    expected: list[str]
    begun: float = 0.0
    records: list[tuple[float, float, str]] = field(default_factory=list)
    lateness: list[float] = field(default_factory=list)

    async def call(self, number: int, due: float, deadline: float) -> None:
        """Has image `number` (counted round and round) read within `deadline` of when it was due."""
        index = number % len(self.expected)
        sent = time.perf_counter()
        self.lateness.append(sent - due)
        try:
            text = await self.caller.read(index, max(0.001, due + deadline - sent))
        except CallError as error:
            came = error.code
        except asyncio.CancelledError:
            came = CANCELLED
        else:
            came = "" if text == self.expected[index] else WRONG
        self.records.append((due - self.begun, time.perf_counter() - due, came))


async def closed_loop(recorder: Recorder, callers: int, seconds: float) -> None:
    """Keeps `callers` busy for `seconds`."""
    recorder.begun = time.perf_counter()
    # They start at different images, spread over all widths.
    starts = np.linspace(0, len(recorder.expected), callers, endpoint=False).astype(int)

    async def keep_calling(number: int) -> None:
        while (now := time.perf_counter()) - recorder.begun < seconds:
            await recorder.call(number, now, LONGEST_SECONDS)
            number += 1

    await asyncio.gather(*(keep_calling(int(start)) for start in starts))


async def open_loop(
    recorder: Recorder,
    phases: list[tuple[float, float]],
    deadline: float,
    seed: int,
    burst: int = 1,
    cancel_share: float = 0.0,
    cancel_within: float = 0.0,
) -> None:
    """Sends images at random moments.

    Args:
        recorder: Makes the calls.
        phases: Images a second and seconds, one phase after the other.
        deadline: How long the answer to each may take from when it was due.
        seed: Of the moments, and of what is cancelled.
        burst: Images that are due at the same moment.
        cancel_share: Share of the calls that the client cancels.
        cancel_within: Seconds within which it does so.
    """
    random = np.random.default_rng(seed)
    start, moments = 0.0, []
    for rate, seconds in phases:
        bursts = max(1, round(rate * seconds / burst))
        moments += sorted(random.uniform(start, start + seconds, bursts))
        start += seconds
    offsets = np.repeat(moments, burst)
    numbers = random.permutation(len(offsets))
    cancelled = random.random(len(offsets)) < cancel_share
    delays = random.uniform(0.0, cancel_within, len(offsets))
    loop = asyncio.get_running_loop()
    recorder.begun = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for place, offset in enumerate(offsets):
            due = recorder.begun + float(offset)
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            task = group.create_task(recorder.call(int(numbers[place]), due, deadline))
            if cancelled[place]:
                loop.call_later(float(delays[place]), task.cancel)


async def run_window(setup: dict[str, Any], order: dict[str, Any]) -> dict[str, Any]:
    """Makes the load that an order asks for, over connections of its own, and returns what came of it."""
    cpu = time.process_time()
    caller = CALLERS[setup["protocol"]](setup["target"], setup["model"], setup["contents"])
    async with caller:
        recorder = Recorder(caller, setup["expected"])
        await Recorder(caller, setup["expected"]).call(0, time.perf_counter(), LONGEST_SECONDS)  # connects
        await (closed_loop if order.pop("kind") == "closed" else open_loop)(recorder, **order)
        seconds = time.perf_counter() - recorder.begun
    return {
        "seconds": seconds,
        "records": [(round(due, 5), round(took, 5), came) for due, took, came in recorder.records],
        "lateness_p99": float(np.percentile(recorder.lateness, 99)) if recorder.lateness else 0.0,
        "cpu_seconds": time.process_time() - cpu,
    }


async def wait_for_text(setup: dict[str, Any]) -> str:
    """Waits until the server reads the first image; returns what was wrong if it does not, or nothing."""
    last = time.monotonic() + READY_SECONDS
    found = ""
    while time.monotonic() < last:
        async with CALLERS[setup["protocol"]](setup["target"], setup["model"], setup["contents"]) as caller:
            try:
                found = await caller.read(0, 10.0)
            except CallError as error:
                found = str(error)
            else:
                if found == setup["expected"][0]:
                    return ""
                return f"it read {found!r} where {setup['expected'][0]!r} was expected"
        await asyncio.sleep(0.2)
    return f"it read nothing in {READY_SECONDS:g} s: {found}"


def main() -> int:
    """Does what the lines say."""
    setup = json.loads(sys.stdin.readline())
    setup["contents"] = [base64.b64decode(content) for content in setup["contents"]]
    print(json.dumps({"fault": asyncio.run(wait_for_text(setup))}), flush=True)
    for line in sys.stdin:
        print(json.dumps(asyncio.run(run_window(setup, json.loads(line)))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
