from __future__ import annotations

import http.server
import socket
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from prometheus_client.parser import text_string_to_metric_families

from glyphline.models.decoding import Alternative, Reading
from glyphline.service.jobs import OutputError, RowError, Tally
from glyphline.service.jobs.job_metrics import JobMetrics


def samples(text: str) -> dict[str, float]:
    return {
        sample.name + "".join(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_job_is_watched_on_a_port_and_in_a_file(tmp_path: Path) -> None:
    tally = Tally()
    tally.add(Reading("12", 0.5, (Alternative("12", 0.5, 0.0),)), "13")
    tally.add(RowError("empty_image", "x"), None)
    textfile = tmp_path / "job.prom"
    with JobMetrics("127.0.0.1", 0, textfile) as metrics:
        assert samples(textfile.read_text())["glyphline_job_running"] == 1
        metrics.update(tally)
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics") as answer:
            shown = samples(answer.read().decode())
    assert shown["glyphline_job_images_totalread"] == 1
    assert shown["glyphline_job_images_totalfailed"] == 1
    assert shown["glyphline_job_errors_totalempty_image"] == 1
    assert shown["glyphline_job_character_error_rate"] == 0.5
    last = samples(textfile.read_text())
    assert last["glyphline_job_running"] == 0
    assert last["glyphline_job_images_totalread"] == 1


def test_a_file_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="--metrics-textfile"):
        JobMetrics("127.0.0.1", None, tmp_path / "missing" / "job.prom")


class Gateway(http.server.ThreadingHTTPServer):
    """Keeps what is pushed: the last of each group, as the Pushgateway does.

    Attributes:
        groups: Texts by path.
        status: What it answers with.
    """

    groups: dict[str, str]
    status = 200


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    class Handler(http.server.BaseHTTPRequestHandler):
        server: Gateway

        def do_PUT(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self.server.groups[unquote(self.path)] = text
            self.send_response(self.server.status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = Gateway(("127.0.0.1", 0), Handler)
    server.groups = {}
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_job_is_pushed_at_its_beginning_and_at_its_end(gateway: Gateway) -> None:
    tally = Tally()
    tally.add(RowError("empty_image", "x"), None)
    with JobMetrics("127.0.0.1", None, None, f"127.0.0.1:{gateway.server_port}", "texts.jsonl") as metrics:
        ((path, first),) = gateway.groups.items()
        metrics.update(tally)
    assert path == f"/metrics/job/glyphline_transcribe/instance/{socket.gethostname()}/output/texts.jsonl"
    assert samples(first)["glyphline_job_running"] == 1
    last = samples(gateway.groups[path])
    assert last["glyphline_job_running"] == 0
    assert last["glyphline_job_images_totalfailed"] == 1
    assert last["glyphline_job_errors_totalempty_image"] == 1


def test_a_gateway_that_is_not_there_is_told_at_once_and_one_that_goes_only_told(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    target = f"127.0.0.1:{gateway.server_port}"
    with JobMetrics("127.0.0.1", None, None, target, "texts.jsonl"):
        gateway.status = 500
    assert "the job goes on" in caplog.text
    with pytest.raises(OutputError, match=f"--metrics-push {target}: something answers, but with 500"):
        JobMetrics("127.0.0.1", None, None, target, "texts.jsonl")


def test_a_gateway_that_does_not_answer_is_told_with_its_address() -> None:
    with socket.socket() as bound:  # and not listening
        bound.bind(("127.0.0.1", 0))
        target = f"127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(OutputError, match=f"^--metrics-push {target}: cannot be reached: Connection refused; is a"):
            JobMetrics("127.0.0.1", None, None, target, "texts.jsonl")
