import json
import random

import pytest

from glyphline.models.decoding import Alternative, Reading
from glyphline.models.error_rate import evaluate_pairs
from glyphline.service.jobs import summary
from glyphline.service.jobs.rows import RowError
from glyphline.service.jobs.tally import Tally
from glyphline.service.jobs.wording import counted, there_are


def reading(text: str, confidence: float = 1.0, truncated: bool = False) -> Reading:
    return Reading(text, confidence, (Alternative(text, confidence, 0.0, (), truncated),), truncated)


def summarise(*rows: tuple[Reading | RowError, str | None]) -> Tally:
    tally = Tally()
    for outcome, reference in rows:
        tally.add(outcome, reference)
    return tally


def test_counts() -> None:
    tally = summarise(
        (reading("12", 0.9), None),
        (reading("", 0.7), None),
        (reading("99999", 0.2, truncated=True), None),
        (RowError("empty_image", "x"), None),
        (RowError("undecodable_image", "x"), None),
        (RowError("empty_image", "x"), None),
    )
    counts = summary.as_json(tally)
    assert (counts["images"], counts["read"], counts["failed"]) == (6, 3, 3)
    assert counts["errors"] == {"empty_image": 2, "undecodable_image": 1}
    assert (counts["blank"], counts["truncated"]) == (1, 1)
    assert counts["mean_confidence"] == pytest.approx(0.6)
    assert counts["evaluation"] is None


def test_error_rates_count_failed_images_as_read_empty() -> None:
    tally = summarise(
        (reading("1234"), "1234"),
        (reading("1244"), "1234"),
        (RowError("empty_image", "x"), "12"),
        (reading("unlabelled"), None),
    )
    evaluation = tally.evaluation()
    assert evaluation is not None
    assert evaluation["images"] == 3
    assert evaluation["exact"] == pytest.approx(1 / 3, abs=1e-6)
    assert evaluation["cer"] == pytest.approx(3 / 10)
    assert (evaluation["insertions"], evaluation["deletions"], evaluation["substitutions"]) == (0, 2, 1)
    assert evaluation["cer_interval"][0] <= evaluation["cer"] <= evaluation["cer_interval"][1]


def test_text_tells_the_same() -> None:
    text = "\n".join(summary.as_text(summarise((reading("1"), "1"), (RowError("empty_image", "x"), None))))
    assert "1 of 2 images read" in text
    assert "1 empty_image" in text
    assert "against 1 reference: exact 100.00%" in text


def test_a_job_without_readings_has_no_confidence() -> None:
    assert summary.as_json(summarise((RowError("empty_image", "x"), None)))["mean_confidence"] is None
    assert summary.as_json(Tally())["images_per_second"] is None


def test_tallies_can_be_kept_and_added_up() -> None:
    rows: list[tuple[Reading | RowError, str | None]] = [
        (reading("1234"), "1234"),
        (reading("1244", 0.5, truncated=True), "1234"),
        (reading(""), None),
        (RowError("empty_image", "x"), "12"),
    ]
    whole = summarise(*rows * 3)
    parts = Tally()
    for begin in range(0, 12, 5):
        part = summarise(*(rows * 3)[begin : begin + 5])
        parts.merge(Tally.from_json(json.loads(json.dumps(part.as_json()))))
    assert parts.as_json() == whole.as_json()
    assert parts.evaluation() == whole.evaluation()


def test_the_interval_is_that_of_a_bootstrap_over_lines() -> None:
    generator = random.Random(1)
    pairs = [("1234567890"[: generator.randint(1, 10)], "12x4567y90"[: generator.randint(1, 10)]) for _ in range(400)]
    tally = summarise(*((reading(prediction), reference) for reference, prediction in pairs))
    evaluation, rate = tally.evaluation(), evaluate_pairs(pairs)
    assert evaluation is not None
    assert evaluation["cer"] == pytest.approx(rate.cer, abs=1e-6)
    assert evaluation["cer_interval"] == pytest.approx(rate.cer_interval(), abs=0.01)
    assert evaluation["exact_interval"] == pytest.approx(rate.exact_interval(), abs=1e-6)


def test_numbers_read_well() -> None:
    one = summarise((reading("1"), "1"))
    assert summary.as_text(one)[0] == "1 of 1 image read in 0.0 s"
    assert "against 1 reference: exact" in summary.as_text(one)[2]
    assert [counted(0, "row"), counted(1, "row"), counted(2_000, "row")] == ["0 rows", "1 row", "2,000 rows"]
    assert [there_are(0), there_are(1), there_are(2)] == ["there are none", "there is 1", "there are 2"]
