"""Bare sessions side by side, each in a process of its own: what the cores give if only the network runs."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from bare import BareNetwork, Batching, ReadyBatch, ready_batches

from glyphline.models.bundle import load_bundle


@dataclass(frozen=True, slots=True)
class BareWork:
    """What one process did in a window, or several together."""

    images_per_second: float
    cpu_milliseconds: float


@dataclass(slots=True)
class _State:
    """What a process keeps between windows: loading is dear."""

    network: BareNetwork
    batches: dict[int, list[ReadyBatch]]


_states: list[_State] = []


def _prepare(bundle: Path, contents: Sequence[bytes], sizes: Sequence[int], batching: Batching) -> None:
    """Loads the network and the ready arrays of this process, and runs each once."""
    loaded = load_bundle(bundle)
    batches = {size: ready_batches(contents, loaded.manifest, size, batching) for size in sizes}
    network = BareNetwork(loaded)
    for batch in batches[max(sizes)]:
        network.run(batch)
    _states.append(_State(network, batches))


def _run(size: int, beam_width: int, seconds: float) -> tuple[int, float, float]:
    """Runs batches of `size` for `seconds`; returns images, seconds by the clock and CPU seconds."""
    (state,) = _states
    batches = state.batches[size]
    images, number = 0, 0
    cpu, begun = time.process_time(), time.perf_counter()
    while (elapsed := time.perf_counter() - begun) < seconds:
        batch = batches[number % len(batches)]
        state.network.run(batch, beam_width)
        images += batch.size
        number += 1
    return images, elapsed, time.process_time() - cpu


class BarePool:
    """A number of processes, each with a bare session of one thread."""

    def __init__(
        self, processes: int, bundle: Path, contents: Sequence[bytes], sizes: Sequence[int], batching: Batching
    ) -> None:
        """Starts the processes and has each load `bundle` and prepare batches of every one of `sizes`."""
        context = multiprocessing.get_context("spawn")
        self._executors = [
            ProcessPoolExecutor(
                1, mp_context=context, initializer=_prepare, initargs=(bundle, contents, sizes, batching)
            )
            for _ in range(processes)
        ]
        for executor in [one.submit(time.process_time) for one in self._executors]:
            executor.result()

    def __enter__(self) -> Self:
        """Returns the pool."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the processes."""
        for executor in self._executors:
            executor.shutdown()

    def window(self, processes: int, size: int, beam_width: int, seconds: float) -> BareWork:
        """Keeps `processes` of them busy for `seconds` with batches of `size`, and adds up what they did."""
        futures = [executor.submit(_run, size, beam_width, seconds) for executor in self._executors[:processes]]
        done = [future.result() for future in futures]
        images = sum(count for count, _, _ in done)
        return BareWork(
            images_per_second=sum(count / elapsed for count, elapsed, _ in done),
            cpu_milliseconds=1000 * sum(cpu for _, _, cpu in done) / images,
        )
