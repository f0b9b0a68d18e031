import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.models.error_rate import (
    EditCounts,
    ErrorRate,
    bootstrap_interval,
    edit_counts,
    evaluate_pairs,
    wilson_interval,
)

texts = st.text(st.sampled_from("01é \u0301ab"), max_size=12)


def distance(reference: str, prediction: str) -> int:
    """Edit distance by the recurrence of Wagner and Fischer, to check against."""
    previous = list(range(len(prediction) + 1))
    for row, expected in enumerate(reference, start=1):
        current = [row]
        for column, found in enumerate(prediction, start=1):
            replaced = previous[column - 1] + (expected != found)
            current.append(min(replaced, previous[column] + 1, current[column - 1] + 1))
        previous = current
    return previous[-1]


@pytest.mark.parametrize(
    ("reference", "prediction", "insertions", "deletions", "substitutions"),
    [
        ("", "", 0, 0, 0),
        ("1234", "1234", 0, 0, 0),
        ("", "123", 3, 0, 0),
        ("123", "", 0, 3, 0),
        ("24.50", "2427.50", 2, 0, 0),
        ("0870011", "08701", 0, 2, 0),
        ("40799932", "4079932", 0, 1, 0),
        ("999449", "9449", 0, 2, 0),
        ("117", "177", 0, 0, 1),
    ],
)
def test_insertions_deletions_and_substitutions_are_counted_apart(
    reference: str, prediction: str, insertions: int, deletions: int, substitutions: int
) -> None:
    counts = edit_counts(reference, prediction)
    assert (counts.insertions, counts.deletions, counts.substitutions) == (insertions, deletions, substitutions)
    assert counts.reference_characters == len(reference)
    assert counts.exact == (reference == prediction)


@given(texts, texts)
def test_edits_are_as_few_as_can_be_and_account_for_the_lengths(reference: str, prediction: str) -> None:
    counts = edit_counts(reference, prediction)
    reference, prediction = (unicodedata.normalize("NFC", text) for text in (reference, prediction))
    assert counts.edits == distance(reference, prediction)
    assert counts.insertions - counts.deletions == len(prediction) - len(reference)
    assert counts.exact == (reference == prediction) == (counts.edits == 0)


@given(texts, texts)
def test_the_unicode_form_of_either_side_does_not_matter(reference: str, prediction: str) -> None:
    counts = edit_counts(reference, prediction)
    assert counts == edit_counts(unicodedata.normalize("NFD", reference), prediction)
    assert counts == edit_counts(reference, unicodedata.normalize("NFD", prediction))


def test_a_character_is_a_code_point_after_normalisation() -> None:
    counts = edit_counts("caf" + "e\u0301", "café")
    assert counts.exact
    assert counts.reference_characters == 4


def test_words_are_what_white_space_separates() -> None:
    counts = edit_counts("the  old\tcat", "the bold cat sat")
    assert counts.word_edits == 2
    assert counts.reference_words == 3


def test_the_rate_is_a_micro_average() -> None:
    rate = evaluate_pairs([("1", "2"), ("123456789", "123456789")])
    assert rate.cer == pytest.approx(0.1)  # not the mean of 1 and 0
    assert rate.exact == 0.5
    assert rate.exact_lines == 1
    assert rate.n == 2
    assert rate.edits == 1
    assert rate.reference_characters == 10


def test_the_rate_may_exceed_one() -> None:
    rate = evaluate_pairs([("1", "2345"), ("6", "6")])
    assert rate.cer == 2.0
    assert (rate.insertions, rate.deletions, rate.substitutions) == (3, 0, 1)


@pytest.mark.parametrize(
    ("pairs", "cer", "wer", "exact"),
    [
        ([], 0.0, 0.0, 0.0),
        ([("", "")], 0.0, 0.0, 1.0),
        ([("", "abc")], 3.0, 1.0, 0.0),
        ([("", "abc"), ("defg", "defg")], 0.75, 1.0, 0.5),
        ([("", ""), ("ab", "")], 1.0, 1.0, 0.5),
    ],
)
def test_empty_texts_have_a_rate(pairs: list[tuple[str, str]], cer: float, wer: float, exact: float) -> None:
    rate = evaluate_pairs(pairs)
    assert (rate.cer, rate.wer, rate.exact) == (cer, wer, exact)


@given(st.lists(st.tuples(texts, texts), max_size=8))
def test_adding_lines_one_by_one_is_evaluating_them_together(pairs: list[tuple[str, str]]) -> None:
    rate = ErrorRate()
    for reference, prediction in pairs:
        rate.add(edit_counts(reference, prediction))
    assert rate == evaluate_pairs(pairs)


def line(edits: int, characters: int) -> EditCounts:
    return EditCounts(0, 0, edits, characters, edits == 0, 0, 0)


def test_the_bootstrap_is_repeatable_and_holds_the_rate() -> None:
    lines = [line(edits, 10) for edits in (0, 0, 1, 0, 3, 0, 0, 2, 0, 0)] * 5
    lower, upper = bootstrap_interval(lines, seed=3)
    assert (lower, upper) == bootstrap_interval(lines, seed=3)
    assert (lower, upper) != bootstrap_interval(lines, seed=4)
    assert 0 < lower < ErrorRate(lines).cer < upper < 0.2
    narrower = bootstrap_interval(lines, seed=3, level=0.5)
    assert lower < narrower[0] < narrower[1] < upper
    assert ErrorRate(lines).cer_interval(seed=3) == (lower, upper)


def test_the_bootstrap_covers_the_truth_about_as_often_as_it_says() -> None:
    # Lines of 10 characters with one error in 20 % of them: the true rate is 0.02.
    generator = np.random.default_rng(7)
    covered = 0
    for trial in range(100):
        lines = [line(int(wrong), 10) for wrong in generator.random(150) < 0.2]
        lower, upper = bootstrap_interval(lines, seed=trial, resamples=300)
        covered += lower <= 0.02 <= upper
    assert 85 <= covered <= 100


def test_lines_without_errors_have_a_bootstrap_without_width() -> None:
    assert bootstrap_interval([line(0, 4)] * 3) == (0.0, 0.0)
    assert bootstrap_interval([line(0, 0)]) == (0.0, 0.0)


def test_a_bootstrap_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one line"):
        bootstrap_interval([])


@pytest.mark.parametrize(
    ("successes", "trials", "lower", "upper"),
    [
        (0, 0, 0.0, 1.0),
        (0, 10, 0.0, 0.27753),  # the textbook's values
        (10, 10, 0.72247, 1.0),
        (8, 10, 0.49016, 0.94332),
        (950, 1000, 0.93469, 0.96186),
    ],
)
def test_wilson_intervals(successes: int, trials: int, lower: float, upper: float) -> None:
    assert wilson_interval(successes, trials) == pytest.approx((lower, upper), abs=2e-5)


@given(st.integers(1, 2000).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_wilson_intervals_hold_the_share_and_stay_within_bounds(case: tuple[int, int]) -> None:
    successes, trials = case
    lower, upper = wilson_interval(successes, trials)
    assert 0 <= lower <= successes / trials <= upper <= 1
    assert lower < upper


def test_the_rate_knows_the_interval_of_its_exact_lines() -> None:
    rate = evaluate_pairs([("1", "1")] * 8 + [("1", "2")] * 2)
    assert rate.exact_interval() == wilson_interval(8, 10)
