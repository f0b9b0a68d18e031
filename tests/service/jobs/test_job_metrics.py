from __future__ import annotations

import urllib.request
from pathlib import Path

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
