import pytest

from glyphline.models.decoding import Alternative, Reading
from glyphline.service.jobs.rows import Row, RowError
from glyphline.service.jobs.summary import Summary


def reading(text: str, confidence: float = 1.0, truncated: bool = False) -> Reading:
    return Reading(text, confidence, (Alternative(text, confidence, 0.0, (), truncated),), truncated)


def summarise(*rows: tuple[Reading | RowError, str | None]) -> Summary:
    summary = Summary()
    for outcome, reference in rows:
        summary.add(Row("a.png", outcome, "digits", 1, reference))
    return summary


def test_counts() -> None:
    summary = summarise(
        (reading("12", 0.9), None),
        (reading("", 0.7), None),
        (reading("99999", 0.2, truncated=True), None),
        (RowError("empty_image", "x"), None),
        (RowError("undecodable_image", "x"), None),
        (RowError("empty_image", "x"), None),
    )
    counts = summary.as_json()
    assert (counts["images"], counts["read"], counts["failed"]) == (6, 3, 3)
    assert counts["errors"] == {"empty_image": 2, "undecodable_image": 1}
    assert (counts["blank"], counts["truncated"]) == (1, 1)
    assert counts["mean_confidence"] == pytest.approx(0.6)
    assert counts["evaluation"] is None


def test_error_rates_count_failed_images_as_read_empty() -> None:
    summary = summarise(
        (reading("1234"), "1234"),
        (reading("1244"), "1234"),
        (RowError("empty_image", "x"), "12"),
        (reading("unlabelled"), None),
    )
    evaluation = summary.as_json()["evaluation"]
    assert evaluation["images"] == 3
    assert evaluation["exact"] == pytest.approx(1 / 3, abs=1e-6)
    assert evaluation["cer"] == pytest.approx(3 / 10)
    assert (evaluation["insertions"], evaluation["deletions"], evaluation["substitutions"]) == (0, 2, 1)
    assert evaluation["cer_interval"][0] <= evaluation["cer"] <= evaluation["cer_interval"][1]


def test_text_tells_the_same() -> None:
    text = "\n".join(summarise((reading("1"), "1"), (RowError("empty_image", "x"), None)).as_text())
    assert "1 of 2 images read" in text
    assert "1 empty_image" in text
    assert "against 1 references: exact 100.00%" in text


def test_a_job_without_readings_has_no_confidence() -> None:
    assert summarise((RowError("empty_image", "x"), None)).as_json()["mean_confidence"] is None
    assert Summary().mean_confidence is None
