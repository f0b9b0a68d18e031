"""The memory of recent readings."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from glyphline.service.catalogue import ServedModel
from glyphline.service.errors import ReferenceConflictError, RequestNotFoundError
from glyphline.service.references import RecentReadings, RememberedReading
from glyphline.service.security.callers import GRANT
from glyphline.service.security.tokens import Grant

MODEL = cast(ServedModel, None)  # nothing here looks at it


def reading(text: str, reference: str | None = None) -> RememberedReading:
    return RememberedReading(text, MODEL, reference)


def test_the_oldest_is_forgotten_first() -> None:
    readings = RecentReadings(2)
    for name in "abc":
        readings.remember(name, reading(name))
    assert len(readings) == 2
    with pytest.raises(RequestNotFoundError, match="'a'"):
        readings.submit("a", "1")
    assert readings.submit("b", "1")[0].text == "b"


def test_of_two_of_one_name_the_later_counts_and_stays_longer() -> None:
    readings = RecentReadings(2)
    readings.remember("a", reading("old"))
    readings.remember("b", reading("b"))
    readings.remember("a", reading("new"))
    readings.remember("c", reading("c"))
    assert readings.submit("a", "1")[0].text == "new"
    with pytest.raises(RequestNotFoundError):
        readings.submit("b", "1")


def test_the_same_text_again_is_no_news_and_another_is_refused() -> None:
    readings = RecentReadings(2)
    readings.remember("a", reading("12"))
    assert readings.submit("a", "caf\N{LATIN SMALL LETTER E WITH ACUTE}")[1]
    assert not readings.submit("a", "cafe\N{COMBINING ACUTE ACCENT}")[1]  # the same in normal form
    with pytest.raises(ReferenceConflictError):
        readings.submit("a", "cafe")


def test_a_reading_that_came_with_its_reference_has_one() -> None:
    readings = RecentReadings(1)
    readings.remember("a", reading("12", reference=""))
    assert not readings.submit("a", "")[1]
    with pytest.raises(ReferenceConflictError):
        readings.submit("a", "12")


def test_no_memory_remembers_nothing() -> None:
    readings = RecentReadings(0)
    readings.remember("a", reading("12"))
    with pytest.raises(RequestNotFoundError):
        readings.submit("a", "12")


def test_readings_are_forgotten_after_a_day_and_beyond_their_number() -> None:
    now = 0.0
    readings = RecentReadings(2, clock=lambda: now)
    for hour in range(3):
        now = hour * 3600.0
        readings.remember(str(hour), reading("1"))
    assert len(readings) == 2
    now = 25 * 3600.0  # a day after the second
    with pytest.raises(RequestNotFoundError):
        readings.submit("1", "1")
    assert readings.submit("2", "1")[1]
    now = 27 * 3600.0
    readings.remember("late", reading("1"))
    assert len(readings) == 1


def test_each_token_has_readings_of_its_own() -> None:
    readings = RecentReadings(10)

    def ask(name: str, work: Callable[[], object]) -> None:
        token = GRANT.set(Grant(name, b""))
        try:
            work()
        finally:
            GRANT.reset(token)

    def is_unknown() -> None:
        with pytest.raises(RequestNotFoundError):
            readings.submit("a", "1")

    ask("counter", lambda: readings.remember("a", reading("12")))
    ask("partner", is_unknown)
    ask("partner", lambda: readings.remember("a", reading("34")))
    ask("counter", lambda: readings.submit("a", "12"))
    ask("partner", lambda: readings.submit("a", "34"))
