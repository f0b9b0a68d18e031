"""A rehearsal: a served model begins to read badly, the alerts fire, and the dashboard shows it.

A real server is scraped by a real Prometheus that has the shipped configuration, rules and alerts. Time runs faster in
the rules, and nothing else is changed: see `hasten`.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from glyphline.service.client import Client, InvalidRequestError

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana/dashboards/glyphline.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUALITY = {"GlyphlineCharacterErrorRateHigh", "GlyphlineCharacterErrorRateDrift", "GlyphlineConfidenceDrift"}
# Panels that rightly show nothing after this load.
EMPTY = {"Certificate expires in": "the server has no certificate"}

SPEED = 720  # an hour takes five seconds
LEAST_SECONDS = 4.0  # of a range: two scrapes must be in it, even if one is late
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
PATIENCE_SECONDS = 120.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("prometheus") is None, reason="prometheus is not installed (on Debian: apt-get install prometheus)"
    ),
]


def hasten(rules: dict[str, Any]) -> dict[str, Any]:
    """Makes time run faster in a file of rules: every duration is divided, and no range becomes too short."""

    def faster(duration: str, least: float = 0.0) -> str:
        seconds = int(duration[:-1]) * UNITS[duration[-1]] / SPEED
        return f"{max(1, round(1000 * max(seconds, least)))}ms"

    for group in rules["groups"]:
        if "interval" in group:
            group["interval"] = faster(group["interval"], 1.0)
        for rule in group["rules"]:
            text = re.sub(r"\[(\d+[smhdw])\]", lambda found: f"[{faster(found[1], LEAST_SECONDS)}]", rule["expr"])
            rule["expr"] = re.sub(r"\boffset (\d+[smhdw])", lambda found: f"offset {faster(found[1])}", text)
            if "for" in rule:
                rule["for"] = faster(rule["for"])
    return rules


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus that runs."""

    address: str

    def get(self, path: str, **parameters: object) -> Any:  # noqa: ANN401  # as the API has it
        """Returns the data of an answer."""
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            body = json.load(answer)
        assert body["status"] == "success", body
        return body["data"]

    def values(self, query: str) -> list[float]:
        """Returns the values of a query now; none while it is not there yet."""
        try:
            return [float(sample["value"][1]) for sample in self.get("query", query=query)["result"]]
        except OSError:
            return []

    def firing(self) -> set[str]:
        """Returns the names of the alerts that fire."""
        return {alert["labels"]["alertname"] for alert in self.get("alerts")["alerts"] if alert["state"] == "firing"}


@dataclass(frozen=True)
class Rehearsal:
    """What happened.

    Attributes:
        prometheus: Which saw it.
        began: When, in seconds since 1970.
        well: The alerts that fired while all was well.
        fired: Those that fired afterwards.
    """

    prometheus: Prometheus
    began: float
    well: set[str]
    fired: set[str]


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.1)


@contextmanager
def serving() -> Iterator[dict[str, Any]]:
    """Runs `glyphline serve`, and yields where it listens."""
    command = [
        sys.executable,
        "-m",
        "glyphline",
        "serve",
        "--models",
        "digits",
        "--workers",
        "1",
        "--log-format",
        "json",
    ]
    command += ["--port", "0", "--metrics-port", "0", "--drain-seconds", "0"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            ports: dict[str, Any] = {}
            for line in process.stderr:
                if '"listening"' in line:
                    ports = json.loads(line)
                if '"ready"' in line:
                    break
            assert ports, "the server did not start"
            threading.Thread(target=process.stderr.read, daemon=True).start()  # or its log would fill the pipe
            yield ports
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()


@contextmanager
def watching(target: str, folder: Path) -> Iterator[Prometheus]:
    """Runs Prometheus as it is shipped, but for the target, the intervals and how fast time runs."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    config = yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text(encoding="utf-8"))
    config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    config["scrape_configs"][0]["static_configs"] = [{"targets": [target]}]
    (folder / "rules").mkdir()
    for file in (DEPLOY / "prometheus/rules").glob("*.yml"):
        rules = hasten(yaml.safe_load(file.read_text(encoding="utf-8")))
        (folder / "rules" / file.name).write_text(yaml.safe_dump(rules), encoding="utf-8")
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    command = ["prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    command += [f"--web.listen-address={address}", "--log.level=error"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield Prometheus(address)
        finally:
            process.terminate()


@contextmanager
def spoilt_stream(target: str) -> Iterator[None]:
    """Sends spoilt strips, as the page tells an operator to, for as long as it is needed."""
    command = [sys.executable, str(DEPLOY / "rehearse.py"), "--server", target, "--rounds", "1000000"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
        try:
            yield
            assert process.poll() is None, "the stream has ended"
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory, strips: list[tuple[Path, str]]) -> Iterator[Rehearsal]:
    with (
        serving() as ports,
        watching(f"127.0.0.1:{ports['metrics_port']}", tmp_path_factory.mktemp("prometheus")) as prometheus,
        Client(f"127.0.0.1:{ports['port']}", timeout=60) as client,
    ):
        # Rates count from the first scrape, so there must be one before the first call.
        until(lambda: prometheus.values("sum(glyphline_evaluated_total)") == [0], "Prometheus has begun")
        began = time.time()
        with pytest.raises(InvalidRequestError):
            client.recognize(b"no image")
        images, references = zip(*((path.read_bytes(), text) for path, text in strips), strict=True)

        def read_well() -> bool:
            client.recognize(images[0], reference=references[0])
            client.recognize_many(images, references=references)
            return bool(prometheus.values(f"job_model:glyphline_cer:ratio_rate1d offset {3600 // SPEED}s"))

        until(read_well, "there is an hour to compare with")
        well, fired = prometheus.firing(), set()

        def alerts_fire() -> bool:
            client.recognize(images[0])
            fired.update(prometheus.firing())
            return fired >= QUALITY

        with spoilt_stream(f"127.0.0.1:{ports['port']}"):
            until(alerts_fire, "the alerts fire")
        yield Rehearsal(prometheus, began, well, fired)


def test_the_alerts_fire_when_the_images_are_spoilt_and_not_before(rehearsal: Rehearsal) -> None:
    assert rehearsal.well & QUALITY == set()
    assert rehearsal.fired >= QUALITY
    assert rehearsal.fired & {"GlyphlineNotWatched", "GlyphlineNoWorkers", "GlyphlineModelNotReady"} == set()


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_every_panel_has_data(rehearsal: Rehearsal, panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        query = target["expr"].replace("$__rate_interval", f"{LEAST_SECONDS:.0f}s")
        query = re.sub(r"\$\w+", ".*", query)
        result = rehearsal.prometheus.get("query_range", query=query, start=rehearsal.began, end=time.time(), step=1)
        found = [float(value) for series in result["result"] for _, value in series["values"]]
        if panel["title"] in EMPTY:
            assert not found, EMPTY[panel["title"]]
        else:
            assert any(math.isfinite(value) for value in found), query


def test_the_dashboard_can_be_drawn(rehearsal: Rehearsal, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "dashboard.png"
    command = [sys.executable, str(ROOT / "scripts/draw_dashboard.py"), "--rows", "1", "6", "--output", str(picture)]
    command += ["--prometheus", f"http://{rehearsal.prometheus.address}", "--minutes", "1", "--window", "4s"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
