"""From the records of calls to figures: throughput, latency, goodput under overload, and what cancellations leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from machine import share_left
from server_client import CANCELLED, WRONG

TIMED_OUT = "DEADLINE_EXCEEDED"
REFUSED = ("RESOURCE_EXHAUSTED", "UNAVAILABLE")
PERCENTILES = (50, 95, 99)
# After an overload, a server is itself again when it answers within this share of the deadline.
RECOVERED_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Window:
    """What the client saw in one window.

    Attributes:
        seconds: Length, until the last answer.
        records: Of each call when it was due, how long it took from then on, and what came of it (nothing: the right
            text).
        lateness_p99: Seconds after they were due that calls were sent, 99th percentile: the client's own fault.
        client_cpu_seconds: CPU time of the client.
        server_cpu_seconds: CPU time of the server, of all its processes.
    """

    seconds: float
    records: Sequence[tuple[float, float, str]]
    lateness_p99: float
    client_cpu_seconds: float
    server_cpu_seconds: float

    @classmethod
    def of(cls, answer: dict[str, Any], server_cpu_seconds: float) -> Window:
        """Takes a window from the client's answer."""
        records = [(due, took, came) for due, took, came in answer["records"]]
        return cls(answer["seconds"], records, answer["lateness_p99"], answer["cpu_seconds"], server_cpu_seconds)

    def took(self, *, due_within: float = float("inf")) -> list[float]:
        """Returns the seconds that right answers took."""
        return [took for due, took, came in self.records if not came and due < due_within]

    def count(self, *outcomes: str) -> int:
        """Counts the calls with one of these outcomes."""
        return sum(came in outcomes for _, _, came in self.records)

    @property
    def rate(self) -> float:
        """Right answers a second."""
        return self.count("") / self.seconds

    @property
    def client_cores(self) -> float:
        """Cores that the client kept busy."""
        return self.client_cpu_seconds / self.seconds


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """How a server did under one load: medians over the rounds, latencies and counts over all of them.

    Attributes:
        load: What it was: `64 callers`, `100 images/s`.
        callers: Callers of a closed loop; None for an open one.
        offered: Images a second of an open loop; None for a closed one.
        images_per_second: Right answers.
        latency_milliseconds: Percentile → latency of right answers.
        cpu_milliseconds: CPU time of the server, of all its processes, for a right answer.
        client_cpu_milliseconds: CPU time of the client for a call.
        calls: Calls made.
        failed: Those that were not answered, by what came instead.
        wrong: Answers with another text than the recogniser's own.
    """

    load: str
    callers: int | None
    offered: float | None
    images_per_second: float
    latency_milliseconds: dict[str, float]
    cpu_milliseconds: float
    client_cpu_milliseconds: float
    calls: int
    failed: dict[str, int]
    wrong: int


@dataclass(frozen=True, slots=True)
class OverloadFigures:
    """What a server does with more than it can: medians over the rounds, but the longest of recovery and health.

    Attributes:
        capacity: Images a second, of closed loops in the same run.
        offered: Images a second that were due.
        goodput: Right answers a second within the deadline.
        goodput_ratio: Of the capacity.
        left_ratio: Of what the client left of the capacity: at several times the load it takes several times as much of
            the cores, if it shares them.
        refused: Share of the calls that the server refused.
        late: Share that had no answer by the deadline.
        failed: Share that failed otherwise or had a wrong text.
        accepted_p99_milliseconds: Latency of the right answers.
        recovery_seconds: Until a light load was answered fast again; None where it was not while watched.
        health_p99_milliseconds: How long the answer took to whether the server is healthy.
        health_failed: How often there was none, or a bad one.
        client_late_milliseconds: How late the client sent calls, 99th percentile.
    """

    capacity: float
    offered: float
    goodput: float
    goodput_ratio: float
    left_ratio: float
    refused: float
    late: float
    failed: float
    accepted_p99_milliseconds: float
    recovery_seconds: float | None
    health_p99_milliseconds: float
    health_failed: int
    client_late_milliseconds: float


@dataclass(frozen=True, slots=True)
class CancelFigures:
    """What cancelled calls leave behind: counts over all rounds.

    Attributes:
        calls: Calls made.
        cancelled: Of them the client cancelled.
        right: Others with the right text.
        wrong: Others with another text.
        hung: Others without any answer while the client was patient.
        failed: Others that failed, by what came instead.
        after: Calls made when all was over.
        after_wrong: Of them those with another text.
        after_failed: Those without one.
    """

    calls: int
    cancelled: int
    right: int
    wrong: int
    hung: int
    failed: dict[str, int]
    after: int
    after_wrong: int
    after_failed: int


@dataclass(frozen=True, slots=True)
class ServerFigures:
    """All that was measured of one server."""

    server: str
    version: str
    resident_bytes: int
    loads: Sequence[LoadFigures]
    overload: OverloadFigures
    cancels: CancelFigures


def load_figures(windows: Sequence[Window], *, callers: int | None = None, offered: float | None = None) -> LoadFigures:
    """Sums up the windows of one load, one from each round."""
    latencies = [took for window in windows for took in window.took()]
    failed = _failures(windows)
    calls = sum(len(window.records) for window in windows)
    closed = "1 caller" if callers == 1 else f"{callers} callers"
    return LoadFigures(
        load=closed if callers is not None else f"{offered:.0f} images/s",
        callers=callers,
        offered=offered,
        images_per_second=median(window.rate for window in windows),
        latency_milliseconds={f"p{point}": _percentile(latencies, point) for point in PERCENTILES},
        cpu_milliseconds=median(1000 * window.server_cpu_seconds / max(1, window.count("")) for window in windows),
        client_cpu_milliseconds=median(
            1000 * window.client_cpu_seconds / max(1, len(window.records)) for window in windows
        ),
        calls=calls,
        failed=dict(failed),
        wrong=sum(window.count(WRONG) for window in windows),
    )


@dataclass(frozen=True, slots=True)
class Overload:
    """What was seen of one overload and the light load after it.

    Attributes:
        window: All calls.
        usual: Of the server's closed loops the best one.
        workers: Worker processes of the server.
        offered: Images a second that were due while it lasted.
        seconds: How long it lasted.
        deadline: How long clients waited.
        health: Seconds of the answers about health.
        health_failed: How often there was none, or a bad one.
    """

    window: Window
    usual: Window
    workers: int
    offered: float
    seconds: float
    deadline: float
    health: Sequence[float]
    health_failed: int

    @property
    def capacity(self) -> float:
        """Images a second that the server had done."""
        return self.usual.rate

    @property
    def left_capacity(self) -> float:
        """Images a second that it would have done beside a client that takes as much as this one."""
        busy = self.window.client_cpu_seconds * len(self.calls) / max(1, len(self.window.records)) / self.seconds
        return self.capacity * share_left(busy, self.workers) / share_left(self.usual.client_cores, self.workers)

    @property
    def calls(self) -> list[tuple[float, str]]:
        """What came of the calls that were due while it lasted, and how long they took."""
        return [(took, came) for due, took, came in self.window.records if due < self.seconds]

    def share(self, *outcomes: str) -> float:
        """Returns the share of these outcomes."""
        return sum(came in outcomes for _, came in self.calls) / max(1, len(self.calls))

    @property
    def late(self) -> float:
        """Share of the calls that had no answer by the deadline."""
        late = sum(came == TIMED_OUT or (not came and took > self.deadline) for took, came in self.calls)
        return late / max(1, len(self.calls))

    @property
    def goodput(self) -> float:
        """Right answers a second within the deadline."""
        return sum(not came and took <= self.deadline for took, came in self.calls) / self.seconds

    @property
    def recovery_seconds(self) -> float | None:
        """How long after its end a call of the light load was still slow or failed; None: until the last."""
        after = sorted(record for record in self.window.records if record[0] >= self.seconds)
        slow = [due for due, took, came in after if came or took > RECOVERED_SHARE * self.deadline]
        if not slow:
            return 0.0
        following = [due for due, _, _ in after if due > slow[-1]]
        return following[0] - self.seconds if following else None


def overload_figures(rounds: Sequence[Overload]) -> OverloadFigures:
    """Sums up the overloads of all rounds."""
    recoveries = [one.recovery_seconds for one in rounds]
    return OverloadFigures(
        capacity=median(one.capacity for one in rounds),
        offered=median(one.offered for one in rounds),
        goodput=median(one.goodput for one in rounds),
        goodput_ratio=median(one.goodput / one.capacity for one in rounds),
        left_ratio=median(one.goodput / one.left_capacity for one in rounds),
        refused=median(one.share(*REFUSED) for one in rounds),
        late=median(one.late for one in rounds),
        failed=median(1 - one.share("", TIMED_OUT, *REFUSED) for one in rounds),
        accepted_p99_milliseconds=median(_percentile(one.window.took(due_within=one.seconds), 99) for one in rounds),
        recovery_seconds=None if None in recoveries else max(one for one in recoveries if one is not None),
        health_p99_milliseconds=max(_percentile(one.health, 99) for one in rounds),
        health_failed=sum(one.health_failed for one in rounds),
        client_late_milliseconds=median(1000 * one.window.lateness_p99 for one in rounds),
    )


def cancel_figures(during: Sequence[Window], after: Sequence[Window]) -> CancelFigures:
    """Sums up the windows with cancellations, and those after them."""
    failed = _failures(during)
    hung = failed.pop(TIMED_OUT, 0)
    return CancelFigures(
        calls=sum(len(window.records) for window in during),
        cancelled=sum(window.count(CANCELLED) for window in during),
        right=sum(window.count("") for window in during),
        wrong=sum(window.count(WRONG) for window in during),
        hung=hung,
        failed=dict(failed),
        after=sum(len(window.records) for window in after),
        after_wrong=sum(window.count(WRONG) for window in after),
        after_failed=_failures(after).total(),
    )


def _failures(windows: Sequence[Window]) -> Counter[str]:
    """Counts the calls without an answer by what came instead."""
    return Counter(came for window in windows for _, _, came in window.records if came not in ("", WRONG, CANCELLED))


def _percentile(seconds: Sequence[float], point: float) -> float:
    """Returns a percentile in milliseconds; nan where there is nothing."""
    return 1000 * float(np.percentile(seconds, point)) if len(seconds) else float("nan")
