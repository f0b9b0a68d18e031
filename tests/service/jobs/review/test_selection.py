"""Which rows are looked at, and why."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from glyphline.service.jobs.review import Pairing, select_rows
from glyphline.service.jobs.review.selection import MOST_ERRORS

MakeRow = Callable[..., dict[str, Any]]
texts = st.sampled_from(["", "1", "2", None])


def made(number: int, text: str | None, confidence: float, reference: str | None = None) -> dict[str, Any]:
    row = {"id": str(number), "text": text, "confidence": None if text is None else confidence, "error": None}
    return row | ({} if reference is None else {"reference": reference})


rows = st.lists(st.tuples(texts, st.floats(0, 1), texts, texts), max_size=30).map(
    lambda values: [
        (made(number, text, confidence, reference), made(number, other, 0.5))
        for number, (text, confidence, reference, other) in enumerate(values)
    ]
)


@given(rows, st.one_of(st.none(), st.floats(0, 1)), st.integers(1, 40))
def test_each_row_is_shown_for_a_reason_that_holds(
    pairs: list[tuple[dict[str, Any], dict[str, Any]]], threshold: float | None, limit: int
) -> None:
    selection = select_rows(pairs, threshold, limit)
    readings = [each for each in selection.chosen if each.reason != "error"]
    assert selection.rows == len(pairs)
    assert len(readings) == min(limit, sum(selection.found.values()) - selection.found["error"])
    assert len({each.row["id"] for each in selection.chosen}) == len(selection.chosen)
    for each in selection.chosen:
        text, reference = each.row["text"], each.row.get("reference")
        assert (each.reason == "error") == (text is None)
        assert (each.reason == "reference") == (text is not None and reference not in (None, text))
        if each.reason == "disagreement":
            assert reference is None
            assert each.other is not None
            assert each.other["text"] != text
        if each.reason == "confidence":
            assert threshold is None or each.row["confidence"] < threshold
            assert reference is None
    ranks = [(each.reason == "confidence", each.row["confidence"]) for each in readings]
    assert ranks == sorted(ranks)
    assert selection.chosen[len(readings) :] == [each for each in selection.chosen if each.reason == "error"]


@given(rows, st.one_of(st.none(), st.floats(0, 1)))
def test_nothing_that_may_be_wrong_is_left_out(
    pairs: list[tuple[dict[str, Any], dict[str, Any]]], threshold: float | None
) -> None:
    shown = {each.row["id"] for each in select_rows(pairs, threshold, 100).chosen}
    for row, other in pairs:
        text, reference = row["text"], row.get("reference")
        known = reference is not None and reference == text
        differs = other["text"] is not None and other["text"] != text
        doubtful = text is None or threshold is None or row["confidence"] < threshold
        wrong = reference is not None and reference != text
        assert (row["id"] in shown) == (
            (not known and (wrong or (differs and text is not None) or doubtful)) or text is None
        )


def test_errors_do_not_crowd_readings_out(row: MakeRow) -> None:
    bad = [row(f"bad{number}", None) for number in range(MOST_ERRORS + 50)]
    selection = select_rows(Pairing([*bad, row("a", "1"), row("b", "2")]), None, 2)
    assert [each.row["id"] for each in selection.chosen][:2] == ["a", "b"]
    assert (selection.shown["error"], selection.found["error"]) == (MOST_ERRORS, MOST_ERRORS + 50)


def test_what_only_the_other_job_could_read_is_kept_beside_the_error(row: MakeRow) -> None:
    (chosen,) = select_rows(Pairing([row("a", None)], [row("a", "12")]), None, 5).chosen
    assert (chosen.reason, chosen.other and chosen.other["text"]) == ("error", "12")
