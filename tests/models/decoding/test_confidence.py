"""Confidences, their calibration, and what they are good for."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.models.decoding.confidence import (
    Aggregate,
    coverage_at_accuracy,
    evidence,
    expected_calibration_error,
    hypothesis_confidence,
    line_confidence,
    odds_confidence,
)
from glyphline.models.decoding.distributions import calibrated_at, log_softmax, restrict
from glyphline.models.decoding.readings import Hypothesis
from glyphline.models.manifest import LogOdds

log_probabilities = st.lists(st.floats(-50.0, 0.0), max_size=20)
readings = st.lists(st.tuples(st.floats(0.0, 1.0), st.booleans()), max_size=40)


class TestLineConfidence:
    def test_one_bad_symbol_shows_in_the_least_and_hides_in_the_mean(self) -> None:
        values = [math.log(value) for value in (0.99, 0.98, 0.12, 0.99)]
        assert line_confidence(values, "min") == pytest.approx(0.12)
        assert line_confidence(values, "product") == pytest.approx(0.99 * 0.98 * 0.12 * 0.99)
        assert line_confidence(values) == pytest.approx((0.99 * 0.98 * 0.12 * 0.99) ** 0.25)

    @given(log_probabilities, st.sampled_from(["mean", "min", "product"]))
    def test_it_lies_in_the_unit_interval(self, values: list[float], aggregate: Aggregate) -> None:
        assert 0.0 <= line_confidence(values, aggregate) <= 1.0

    @given(log_probabilities)
    def test_the_mean_lies_between_the_others(self, values: list[float]) -> None:
        mean = line_confidence(values)
        assert line_confidence(values, "product") <= mean * (1 + 1e-9)
        assert line_confidence(values, "min") <= mean * (1 + 1e-9)

    def test_the_closing_counts_where_there_is_one(self) -> None:
        written = Hypothesis((1,), 0.0, 0.0, (math.log(0.9),), None, ((0.0, 1.0),))
        ended = Hypothesis((1,), 0.0, 0.0, (math.log(0.9),), math.log(0.4), ((0.0, 1.0),))
        empty = Hypothesis((), 0.0, 0.0, (), math.log(0.7), ())
        assert hypothesis_confidence(written) == pytest.approx(0.9)
        assert hypothesis_confidence(ended) == pytest.approx(0.6)
        assert hypothesis_confidence(ended, "min") == pytest.approx(0.4)
        assert hypothesis_confidence(empty) == pytest.approx(0.7)


class TestCalibrationError:
    def test_it_is_the_gap_between_confidence_and_accuracy(self) -> None:
        assert expected_calibration_error([0.8] * 10, [True] * 8 + [False] * 2) == pytest.approx(0.0)
        assert expected_calibration_error([0.8] * 10, [True] * 5 + [False] * 5) == pytest.approx(0.3)
        confidences, correct = [0.9] * 5 + [0.1] * 5, [False] * 5 + [True] * 5
        assert expected_calibration_error(confidences, correct) == pytest.approx(0.9)
        assert expected_calibration_error(confidences, correct, bins=1) == pytest.approx(0.0)

    def test_the_bounds_of_the_interval_have_a_group(self) -> None:
        assert expected_calibration_error([0.0, 1.0], [False, True]) == 0.0
        assert expected_calibration_error([], []) == 0.0

    @given(readings)
    def test_it_lies_in_the_unit_interval(self, pairs: list[tuple[float, bool]]) -> None:
        confidences, correct = [value for value, _ in pairs], [flag for _, flag in pairs]
        assert 0.0 <= expected_calibration_error(confidences, correct) <= 1.0 + 1e-12


class TestCoverage:
    def test_it_takes_the_surest_readings(self) -> None:
        confidences = [0.99, 0.5, 0.95, 0.9, 0.7]
        correct = [True, True, True, False, True]
        found = coverage_at_accuracy(confidences, correct, 1.0)
        assert (found.share, found.threshold) == (0.4, 0.95)
        found = coverage_at_accuracy(confidences, correct, 0.8)
        assert (found.share, found.threshold) == (1.0, 0.5)

    def test_none_may_pass_if_the_surest_is_wrong(self) -> None:
        assert coverage_at_accuracy([0.9, 0.8], [False, True], 0.9).share == 0.0
        assert coverage_at_accuracy([0.9, 0.8], [False, True], 0.9).threshold > 1.0
        assert coverage_at_accuracy([], []).share == 0.0

    def test_equal_confidences_pass_together(self) -> None:
        assert coverage_at_accuracy([0.9, 0.9], [True, False], 1.0).share == 0.0

    @given(readings.filter(bool), st.floats(0.0, 1.0))
    def test_what_passes_the_threshold_is_as_many_and_as_right_as_said(
        self, pairs: list[tuple[float, bool]], accuracy: float
    ) -> None:
        found = coverage_at_accuracy([value for value, _ in pairs], [flag for _, flag in pairs], accuracy)
        passed = [flag for value, flag in pairs if value >= found.threshold]
        assert len(passed) == pytest.approx(found.share * len(pairs))
        if passed:
            assert sum(passed) / len(passed) >= accuracy - 1e-6
        for threshold in {value for value, _ in pairs}:
            more = [flag for value, flag in pairs if value >= threshold]
            assert len(more) <= len(passed) or sum(more) / len(more) < accuracy + 1e-6


class TestOdds:
    hypothesis = Hypothesis((1, 2), 0.0, 0.0, (math.log(0.9), math.log(0.8)), None, None, share=0.6)

    def test_evidence_is_the_product_and_the_share(self) -> None:
        assert evidence(self.hypothesis) == pytest.approx((math.log(0.72 / 0.28), math.log(0.6 / 0.4)))
        assert evidence(replace(self.hypothesis, share=None))[1] == 0.0

    def test_the_confidence_is_what_the_evidence_weighs(self) -> None:
        assert odds_confidence(self.hypothesis, LogOdds(offset=0.0, symbols=1.0)) == pytest.approx(0.72)
        assert odds_confidence(self.hypothesis, LogOdds(offset=0.0, symbols=0.0, share=1.0)) == pytest.approx(0.6)
        assert odds_confidence(self.hypothesis, LogOdds(offset=math.log(3), symbols=0.0)) == pytest.approx(0.75)

    def test_what_has_no_room_in_the_image_is_not_believed_at_all(self) -> None:
        nothing = Hypothesis((), 0.0, 0.0, (), -math.inf, (), share=0.0)
        assert odds_confidence(nothing, LogOdds(offset=9.0, symbols=0.0)) == 0.0

    @given(log_probabilities, st.none() | st.floats(0.0, 1.0), st.floats(0, 3), st.floats(0, 3), st.floats(-9, 9))
    def test_it_lies_between_0_and_1(
        self, values: list[float], share: float | None, symbols: float, weight: float, offset: float
    ) -> None:
        hypothesis = Hypothesis((1,) * len(values), 0.0, 0.0, tuple(values), None, None, share=share)
        assert 0.0 <= odds_confidence(hypothesis, LogOdds(offset=offset, symbols=symbols, share=weight)) <= 1.0


class TestDistributions:
    @given(st.integers(0, 2**32), st.lists(st.booleans(), min_size=5, max_size=5).filter(any))
    def test_a_restriction_shares_everything_among_the_allowed(self, seed: int, allowed: list[bool]) -> None:
        outputs = log_softmax(np.random.default_rng(seed).normal(0.0, 3.0, (4, 5)))
        mask = np.array(allowed)
        left = np.exp(restrict(outputs, mask))
        assert left.sum(axis=1) == pytest.approx(np.ones(4))
        assert not left[:, ~mask].any()
        ratios = np.exp(outputs[:, mask]) / np.exp(outputs[:, mask]).sum(axis=1, keepdims=True)
        assert left[:, mask] == pytest.approx(ratios)

    def test_a_restriction_to_the_impossible_leaves_the_allowed_equally_likely(self) -> None:
        outputs = np.array([[-np.inf, -np.inf, 0.0], [np.log(0.5), -np.inf, np.log(0.5)]])
        left = np.exp(restrict(outputs, np.array([True, True, False])))
        assert left == pytest.approx(np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]))

    def test_no_restriction_changes_nothing(self) -> None:
        outputs = log_softmax(np.zeros((2, 3)))
        assert restrict(outputs, None) is outputs

    @given(st.integers(0, 2**32), st.floats(0.1, 10.0))
    def test_calibrated_probabilities_sum_to_one(self, seed: int, temperature: float) -> None:
        outputs = log_softmax(np.random.default_rng(seed).normal(0.0, 3.0, (3, 4)))
        total = sum(np.exp(calibrated_at(outputs, np.full(3, symbol), temperature)) for symbol in range(4))
        assert total == pytest.approx(np.ones(3))
