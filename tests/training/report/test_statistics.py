"""Alignments, groups, intervals of rates and of their differences."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.models.error_rate import bootstrap_interval, edit_counts, evaluate_pairs
from glyphline.training.report.statistics import (
    align,
    bootstrap_rates,
    compare_lines,
    count_confusions,
    group_lengths,
    group_quantiles,
    rates_of,
    sign_test,
)

texts = st.text("0123 é", max_size=8)
lines = st.lists(st.tuples(texts, texts), min_size=1, max_size=12)


class TestAlign:
    def test_what_became_of_each_character(self) -> None:
        assert align("12", "13") == [("1", "1"), ("2", "3")]
        assert align("12", "1") == [("1", "1"), ("2", "")]
        assert align("", "7") == [("", "7")]
        assert align("", "") == []

    @given(texts, texts)
    def test_it_spells_both_texts_with_the_fewest_edits(self, truth: str, read: str) -> None:
        pairs = align(truth, read)
        assert "".join(expected for expected, _ in pairs) == truth
        assert "".join(found for _, found in pairs) == read
        assert sum(expected != found for expected, found in pairs) == edit_counts(truth, read).edits

    @given(lines)
    def test_confusions_add_up_to_the_edits(self, pairs: list[tuple[str, str]]) -> None:
        found, rates = count_confusions(pairs), evaluate_pairs(pairs)
        assert sum(count for (truth, _), count in found.items() if not truth) == rates.insertions
        assert sum(count for (_, read), count in found.items() if not read) == rates.deletions
        assert sum(count for (truth, _), count in found.items() if truth) == rates.reference_characters
        wrong = sum(count for (truth, read), count in found.items() if truth and read and truth != read)
        assert wrong == rates.substitutions


class TestBootstrap:
    @given(lines)
    def test_the_rates_are_those_of_models(self, pairs: list[tuple[str, str]]) -> None:
        expected, found = evaluate_pairs(pairs), rates_of(evaluate_pairs(pairs).lines)
        assert (found.cer, found.wer, found.exact) == pytest.approx((expected.cer, expected.wer, expected.exact))

    @given(lines)
    def test_intervals_hold_the_rates_of_drawn_lines(self, pairs: list[tuple[str, str]]) -> None:
        counts = evaluate_pairs(pairs).lines
        found = bootstrap_rates(counts, resamples=50)
        assert found.cer == pytest.approx(bootstrap_interval(counts, resamples=50))
        assert 0 <= found.exact[0] <= found.exact[1] <= 1
        assert 0 <= found.wer[0] <= found.wer[1]

    def test_the_interval_of_the_exact_share_is_about_that_of_a_proportion(self) -> None:
        counts = [edit_counts("1", "1" if index % 5 else "2") for index in range(500)]
        low, high = bootstrap_rates(counts).exact
        assert low == pytest.approx(0.8 - 1.96 * 0.4 / 500**0.5, abs=0.006)
        assert high == pytest.approx(0.8 + 1.96 * 0.4 / 500**0.5, abs=0.006)

    def test_nothing_has_no_interval(self) -> None:
        with pytest.raises(ValueError, match="at least one line"):
            bootstrap_rates([])


class TestComparison:
    def test_a_model_does_not_differ_from_itself(self) -> None:
        counts = [edit_counts("12", read) for read in ("12", "13", "1", "12")]
        found = compare_lines(counts, counts)
        assert (found.rates.cer, found.rates.exact) == (0, 0)
        assert found.intervals.cer == found.intervals.exact == (0, 0)
        assert (found.only_first, found.only_second, found.probability) == (0, 0, 1)

    @given(lines)
    def test_exchanged_models_exchange_the_signs(self, pairs: list[tuple[str, str]]) -> None:
        first = [edit_counts(truth, read) for truth, read in pairs]
        second = [edit_counts(truth, truth[::-1]) for truth, _ in pairs]
        found, other = compare_lines(first, second, resamples=40), compare_lines(second, first, resamples=40)
        assert found.rates.cer == pytest.approx(-other.rates.cer)
        assert found.intervals.exact == pytest.approx((-other.intervals.exact[1], -other.intervals.exact[0]))
        assert (found.only_first, found.only_second) == (other.only_second, other.only_first)
        assert found.probability == other.probability

    def test_pairs_tell_more_than_two_intervals(self) -> None:
        # Both models fail on the same quarter of the lines; the second also on every fortieth other line.
        first = [edit_counts("1", "2" if index % 4 == 0 else "1") for index in range(800)]
        second = [edit_counts("1", "2" if index % 4 == 0 or index % 40 == 1 else "1") for index in range(800)]
        apart = bootstrap_rates(first).exact, bootstrap_rates(second).exact
        assert apart[0][0] < apart[1][1]
        found = compare_lines(first, second)
        assert found.intervals.exact[1] < 0
        assert (found.only_first, found.only_second) == (20, 0)
        assert found.probability < 1e-5

    def test_other_lines_are_refused(self) -> None:
        counts = [edit_counts("1", "1")]
        with pytest.raises(ValueError, match="same lines"):
            compare_lines(counts, counts * 2)

    def test_the_sign_test_is_that_of_a_fair_coin(self) -> None:
        assert sign_test(0, 0) == 1
        assert sign_test(5, 5) == 1
        assert sign_test(0, 5) == sign_test(5, 0) == pytest.approx(2 / 32)
        assert sign_test(1, 4) == pytest.approx(2 * 6 / 32)
        assert sign_test(0, 5000) >= 0


class TestGroups:
    @given(st.lists(st.integers(0, 200), max_size=60), st.integers(1, 40))
    def test_every_line_has_one_group_of_lengths(self, lengths: list[int], most: int) -> None:
        groups = group_lengths(lengths, most)
        assert len(groups) <= most
        assert Counter(index for group in groups for index in group.members) == Counter(range(len(lengths)))

    def test_few_lengths_stand_alone_and_many_in_ranges(self) -> None:
        assert [(group.label, group.members) for group in group_lengths([3, 1, 3])] == [("1", (1,)), ("3", (0, 2))]
        assert [group.label for group in group_lengths(list(range(100)), 10)][:2] == ["0–9", "10–19"]

    @given(st.lists(st.floats(0.1, 100), max_size=60))
    def test_every_line_has_one_group_of_widths(self, values: list[float]) -> None:
        groups = group_quantiles(values)
        assert len(groups) <= 8
        assert Counter(index for group in groups for index in group.members) == Counter(range(len(values)))

    def test_groups_of_widths_are_about_equal(self) -> None:
        groups = group_quantiles(list(np.random.default_rng(0).uniform(1, 9, 800)))
        assert [len(group.members) for group in groups] == pytest.approx([100] * 8, abs=2)
