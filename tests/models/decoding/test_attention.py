"""Attention decoding against enumeration of all texts, with small recurrent decoders whose state matters."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from glyphline.models.decoding.attention import StepOutput, decode_attention
from glyphline.models.decoding.distributions import FloatArray, log_softmax
from glyphline.models.decoding.history import _span
from glyphline.models.decoding.options import ResolvedOptions
from glyphline.models.decoding.readings import Hypothesis

START = 99
FRAMES = 6


class RandomDecoder:
    """A recurrent network with random weights: what it writes next depends on all it wrote before, and on the image."""

    def __init__(self, seed: int, images: int, size: int, sharpness: float = 2.0, hidden: int = 5) -> None:
        random = np.random.default_rng(seed)
        self._size = size
        self._inputs = random.normal(0.0, 1.0, (size + 1, hidden))
        self._recurrence = random.normal(0.0, 1.0, (hidden, hidden))
        self._outputs = random.normal(0.0, sharpness, (hidden, size))
        self._looks = random.normal(0.0, 1.0, (hidden, FRAMES))
        self._initial = random.normal(0.0, 1.0, (images, hidden))
        self._bias = random.normal(0.0, 1.0, (images, hidden))
        self.calls: list[int] = []

    def only(self, image: int) -> "RandomDecoder":
        """The same decoder bound to one of its images."""
        lone = object.__new__(RandomDecoder)
        lone.__dict__.update(self.__dict__)
        lone._initial, lone._bias = self._initial[[image]], self._bias[[image]]
        lone.calls = []
        return lone

    def start(self) -> Sequence[FloatArray]:
        return [self._initial, np.zeros((len(self._initial), FRAMES))]

    def step(self, symbols: NDArray[np.int64], states: Sequence[FloatArray], images: NDArray[np.int64]) -> StepOutput:
        self.calls.append(len(symbols))
        hidden, coverage = states
        assert len(hidden) == len(coverage) == len(symbols) == len(images)
        inputs = self._inputs[np.where(symbols == START, self._size, symbols)] + self._bias[images]
        hidden = np.tanh((hidden[:, :, None] * self._recurrence).sum(axis=1) + inputs)
        attention = np.exp(log_softmax((hidden[:, :, None] * self._looks).sum(axis=1) - coverage))
        logits = (hidden[:, :, None] * self._outputs).sum(axis=1)
        return StepOutput(log_softmax(logits), attention, [hidden, coverage + attention])


@dataclass
class TableDecoder:
    """One image whose probabilities are given outright: the text so far → those of the next symbol."""

    table: dict[tuple[int, ...], list[float]]
    frames: int = 4

    def start(self) -> Sequence[FloatArray]:
        return [np.full((1, 12), -1.0)]

    def step(self, symbols: NDArray[np.int64], states: Sequence[FloatArray], images: NDArray[np.int64]) -> StepOutput:
        (history,) = states
        history = history.copy()
        rows, attention = [], []
        for text, symbol in zip(history, symbols.tolist(), strict=True):
            written = [int(value) for value in text if value >= 0]
            if symbol != START:
                text[len(written)] = symbol
                written.append(symbol)
            rows.append(self.table[tuple(written)])
            attention.append(np.eye(self.frames)[min(len(written), self.frames - 1)])
        with np.errstate(divide="ignore"):
            return StepOutput(np.log(np.array(rows)), np.array(attention), [history])


def after(lengths: Iterable[int], following: list[float]) -> dict[tuple[int, ...], list[float]]:
    """A table in which every text of these lengths is followed alike."""
    symbols = range(1, len(following))
    return {text: following for length in lengths for text in itertools.product(symbols, repeat=length)}


def decode(
    decoder: RandomDecoder | TableDecoder, images: int, options: ResolvedOptions, temperature: float = 1.0
) -> list[list[Hypothesis]]:
    return decode_attention(decoder, np.full(images, FRAMES), START, options, temperature=temperature)


def enumerate_texts(
    decoder: RandomDecoder, options: ResolvedOptions
) -> dict[tuple[int, ...], tuple[float, float, bool]]:
    """Score, log-probability and truncation of every text of one image."""
    found = {}
    for length in range(options.max_output_length + 1):
        for text in itertools.product(range(1, decoder._size), repeat=length):
            total, last = walk(decoder, text)
            truncated = length == options.max_output_length and int(last.argmax()) != 0
            if not truncated:
                total += float(last[0])
            found[text] = (total / (length + (not truncated)) ** options.length_penalty, total, truncated)
    return found


def walk(decoder: RandomDecoder, text: tuple[int, ...]) -> tuple[float, FloatArray]:
    """Log-probability of a text's symbols, and the log-probabilities of what follows."""
    states = decoder.start()
    total = 0.0
    for symbol, following in zip((START, *text), (*text, None), strict=True):
        output = decoder.step(np.array([symbol]), states, np.array([0]))
        if following is not None:
            total += float(output.log_probabilities[0, following])
        states = output.states
    return total, output.log_probabilities[0]


cases = st.tuples(st.integers(0, 2**32), st.integers(2, 4), st.integers(1, 3), st.sampled_from([0.0, 0.6, 1.0, 2.0]))


class TestEnumeration:
    @settings(max_examples=60, deadline=None)
    @given(cases)
    def test_a_wide_beam_finds_every_text_with_its_score(self, case: tuple[int, int, int, float]) -> None:
        seed, size, longest, penalty = case
        decoder = RandomDecoder(seed, 1, size)
        options = ResolvedOptions(
            beam_width=200, max_alternatives=200, length_penalty=penalty, max_output_length=longest
        )
        expected = enumerate_texts(decoder, options)
        (found,) = decode(decoder, 1, options)
        assert {hypothesis.symbols for hypothesis in found} == set(expected)
        for hypothesis in found:
            score, total, truncated = expected[hypothesis.symbols]
            assert hypothesis.score == pytest.approx(score, abs=1e-9)
            assert hypothesis.log_probability == pytest.approx(total, abs=1e-9)
            assert hypothesis.truncated == truncated
        scores = [hypothesis.score for hypothesis in found]
        assert scores == sorted(scores, reverse=True)

    @settings(max_examples=60, deadline=None)
    @given(cases, st.integers(1, 5))
    def test_stopping_early_does_not_lose_the_best(self, case: tuple[int, int, int, float], most: int) -> None:
        seed, size, longest, penalty = case
        decoder = RandomDecoder(seed, 1, size, sharpness=4.0)
        options = ResolvedOptions(
            beam_width=100, max_alternatives=most, length_penalty=penalty, max_output_length=longest
        )
        texts = enumerate_texts(decoder, options)
        expected = sorted((score for score, _, _ in texts.values()), reverse=True)[:most]
        (found,) = decode(decoder, 1, options)
        assert found[0].score == pytest.approx(expected[0], abs=1e-9)
        assert len(found) == len(expected)
        for hypothesis in found:
            assert hypothesis.score == pytest.approx(texts[hypothesis.symbols][0], abs=1e-9)
        if penalty == 0.0:
            assert [hypothesis.score for hypothesis in found] == pytest.approx(expected, abs=1e-9)

    @settings(max_examples=60, deadline=None)
    @given(cases)
    def test_greedy_takes_the_likeliest_symbol_each_time(self, case: tuple[int, int, int, float]) -> None:
        seed, size, longest, penalty = case
        decoder = RandomDecoder(seed, 1, size)
        options = ResolvedOptions(length_penalty=penalty, max_output_length=longest)
        text: tuple[int, ...] = ()
        while len(text) < longest and (symbol := int(walk(decoder, text)[1].argmax())):
            text = (*text, symbol)
        ((found,),) = decode(decoder, 1, options)
        score, total, truncated = enumerate_texts(decoder, options)[text]
        assert (found.symbols, found.truncated) == (text, truncated)
        assert (found.score, found.log_probability) == pytest.approx((score, total), abs=1e-9)


class TestGuarantees:
    @settings(max_examples=80, deadline=None)
    @given(
        st.integers(0, 2**32), st.integers(2, 8), st.integers(2, 6), st.sampled_from([0.0, 1.0, 3.0]), st.integers(1, 9)
    )
    def test_the_beam_never_scores_below_greedy(
        self, seed: int, size: int, width: int, penalty: float, longest: int
    ) -> None:
        decoder = RandomDecoder(seed, 3, size, sharpness=1.0)
        options = ResolvedOptions(length_penalty=penalty, max_output_length=longest)
        greedy = decode(decoder, 3, options)
        for most in (1, 2):
            beam = decode(decoder, 3, replace(options, beam_width=width, max_alternatives=most))
            for (alone,), found in zip(greedy, beam, strict=True):
                assert found[0].score >= alone.score - 1e-9

    def test_plain_beam_search_would_lose_the_greedy_path_but_this_one_keeps_it(self) -> None:
        # Two first symbols with poor futures crowd the greedy path out at its second symbol.
        table = {
            (): [0.0, 0.36, 0.33, 0.31],
            (1,): [0.26, 0.25, 0.25, 0.24],  # greedy ends here, with 0.36 × 0.26
            (2,): [0.0, 0.5, 0.5, 0.0],
            (3,): [0.0, 0.5, 0.5, 0.0],
        }
        dull = [0.05, 0.35, 0.3, 0.3]
        table |= after([2, 3, 4], dull)
        options = ResolvedOptions(length_penalty=0.0, max_output_length=4)
        ((greedy,),) = decode(TableDecoder(table), 1, options)
        ((beam,),) = decode(TableDecoder(table), 1, replace(options, beam_width=2))
        assert greedy.symbols == beam.symbols == (1,)

        # And where greedy goes on, its place in a full beam is safe.
        table[(1,)] = [0.0, 0.34, 0.33, 0.33]
        table[(1, 1)] = [1.0, 0.0, 0.0, 0.0]
        ((greedy,),) = decode(TableDecoder(table), 1, options)
        ((beam,),) = decode(TableDecoder(table), 1, replace(options, beam_width=2))
        assert greedy.symbols == beam.symbols == (1, 1)

    def test_the_state_follows_its_hypothesis(self) -> None:
        # The second-best first symbol turns out best: its row changes place, and its state has to move along.
        table = {
            (): [0.0, 0.6, 0.4],
            (1,): [0.0, 0.5, 0.5],
            (2,): [0.0, 0.05, 0.95],
            (1, 1): [0.2, 0.4, 0.4],
            (1, 2): [0.2, 0.4, 0.4],
            (2, 1): [0.2, 0.4, 0.4],
            (2, 2): [0.9, 0.05, 0.05],
        }
        table |= after([3], [1.0, 0.0, 0.0])
        options = ResolvedOptions(beam_width=2, length_penalty=0.0, max_output_length=3)
        ((best,),) = decode(TableDecoder(table), 1, options)
        assert best.symbols == (2, 2)
        assert best.log_probability == pytest.approx(np.log(0.4 * 0.95 * 0.9))

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 2**32), st.integers(2, 7))
    def test_every_score_is_that_of_its_own_text(self, seed: int, width: int) -> None:
        decoder = RandomDecoder(seed, 4, 5)
        options = ResolvedOptions(beam_width=width, max_alternatives=width, max_output_length=6)
        for image, found in enumerate(decode(decoder, 4, options)):
            lone = decoder.only(image)
            for hypothesis in found:
                total, last = walk(lone, hypothesis.symbols)
                if not hypothesis.truncated:
                    total += float(last[0])
                assert hypothesis.log_probability == pytest.approx(total, abs=1e-9)
                closing = hypothesis.closing_log_probability or 0.0
                assert sum(hypothesis.symbol_log_probabilities) + closing == pytest.approx(total, abs=1e-9)

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 2**32), st.sampled_from([1, 2, 5]))
    def test_an_image_reads_the_same_alone_and_in_company(self, seed: int, width: int) -> None:
        decoder = RandomDecoder(seed, 5, 6)
        options = ResolvedOptions(
            beam_width=width, max_alternatives=min(width, 3), max_output_length=8, token_details=True
        )
        together = decode(decoder, 5, options, temperature=1.4)
        for image, found in enumerate(together):
            (alone,) = decode(decoder.only(image), 1, options, temperature=1.4)
            assert [h.symbols for h in found] == [h.symbols for h in alone]
            for one, other in zip(found, alone, strict=True):
                assert one.score == pytest.approx(other.score, abs=1e-9)
                assert np.array(one.spans) == pytest.approx(np.array(other.spans), abs=1e-9)

    def test_images_that_are_done_cost_nothing_more(self) -> None:
        decoder = RandomDecoder(1, 8, 5, sharpness=3.0)
        options = ResolvedOptions(max_output_length=50)
        found = decode(decoder, 8, options)
        lengths = [len(h.symbols) + (not h.truncated) for (h,) in found]
        assert decoder.calls[: max(lengths)] == [
            sum(length > step for length in lengths) for step in range(max(lengths))
        ]

    def test_a_sure_beam_stops_with_the_end(self) -> None:
        table = {(): [0.001, 0.998, 0.001], (1,): [0.998, 0.001, 0.001], (2,): [0.998, 0.001, 0.001]}
        options = ResolvedOptions(beam_width=2, length_penalty=1.0, max_output_length=100)
        ((best,),) = decode(TableDecoder(table), 1, options)  # a third step would ask for a text not in the table
        assert best.symbols == (1,)


class TestOptions:
    @settings(max_examples=60, deadline=None)
    @given(
        st.integers(0, 2**32), st.lists(st.booleans(), min_size=6, max_size=6).filter(any), st.sampled_from([1, 2, 9])
    )
    def test_only_allowed_symbols_are_written(self, seed: int, allowed: list[bool], width: int) -> None:
        mask = np.array([True, *allowed])
        decoder = RandomDecoder(seed, 2, 7)
        options = ResolvedOptions(beam_width=width, max_alternatives=width, allowed=mask, max_output_length=6)
        for found in decode(decoder, 2, options):
            assert found
            for hypothesis in found:
                assert all(mask[symbol] for symbol in hypothesis.symbols)
                assert np.isfinite(hypothesis.score)

    def test_what_is_left_is_normalised(self) -> None:
        table = {(): [0.1, 0.2, 0.7], (1,): [0.5, 0.25, 0.25], (2,): [0.5, 0.25, 0.25]}
        options = ResolvedOptions(allowed=np.array([True, True, False]), max_output_length=1, length_penalty=0.0)
        for width in (1, 2):
            ((found, *_),) = decode(TableDecoder(table), 1, replace(options, beam_width=width))
            assert found.symbols == (1,)
            assert found.log_probability == pytest.approx(np.log(2 / 3 * 2 / 3))

    @pytest.mark.parametrize("width", [1, 3])
    def test_a_text_that_does_not_end_is_cut_and_flagged(self, width: int) -> None:
        endless = after(range(6), [0.0, 0.9, 0.1])
        options = ResolvedOptions(beam_width=width, max_output_length=5)
        ((found, *_),) = decode(TableDecoder(endless), 1, options)
        assert (found.symbols, found.truncated, found.closing_log_probability) == ((1, 1, 1, 1, 1), True, None)
        assert found.log_probability == pytest.approx(5 * np.log(0.9))

    @pytest.mark.parametrize("width", [1, 3])
    def test_a_text_of_exactly_the_maximum_length_is_not_cut(self, width: int) -> None:
        table = {(): [0.1, 0.8, 0.1], (1,): [0.1, 0.8, 0.1], (2,): [0.1, 0.8, 0.1]}
        table |= after([2], [0.9, 0.05, 0.05])
        ((found, *_),) = decode(TableDecoder(table), 1, ResolvedOptions(beam_width=width, max_output_length=2))
        assert (found.symbols, found.truncated) == ((1, 1), False)

    @settings(max_examples=30, deadline=None)
    @given(st.integers(0, 2**32), st.floats(0.2, 5.0), st.sampled_from([1, 4]))
    def test_the_temperature_changes_confidences_and_nothing_else(
        self, seed: int, temperature: float, width: int
    ) -> None:
        decoder = RandomDecoder(seed, 2, 5)
        options = ResolvedOptions(beam_width=width, max_alternatives=width, max_output_length=5, token_details=True)
        plain = decode(decoder, 2, options)
        calibrated = decode(decoder, 2, options, temperature)
        for one, other in zip(itertools.chain(*plain), itertools.chain(*calibrated), strict=True):
            assert (one.symbols, one.score, one.spans) == (other.symbols, other.score, other.spans)
            assert all(value <= 0.0 for value in other.symbol_log_probabilities)

    def test_the_length_penalty_prefers_longer_texts(self) -> None:
        table = {(): [0.5, 0.5, 0.0], (1,): [0.0, 0.9, 0.1], (1, 1): [0.9, 0.1, 0.0], (1, 2): [0.9, 0.1, 0.0]}
        table |= after([3], [1.0, 0.0, 0.0])
        table[(2,)] = table[(2, 1)] = table[(2, 2)] = [1.0, 0.0, 0.0]
        options = ResolvedOptions(beam_width=4, max_output_length=3, length_penalty=0.0)
        assert decode(TableDecoder(table), 1, options)[0][0].symbols == ()
        assert decode(TableDecoder(table), 1, replace(options, length_penalty=1.0))[0][0].symbols == (1, 1)


class TestPlaces:
    def test_a_symbol_lies_where_the_network_looked(self) -> None:
        table = {(): [0.0, 1.0], (1,): [0.0, 1.0], (1, 1): [1.0, 0.0]}
        for width in (1, 2):
            options = ResolvedOptions(beam_width=width, max_output_length=4, token_details=True)
            ((found, *_),) = decode(TableDecoder(table), 1, options)
            assert found.spans == ((0.0, 1.0), (1.0, 2.0))
            ((found, *_),) = decode(TableDecoder(table), 1, replace(options, token_details=False))
            assert found.spans is None, "nobody asked"

    def test_a_glance_at_what_was_read_before_does_not_move_the_place(self) -> None:
        assert _span(np.array([0.16, 0.0, 0.05, 0.02, 0.04, 0.34, 0.29, 0.1]), 8) == (4.0, 8.0)
        assert _span(np.array([0.2, 0.2, 0.6]), 3) == (1.0, 3.0)
        assert _span(np.array([0.25, 0.25, 0.25, 0.25, 0.0]), 4) == (0.0, 3.0)
        assert _span(np.zeros(3), 2) == (0.0, 2.0)

    @given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12).filter(any))
    def test_a_place_is_the_shortest_that_holds_three_quarters_of_the_attention(self, weights: list[float]) -> None:
        attention = np.array(weights) / sum(weights)
        left, right = (int(edge) for edge in _span(attention, len(weights)))
        assert attention[left:right].sum() >= 0.75 - 1e-5
        for start in range(len(weights) - (right - left) + 2):
            assert attention[start : start + right - left - 1].sum() <= 0.75 + 1e-5

    def test_places_stay_within_the_image(self) -> None:
        decoder = RandomDecoder(7, 1, 5)
        options = ResolvedOptions(beam_width=4, max_alternatives=4, max_output_length=6, token_details=True)
        (found,) = decode_attention(decoder, np.array([2]), START, options)
        for left, right in itertools.chain(*(h.spans or () for h in found)):
            assert 0.0 <= left <= right <= 2.0

    @pytest.mark.parametrize("width", [1, 2])
    def test_an_empty_text_has_the_end_s_probability(self, width: int) -> None:
        table = {(): [0.9, 0.05, 0.05], (1,): [0.9, 0.05, 0.05], (2,): [0.9, 0.05, 0.05]}
        options = ResolvedOptions(beam_width=width, max_output_length=1, token_details=True)
        ((found, *_),) = decode(TableDecoder(table), 1, options)
        assert (found.symbols, found.spans) == ((), ())
        assert found.closing_log_probability == pytest.approx(np.log(0.9))

    @pytest.mark.parametrize("width", [1, 2])
    def test_an_image_without_frames_is_read_all_the_same(self, width: int) -> None:
        table = {(): [0.2, 0.8], (1,): [1.0, 0.0]}
        decoder = TableDecoder(table, frames=1)
        options = ResolvedOptions(beam_width=width, max_output_length=1, token_details=True)
        ((found, *_),) = decode_attention(decoder, np.array([0]), START, options)
        assert (found.symbols, found.spans) == ((1,), ((0.0, 0.0),))

    def test_no_images_give_no_readings(self) -> None:
        assert decode(RandomDecoder(0, 0, 4), 0, ResolvedOptions()) == []


def test_all_texts_of_a_search_are_different() -> None:
    def texts() -> Iterator[list[tuple[int, ...]]]:
        options = ResolvedOptions(beam_width=8, max_alternatives=8, max_output_length=4)
        for seed in range(20):
            for found in decode(RandomDecoder(seed, 2, 4), 2, options):
                yield [hypothesis.symbols for hypothesis in found]

    assert all(len(set(found)) == len(found) == 8 for found in texts())


class BlindDecoder(RandomDecoder):
    """The same decoder of a network that does not look at frames."""

    def step(self, symbols: NDArray[np.int64], states: Sequence[FloatArray], images: NDArray[np.int64]) -> StepOutput:
        return replace(super().step(symbols, states, images), attention=None)


@pytest.mark.parametrize("width", [1, 3])
def test_a_decoder_that_does_not_look_at_frames_writes_the_same_without_places(width: int) -> None:
    options = ResolvedOptions(beam_width=width, max_alternatives=width, max_output_length=5, token_details=True)
    seeing, blind = RandomDecoder(7, 3, 4), BlindDecoder(7, 3, 4)
    for expected, found in zip(decode(seeing, 3, options), decode(blind, 3, options), strict=True):
        assert any(hypothesis.spans for hypothesis in expected)
        assert found == [replace(hypothesis, spans=None) for hypothesis in expected]
