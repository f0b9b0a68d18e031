"""Two servers behind a real Envoy with the configuration that is shipped: both are used, and one after the other can be
restarted, or be killed, without a loss. The benchmark does it, since anyone may want to do so for longer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(repository_root: Path) -> dict[str, Any]:
    """What became of the calls: they came at random moments, over TLS, by the client's own retry policy."""
    command = [sys.executable, "benchmarks/rolling_restart.py", "--json", "--kill", "--rate", "15", "--at-most", "20"]
    command += ["--pause", "1"]
    done = subprocess.run(command, cwd=repository_root, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout) | {"log": done.stderr}
    return found


def test_complaint_23_a_balancer_uses_all_servers(report: dict[str, Any]) -> None:
    """One connection of a client is many calls, and a balancer that knows gRPC spreads these."""
    assert len(report["shares"]) == 2
    assert min(report["shares"]) > 0


def test_complaint_17_a_rolling_restart_behind_a_balancer_loses_nothing(report: dict[str, Any]) -> None:
    assert report["failed"] == {}, report["log"]
    assert report["wrong"] == 0
    assert report["restarts"] == [0, 0]
    assert report["renewals"] == 1  # of the certificate, which Envoy follows without a restart
    assert report["kills"] == 1
    assert report["calls"] > 50
