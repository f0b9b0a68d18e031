"""Every second is counted once."""

import time

import pytest

from glyphline.models.timings import StageTimings


def spend() -> None:
    """Takes a little time, however coarse the clock."""
    started = time.perf_counter()
    while time.perf_counter() == started:
        pass


def test_inference_within_a_search_is_taken_off_the_search() -> None:
    timings = StageTimings()
    started = time.perf_counter()
    with timings.measure("search"):
        spend()
        with timings.measure("infer"):
            spend()
    spent = time.perf_counter() - started
    assert timings.infer > 0.0
    assert timings.search > 0.0
    assert timings.infer + timings.search <= spent


def test_stages_add_up_even_if_they_fail() -> None:
    timings = StageTimings(decode_image=1.0)
    with pytest.raises(ValueError, match="damaged"), timings.measure("decode_image"):
        spend()
        raise ValueError("damaged")
    assert timings.decode_image > 1.0
