"""Whether confidence can be believed, and what that takes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from glyphline.models.decoding.confidence import coverage_at_accuracy, expected_calibration_error
from glyphline.training.report.calibration import (
    chance_calibration_error,
    coverage_curve,
    log_loss,
    log_odds,
    refit_by_halves,
    reliability,
    separation,
)

readings = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40)
Pairs = list[tuple[float, bool]]


def split(pairs: Pairs) -> tuple[list[float], list[bool]]:
    return [value for value, _ in pairs], [flag for _, flag in pairs]


def sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-values)))


class TestReliability:
    @given(readings)
    def test_its_groups_are_those_of_the_calibration_error(self, pairs: Pairs) -> None:
        bins = reliability(*split(pairs))
        assert sum(each.lines for each in bins) == len(pairs)
        gaps = sum(each.lines * abs(each.confidence - each.exact) for each in bins) / len(pairs)
        assert gaps == pytest.approx(expected_calibration_error(*split(pairs)))
        assert all(each.interval[0] <= each.exact <= each.interval[1] for each in bins)

    def test_perfect_confidences_show_the_error_of_chance(self) -> None:
        generator = np.random.default_rng(4)
        values = generator.uniform(0.5, 1, 300)
        measured = [expected_calibration_error(values, generator.random(300) < values) for _ in range(200)]
        assert chance_calibration_error(values) == pytest.approx(np.mean(measured), rel=0.1)
        assert chance_calibration_error(np.tile(values, 40)) < chance_calibration_error(values) / 3
        assert chance_calibration_error([1.0, 0.0]) == 0


class TestSeparation:
    def test_it_is_the_chance_of_the_right_order(self) -> None:
        assert separation([0.9, 0.8, 0.1], [True, True, False]) == 1
        assert separation([0.1, 0.9], [True, False]) == 0
        assert separation([0.5, 0.5], [True, False]) == 0.5
        assert separation([0.9, 0.8, 0.7, 0.6], [True, False, True, False]) == 0.75

    def test_without_both_kinds_there_is_no_order(self) -> None:
        assert separation([0.9], [True]) is None
        assert separation([], []) is None

    @given(readings)
    def test_it_counts_the_pairs(self, pairs: Pairs) -> None:
        right = [value for value, flag in pairs if flag]
        wrong = [value for value, flag in pairs if not flag]
        found = separation(*split(pairs))
        if right and wrong:
            wins = sum((a > b) + (a == b) / 2 for a in right for b in wrong)
            assert found == pytest.approx(wins / len(right) / len(wrong))
        else:
            assert found is None


class TestLogLoss:
    def test_it_is_the_surprise(self) -> None:
        assert log_loss([0.8, 0.4], [True, False]) == pytest.approx(-(np.log(0.8) + np.log(0.6)) / 2)
        assert log_loss([], []) == 0
        assert np.isfinite(log_loss([0.0], [True]))


class TestCoverageCurve:
    @given(readings, st.sampled_from([0.5, 0.9, 0.99]))
    def test_it_passes_through_the_thresholds(self, pairs: Pairs, accuracy: float) -> None:
        share, wrong = coverage_curve(*split(pairs))
        assert share[-1] == 1
        assert (np.diff(share) > 0).all()
        best = share[wrong <= 1 - accuracy + 1e-12]
        assert coverage_at_accuracy(*split(pairs), accuracy).share == pytest.approx(best.max() if best.size else 0)


class TestRefitting:
    def test_halves_find_what_was_wrong_with_the_scale(self) -> None:
        generator = np.random.default_rng(1)
        odds = generator.normal(1.5, 2, 4000)
        right = generator.random(4000) < sigmoid(odds)
        told = sigmoid(odds / 2 - 1)
        refitted = refit_by_halves(told, right)
        assert expected_calibration_error(refitted, right) < 0.02 < expected_calibration_error(told, right)
        assert refitted == pytest.approx(sigmoid(odds), abs=0.1)

    def test_no_line_judges_itself(self) -> None:
        odds = np.random.default_rng(2).normal(1, 2, 40)
        right = odds > 0.3
        right[7] = not right[7]
        values = refit_by_halves(sigmoid(odds), right)
        for line in range(5):
            changed = right.copy()
            changed[line] = not changed[line]
            assert refit_by_halves(sigmoid(odds), changed)[line] == values[line]

    def test_a_half_that_is_all_right_teaches_nothing(self) -> None:
        assert refit_by_halves([0.4, 0.6, 0.9], [True] * 3).tolist() == [0.4, 0.6, 0.9]

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=5))
    def test_log_odds_are_those_of_the_confidence(self, values: list[float]) -> None:
        assert sigmoid(log_odds(values)) == pytest.approx(values, abs=2e-6)
