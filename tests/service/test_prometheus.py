"""The documented PromQL, taken from its page and asked of a real Prometheus, gives the client's own figures."""

from __future__ import annotations

import json
import math
import re
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from glyphline.models.error_rate import edit_counts
from glyphline.service.client import Client, InvalidRequestError, Result

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess

Until = Callable[[Callable[[], bool], str], None]

PAGE = Path(__file__).parents[2] / "docs" / "monitoring.md"
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, math.inf)
CALLS = 60


def queries() -> dict[str, str]:
    """Returns the queries of the page by the remark above each."""
    found: dict[str, str] = {}
    for block in re.findall(r"^```promql\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for part in block.strip().split("\n\n"):
            remark, _, query = part.partition("\n")
            assert remark.startswith("# "), part
            found[remark.removeprefix("# ")] = query
    return found


QUERIES = queries()


@dataclass(frozen=True)
class Prometheus:
    """A Prometheus that scrapes one server."""

    address: str

    def ask(self, query: str) -> list[float]:
        """Returns the values of a query."""
        url = f"http://{self.address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            body = json.load(answer)
        assert body["status"] == "success", body
        return [float(sample["value"][1]) for sample in body["data"]["result"]]

    def one(self, remark: str) -> float:
        """Returns the value of a query of the page."""
        (value,) = self.ask(QUERIES[remark])
        return value


@dataclass(frozen=True)
class Observed:
    """What the client saw."""

    results: list[Result]
    references: list[str]
    seconds: list[float]
    too_wide: int
    undecodable: int


@pytest.fixture(scope="module")
def watched(start_process: Callable[..., ServerProcess]) -> Iterator[ServerProcess]:
    process = start_process()
    try:
        process.wait_for_line("ready")
        yield process
        assert process.stop() == 0
    finally:
        process.close()


@pytest.fixture(scope="module")
def prometheus(watched: ServerProcess, tmp_path_factory: pytest.TempPathFactory, until: Until) -> Iterator[Prometheus]:
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not installed (on Debian: apt-get install prometheus)")
    folder = tmp_path_factory.mktemp("prometheus")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    target = urllib.parse.urlsplit(watched.metrics_url).netloc
    config = folder / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
        f"scrape_configs: [{{job_name: glyphline, static_configs: [{{targets: ['{target}']}}]}}]\n"
    )
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}"]
    command += [f"--web.listen-address={address}", "--log.level=error"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            running = Prometheus(address)
            # Rates count from the first scrape, so there must be one before the first call.
            until(lambda: answers(running, "sum(glyphline_evaluated_total)") == [0], "Prometheus has begun")
            yield running
        finally:
            process.terminate()


def answers(prometheus: Prometheus, query: str) -> list[float]:
    try:
        return prometheus.ask(query)
    except OSError:
        return []


@pytest.fixture(scope="module")
def observed(watched: ServerProcess, prometheus: Prometheus, images: list[bytes], until: Until) -> Observed:
    """Asks for many images at once, so that some wait, with true texts of which some are none."""
    with Client(watched.target, timeout=60) as client:
        client.wait_until_ready(60)

        def read(job: tuple[int, bytes]) -> tuple[Result, str, float]:
            number, image = job
            reference = "" if number % 7 == 0 else "1234567890"[: 1 + number % 10]
            began = perf_counter()
            result = client.recognize(image, reference=reference if number % 3 else None)
            return result, reference, perf_counter() - began

        with ThreadPoolExecutor(12) as pool:
            done = list(pool.map(read, zip(range(CALLS), cycle(images))))
        for number, (result, reference, _) in enumerate(done):
            if number % 3 == 0:  # the true text comes later
                client.submit_reference(result.metadata.request_id, reference)
        wide = b"P5 40000 8 255\n" + bytes(40000 * 8)
        for content in (wide, b"no image", b"none either"):
            with pytest.raises(InvalidRequestError):
                client.recognize(content)
    until(
        lambda: (
            answers(prometheus, "sum(glyphline_evaluated_total) + sum(glyphline_too_wide_total)") == [CALLS + 1]
            and answers(prometheus, 'sum(glyphline_images_total{outcome="invalid_image"})') == [3]
        ),
        "Prometheus has everything",
    )
    return Observed([each[0] for each in done], [each[1] for each in done], [each[2] for each in done], 1, 2)


def test_every_query_of_the_page_is_one(prometheus: Prometheus, observed: Observed) -> None:
    """Those that tell of trouble may find none; all others have an answer."""
    assert len(observed.results) == CALLS
    for remark, query in QUERIES.items():
        values = prometheus.ask(query)
        if not re.search(r"(==|<|>) [\d.]+$", query):
            assert values, remark
            assert not any(math.isnan(value) for value in values), remark


def test_the_live_error_rate_is_the_clients_own(prometheus: Prometheus, observed: Observed) -> None:
    counts = [
        edit_counts(reference, result.text)
        for result, reference in zip(observed.results, observed.references, strict=True)
    ]
    edits, characters = sum(each.edits for each in counts), sum(each.reference_characters for each in counts)
    assert edits > 0
    assert prometheus.one("character error rate") == pytest.approx(edits / characters)
    exact = sum(each.exact for each in counts) / CALLS
    assert prometheus.one("share of the readings that are exact") == pytest.approx(exact)
    of_version = prometheus.one("character error rate of each version, to compare a new one with the old")
    assert of_version == pytest.approx(edits / characters)


def bucket(value: float) -> tuple[float, float]:
    """Returns the bounds of the bucket that a value is in; one on a bound belongs to the bucket below."""
    place = bisect_left(BOUNDS, value)
    return (0.0, *BOUNDS)[place], BOUNDS[place]


def quantile(values: Sequence[float], share: float) -> float:
    """Returns the smallest value that the share of all does not exceed, as histograms count."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_the_quantiles_of_waiting_are_the_clients_own(prometheus: Prometheus, observed: Observed, share: float) -> None:
    query = QUERIES["95 % of the images wait for a worker no longer than (seconds)"]
    assert "0.95" in query
    (told,) = prometheus.ask(query.replace("0.95", str(share)))
    low, high = bucket(quantile([result.metadata.queue_seconds for result in observed.results], share))
    assert low <= told <= min(high, BOUNDS[-2])


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_the_quantiles_of_latency_lie_between_what_the_client_knows(
    prometheus: Prometheus, observed: Observed, share: float
) -> None:
    """A call took the server no longer than the client waited, and no shorter than the image waited and was read."""
    query = QUERIES["95 % of the calls that read one image are answered within (seconds)"]
    assert "0.95" in query
    assert 'grpc_method="Recognize"' in query
    (told,) = prometheus.ask(query.replace("0.95", str(share)))
    at_least = [result.metadata.queue_seconds + result.metadata.inference_seconds for result in observed.results]
    refused = [0.0] * (observed.too_wide + observed.undecodable)  # they were calls, too
    longest = [max(observed.seconds)] * len(refused)
    low, _ = bucket(quantile(at_least + refused, share))
    _, high = bucket(quantile(observed.seconds + longest, share))
    assert low <= told <= high


def test_what_shows_a_change_of_the_images_is_the_clients_own(prometheus: Prometheus, observed: Observed) -> None:
    results = observed.results
    unsure = sum(result.confidence <= 0.9 for result in results) / CALLS
    assert prometheus.one("share of the readings with a confidence of 0.9 or less") == pytest.approx(unsure)
    empty = sum(not result.text for result in results) / CALLS
    assert prometheus.one("share of the readings without text") == pytest.approx(empty)
    assert prometheus.one("share of the readings that were cut") == 0
    assert prometheus.one("share of the images that are too wide") == pytest.approx(1 / (CALLS + 1))
    assert prometheus.one("share of the images that are none, or damaged") == pytest.approx(3 / (CALLS + 3))
    assert 32 < prometheus.one("95 % of the strips are at most so wide (columns)") < 2048


def test_the_page_lists_every_family_with_its_type_and_labels_and_no_other(
    watched: ServerProcess, observed: Observed
) -> None:
    """By then every family has series, so that its labels show."""
    assert observed.results
    listed = {
        name: (kind, set(labels.split(", ")) - {""})
        for name, kind, labels in re.findall(
            r"^\| `(\w+)` \| (\w+) \| ([\w, ]*?) ?\|", PAGE.read_text(encoding="utf-8"), re.MULTILINE
        )
    }
    exposed = {
        f"{family.name}_total" if family.type == "counter" else family.name: (
            family.type,
            {label for sample in family.samples for label in sample.labels} - {"le"},
        )
        for family in text_string_to_metric_families(watched.metrics_text())
        if not family.name.startswith(("process_", "python_"))
    }
    assert listed == exposed


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (it comes with prometheus)")
def test_promtool_finds_nothing_to_complain_about(watched: ServerProcess) -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=watched.metrics_text(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
