"""The soak in its short form: all its faults, and what it makes of what it saw."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="needs the cpu extra")
from soak_tally import Tally

SHORT = {
    "minutes": 0.1,
    "rate": 4,
    "cancels": 40,
    "bad": 10,
    "slow": 2,
    "silent": 0,
    "bursts": 1,
    "max-queue": 20,
    "kills": 1,
    "reloads": 2,
    "rolls": 1,
    "workers": 2,
}


@pytest.mark.slow
def test_nothing_is_lost_while_a_server_is_attacked(repository_root: Path) -> None:
    arguments = [part for name, value in SHORT.items() for part in (f"--{name}", str(value))]
    command = [sys.executable, "benchmarks/soak.py", "--json", *arguments]
    done = subprocess.run(command, cwd=repository_root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["failures"] == []
    sent = {
        "plain": 26,
        "cancelled": 40,
        "bad": 10,
        "slow": 2,
        "burst": 60,
    }  # two plain ones to see that it still reads
    assert report["sent"] == sent
    assert sum(report["ends"].values()) == sum(sent.values())
    assert report["ends"]["bad INVALID_ARGUMENT"] == 10
    assert report["ends"]["burst RESOURCE_EXHAUSTED"] > 0
    expected = {"worker killed": 1, "burst": 1, "certificate renewed": 1, "new version": 1, "damaged version": 1}
    assert report["done"] == expected


def tally(per_minute: float, minutes: float) -> Tally:
    """Memory that grows, with the noise of workers that come and go."""
    random = np.random.default_rng(1)
    noise = np.repeat(random.normal(0, 3e6, 1000), 10)
    times = np.arange(0, 60 * minutes)
    sizes = 500e6 + per_minute * 1e6 * times / 60 + noise[: len(times)]
    return Tally(memory=[(float(time), int(size)) for time, size in zip(times, sizes, strict=True)])


@pytest.mark.parametrize("per_minute", [-3.0, 0.0, 5.0])
def test_the_interval_holds_the_growth_that_there_is(per_minute: float) -> None:
    slope = tally(per_minute, 10).slope()
    assert slope.judged
    assert slope.low <= per_minute <= slope.high
    assert slope.low <= slope.value <= slope.high
    assert slope.high - slope.low < 4
    assert any("memory grows" in each for each in tally(per_minute, 10).failures()) == (per_minute > 1)


def test_short_runs_are_not_judged() -> None:
    assert not tally(50, 1).slope().judged
    assert tally(50, 1).failures() == []
    assert Tally().slope().value == 0


def test_calls_without_an_end_and_ends_that_must_not_be_are_failures() -> None:
    run = Tally()
    run.sent.update(plain=3, bad=1)
    run.ends.update({"plain OK": 1, "plain UNAVAILABLE": 1, "bad INVALID_ARGUMENT": 1})
    run.different = 2
    assert run.failures() == ["3 plain calls and 2 ends", "1 × plain UNAVAILABLE", "2 answers were another text"]
