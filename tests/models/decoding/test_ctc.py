"""CTC decoding against enumeration of all paths, a plain prefix beam search and another implementation."""

import itertools
import math
from collections import defaultdict
from dataclasses import replace

import fast_ctc_decode
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from glyphline.models.decoding.ctc import Pruning, decode_ctc
from glyphline.models.decoding.distributions import FloatArray, log_softmax
from glyphline.models.decoding.options import ResolvedOptions
from glyphline.models.decoding.readings import Hypothesis

NO_PRUNING = Pruning(threshold=0.0, candidates=10_000, margin=0.0)
GREEDY = ResolvedOptions()
WIDE = ResolvedOptions(beam_width=256, max_alternatives=256)

tiny_logits = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 4), st.integers(2, 4)),
    elements=st.floats(-8.0, 8.0) | st.just(-np.inf),
).filter(lambda logits: bool(np.isfinite(logits.max(axis=1)).all()))


def decode(outputs: FloatArray, options: ResolvedOptions, pruning: Pruning = Pruning()) -> list[Hypothesis]:  # noqa: B008
    """Decodes one image (frames, symbols)."""
    return decode_ctc(outputs[None], np.array([len(outputs)]), options, pruning=pruning)[0]


def collapse(path: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(symbol for symbol, _ in itertools.groupby(path) if symbol)


def writing(path: tuple[int, ...]) -> list[tuple[int, int]]:
    """First and last frame edge of the frames that write each symbol of a path."""
    edges, frame = [], 0
    for symbol, group in itertools.groupby(path):
        start, frame = frame, frame + len(list(group))
        if symbol:
            edges.append((start, frame))
    return edges


def enumerate_texts(outputs: FloatArray) -> dict[tuple[int, ...], float]:
    """Probability of every text, summed over every path."""
    texts: dict[tuple[int, ...], float] = defaultdict(float)
    probabilities = np.exp(outputs)
    for path in itertools.product(range(outputs.shape[1]), repeat=len(outputs)):
        texts[collapse(path)] += math.prod(probabilities[frame, symbol] for frame, symbol in enumerate(path))
    return {text: probability for text, probability in texts.items() if probability > 0.0}


def plain_prefix_beam_search(outputs: FloatArray, width: int) -> list[tuple[int, ...]]:
    """The textbook search, with nothing done for speed."""
    beam: dict[tuple[int, ...], tuple[float, float]] = {(): (1.0, 0.0)}
    for frame in np.exp(outputs):
        blanks: dict[tuple[int, ...], float] = defaultdict(float)
        symbols: dict[tuple[int, ...], float] = defaultdict(float)
        for prefix, (after_blank, after_symbol) in beam.items():
            blanks[prefix] += (after_blank + after_symbol) * frame[0]
            for symbol in range(1, len(frame)):
                if prefix and prefix[-1] == symbol:
                    symbols[prefix] += after_symbol * frame[symbol]
                    symbols[(*prefix, symbol)] += after_blank * frame[symbol]
                else:
                    symbols[(*prefix, symbol)] += (after_blank + after_symbol) * frame[symbol]
        moved = {prefix: (blanks[prefix], symbols[prefix]) for prefix in {*blanks, *symbols}}
        possible = [item for item in moved.items() if sum(item[1]) > 0.0]
        beam = dict(sorted(possible, key=lambda item: -sum(item[1]))[:width])
    return list(beam)


def spell(text: str, *, frames_each: int = 1, sharpness: float = 12.0, size: int = 12) -> FloatArray:
    """Outputs of a confident network: each digit for some frames, blanks between and around."""
    path = [0]
    for digit in text:
        path += [int(digit) + 1] * frames_each + [0]
    logits = np.zeros((len(path), size))
    logits[np.arange(len(path)), path] = sharpness
    return log_softmax(logits)


def read(hypothesis: Hypothesis) -> str:
    return "".join(str(symbol - 1) for symbol in hypothesis.symbols)


def random_outputs(seed: int, images: int, frames: int, size: int, spread: float = 2.0) -> FloatArray:
    return log_softmax(np.random.default_rng(seed).normal(0.0, spread, (images, frames, size)))


def peaky_outputs(seed: int, images: int, frames: int, size: int) -> FloatArray:
    """Like a trained network's: blanks, some sure symbols and a few unsure frames."""
    random = np.random.default_rng(seed)
    logits = random.normal(0.0, 1.0, (images, frames, size))
    logits[:, :, 0] += 12.0
    for image in range(images):
        for frame in range(1, frames - 1, 3):
            if random.random() < 0.7:
                logits[image, frame, random.integers(1, size)] += random.choice([11.0, 14.0, 24.0])
    return log_softmax(logits)


class TestEnumeration:
    @settings(max_examples=150, deadline=None)
    @given(tiny_logits)
    def test_an_unpruned_beam_finds_every_text_with_its_probability(self, logits: FloatArray) -> None:
        outputs = log_softmax(logits)
        texts = enumerate_texts(outputs)
        found = decode(outputs, WIDE, NO_PRUNING)
        assert {hypothesis.symbols for hypothesis in found} == set(texts)
        for hypothesis in found:
            assert hypothesis.log_probability == pytest.approx(math.log(texts[hypothesis.symbols]), abs=1e-9)
        scores = [hypothesis.score for hypothesis in found]
        assert scores == sorted(scores, reverse=True)

    @settings(max_examples=100, deadline=None)
    @given(tiny_logits)
    def test_greedy_takes_the_best_path_and_scores_its_text_over_all_paths(self, logits: FloatArray) -> None:
        outputs = log_softmax(logits)
        (greedy,) = decode(outputs, GREEDY)
        assert greedy.symbols == collapse(tuple(outputs.argmax(axis=1).tolist()))
        assert greedy.score == pytest.approx(math.log(enumerate_texts(outputs)[greedy.symbols]), abs=1e-9)

    @settings(max_examples=100, deadline=None)
    @given(tiny_logits)
    def test_symbols_end_where_the_likeliest_path_has_written_them(self, logits: FloatArray) -> None:
        outputs = log_softmax(logits)
        best: dict[tuple[int, ...], float] = defaultdict(lambda: -math.inf)
        ending: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = defaultdict(lambda: -math.inf)
        for path in itertools.product(range(outputs.shape[1]), repeat=len(outputs)):
            value = sum(outputs[frame, symbol] for frame, symbol in enumerate(path))
            text, ends = collapse(path), tuple(stop for _, stop in writing(path))
            best[text] = max(best[text], value)
            ending[text, ends] = max(ending[text, ends], value)
        for hypothesis in decode(outputs, WIDE, NO_PRUNING):
            ends = tuple(int(right) for _, right in hypothesis.spans or ())
            assert ending[hypothesis.symbols, ends] == pytest.approx(best[hypothesis.symbols], abs=1e-9)


class TestOtherImplementations:
    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 2**32), st.integers(1, 24), st.integers(2, 8), st.integers(2, 12))
    def test_the_search_without_thresholds_keeps_what_the_plain_one_keeps(
        self, seed: int, frames: int, size: int, width: int
    ) -> None:
        outputs = random_outputs(seed, 1, frames, size)[0]
        options = ResolvedOptions(beam_width=width, max_alternatives=width)
        found = {hypothesis.symbols for hypothesis in decode(outputs, options, NO_PRUNING)}
        plain = plain_prefix_beam_search(outputs, width)
        greedy = collapse(tuple(outputs.argmax(axis=1).tolist()))
        assert found <= {*plain, greedy}
        assert len(found) == len(plain)

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 2**32))
    def test_pruning_does_not_change_the_best_of_a_trained_network_s_outputs(self, seed: int) -> None:
        outputs = peaky_outputs(seed, 1, 48, 18)[0]
        options = ResolvedOptions(beam_width=10, max_alternatives=1)
        fast, whole = decode(outputs, options)[0], decode(outputs, options, NO_PRUNING)[0]
        assert replace(fast, share=None) == replace(whole, share=None)
        assert fast.share == pytest.approx(whole.share, abs=0.02)

    @pytest.mark.parametrize("seed", range(30))
    def test_the_best_text_is_that_of_fast_ctc_decode(self, seed: int) -> None:
        outputs = peaky_outputs(seed, 1, 64, 12)[0]
        (best,) = decode(outputs, ResolvedOptions(beam_width=10))
        text, frames = fast_ctc_decode.beam_search(
            np.exp(outputs).astype(np.float32), list("_0123456789x"), beam_size=10, beam_cut_threshold=1e-4
        )
        assert "".join("0123456789x"[symbol - 1] for symbol in best.symbols) == text
        assert len(frames) == len(best.symbols)


class TestGuarantees:
    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 2**32), st.integers(1, 30), st.integers(2, 10), st.sampled_from([0.5, 2.0, 6.0]))
    def test_the_beam_never_scores_below_greedy(self, seed: int, frames: int, size: int, spread: float) -> None:
        outputs = random_outputs(seed, 3, frames, size, spread)
        lengths = np.full(3, frames)
        greedy = decode_ctc(outputs, lengths, GREEDY)
        for width in (2, 10):
            for options in (ResolvedOptions(beam_width=width), ResolvedOptions(beam_width=width, max_alternatives=2)):
                for (alone,), found in zip(greedy, decode_ctc(outputs, lengths, options), strict=True):
                    assert found[0].score >= alone.score - 1e-9

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 2**32))
    def test_an_image_reads_the_same_alone_and_in_any_company(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        lengths = random.integers(0, 20, 6)
        outputs = random_outputs(seed, 6, 20, 6)
        order = random.permutation(6)
        for options in (GREEDY, ResolvedOptions(beam_width=5, max_alternatives=3)):
            together = decode_ctc(outputs, lengths, options, temperature=1.7)
            shuffled = decode_ctc(outputs[order], lengths[order], options, temperature=1.7)
            for image, length in enumerate(lengths.tolist()):
                alone = decode_ctc(
                    outputs[image : image + 1, :length], lengths[image : image + 1], options, temperature=1.7
                )
                assert same(together[image], alone[0])
                assert same(shuffled[int(np.flatnonzero(order == image)[0])], alone[0])

    def test_what_lies_beyond_an_image_s_frames_is_never_looked_at(self) -> None:
        outputs = np.full((2, 30, 12), np.nan)
        outputs[0, :7] = spell("123")
        outputs[1, :11] = spell("45678")
        for options in (GREEDY, ResolvedOptions(beam_width=10, max_alternatives=3)):
            found = decode_ctc(outputs, np.array([7, 11]), options)
            assert [read(hypotheses[0]) for hypotheses in found] == ["123", "45678"]

    @pytest.mark.parametrize("text", ["1111111", "0011", "40799932", "999449", "0870011", "5"])
    @pytest.mark.parametrize("frames_each", [1, 2, 3])
    def test_doubled_symbols_survive(self, text: str, frames_each: int) -> None:
        outputs = spell(text, frames_each=frames_each)
        for options in (GREEDY, ResolvedOptions(beam_width=10), ResolvedOptions(beam_width=2)):
            assert read(decode(outputs, options)[0]) == text

    def test_many_frames_do_not_underflow(self) -> None:
        outputs = random_outputs(3, 1, 2000, 12, 0.3)[0]
        for options in (GREEDY, ResolvedOptions(beam_width=4, max_alternatives=2)):
            for hypothesis in decode(outputs, options):
                assert np.isfinite(hypothesis.score)


class TestOptions:
    @settings(max_examples=60, deadline=None)
    @given(
        st.integers(0, 2**32),
        st.lists(st.booleans(), min_size=7, max_size=7).filter(any),
        st.sampled_from([1, 2, 10]),
    )
    def test_only_allowed_symbols_are_read(self, seed: int, allowed: list[bool], width: int) -> None:
        mask = np.array([True, *allowed])
        outputs = random_outputs(seed, 2, 12, 8)
        options = ResolvedOptions(beam_width=width, max_alternatives=width, allowed=mask)
        found = decode_ctc(outputs, np.full(2, 12), options)
        without = log_softmax(np.where(mask, outputs, -1e9))
        free = replace(options, allowed=None)
        for hypotheses, same_network in zip(found, decode_ctc(without, np.full(2, 12), free), strict=True):
            assert hypotheses
            assert all(mask[symbol] for hypothesis in hypotheses for symbol in hypothesis.symbols)
            assert hypotheses[0].score == pytest.approx(same_network[0].score, abs=1e-6)

    def test_a_restriction_to_impossible_symbols_still_reads_something(self) -> None:
        outputs = np.full((1, 3, 4), -np.inf)
        outputs[:, :, 3] = 0.0
        for width in (1, 5):
            options = ResolvedOptions(beam_width=width, allowed=np.array([True, True, False, False]))
            (found,) = decode_ctc(outputs, np.array([3]), options)
            assert np.isfinite(found[0].score)

    @pytest.mark.parametrize("width", [1, 10])
    def test_a_long_text_is_cut_and_flagged(self, width: int) -> None:
        outputs = spell("1234567")
        options = ResolvedOptions(beam_width=width, max_output_length=4)
        (cut,) = decode(outputs, options)
        assert (read(cut), cut.truncated) == ("1234", True)
        assert cut.spans is not None
        assert len(cut.spans) == len(cut.symbol_log_probabilities) == 4
        (whole,) = decode(outputs, replace(options, max_output_length=7))
        assert (read(whole), whole.truncated) == ("1234567", False)

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 2**32), st.integers(1, 5))
    def test_cut_alternatives_are_still_different_and_in_order(self, seed: int, longest: int) -> None:
        options = ResolvedOptions(beam_width=8, max_alternatives=8, max_output_length=longest)
        found = decode(random_outputs(seed, 1, 16, 4)[0], options)
        texts = [hypothesis.symbols for hypothesis in found]
        assert len(set(texts)) == len(texts)
        assert all(len(text) <= longest for text in texts)
        scores = [hypothesis.score for hypothesis in found]
        assert scores == sorted(scores, reverse=True)

    @pytest.mark.parametrize("most", [1, 3, 10])
    def test_there_are_no_more_alternatives_than_asked_for(self, most: int) -> None:
        outputs = random_outputs(5, 1, 20, 8)[0]
        assert len(decode(outputs, ResolvedOptions(beam_width=10, max_alternatives=most))) == most

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 2**32), st.floats(0.2, 5.0))
    def test_the_temperature_changes_confidences_and_nothing_else(self, seed: int, temperature: float) -> None:
        outputs = random_outputs(seed, 1, 12, 6)
        options = ResolvedOptions(beam_width=6, max_alternatives=6)
        plain = decode_ctc(outputs, np.array([12]), options)[0]
        calibrated = decode_ctc(outputs, np.array([12]), options, temperature=temperature)[0]
        assert [(h.symbols, h.score, h.spans) for h in plain] == [(h.symbols, h.score, h.spans) for h in calibrated]
        for hypothesis in calibrated:
            assert all(value <= 0.0 for value in hypothesis.symbol_log_probabilities)


class TestPlaces:
    def test_each_symbol_has_what_was_read_for_it_and_its_likeliest_value(self) -> None:
        outputs = spell("77", frames_each=2)
        outputs[1, 8] = -0.5
        for options in (GREEDY, ResolvedOptions(beam_width=10)):
            found = decode(outputs, options)[0]
            assert found.spans == ((0.0, 3.0), (3.0, 6.0))
            assert found.symbol_log_probabilities[0] == pytest.approx(outputs[2, 8])
            assert found.closing_log_probability is None

    @pytest.mark.parametrize(
        ("path", "spans"),
        [
            # Written late, each at the edge to the next: blank, then the symbol.
            ([0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 3, 0], ((0.5, 4.0), (4.0, 7.0), (7.0, 11.0))),
            # A wide margin before the first is not the first's.
            ([0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 3], ((4.5, 7.0), (7.0, 9.0), (9.0, 12.0))),
            # The first is written over more frames than the others were read from.
            ([0, 1, 1, 1, 2, 3], ((1.0, 4.0), (4.0, 5.0), (5.0, 6.0))),
            # The strip begins in the middle of the first.
            ([1, 0, 0, 2, 2], ((0.0, 1.0), (1.0, 5.0))),
            # Alone.
            ([0, 0, 1, 1, 0], ((0.0, 4.0),)),
            ([1, 0], ((0.0, 1.0),)),
        ],
    )
    def test_a_symbol_lies_between_the_end_of_the_one_before_and_its_own(
        self, path: list[int], spans: tuple[tuple[float, float], ...]
    ) -> None:
        outputs = log_softmax(np.where(np.arange(4) == np.array(path)[:, None], 20.0, 0.0))
        for options in (GREEDY, ResolvedOptions(beam_width=4)):
            assert decode(outputs, options)[0].spans == spans

    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 2**32), st.integers(1, 30))
    def test_symbols_join_within_the_strip_and_hold_the_frames_that_write_them(self, seed: int, frames: int) -> None:
        outputs = random_outputs(seed, 3, frames, 4)
        lengths = np.array([frames, frames // 2, 1])
        for (found,), image, length in zip(
            decode_ctc(outputs, lengths, GREEDY), outputs, lengths.tolist(), strict=True
        ):
            assert found.spans is not None
            edges = [0.0, *itertools.chain(*found.spans), float(length)]
            assert edges == sorted(edges)
            assert all(left == right for (_, left), (right, _) in itertools.pairwise(found.spans))
            written = writing(tuple(image[:length].argmax(axis=1).tolist()))
            for (left, right), (start, stop) in zip(found.spans, written, strict=True):
                assert left <= start < stop == right

    @pytest.mark.parametrize("width", [1, 4])
    def test_an_empty_text_has_the_blanks_probability(self, width: int) -> None:
        outputs = log_softmax(np.array([[5.0, 0.0], [4.0, 0.0], [5.0, 1.0]]))
        found = decode(outputs, ResolvedOptions(beam_width=width))[0]
        assert (found.symbols, found.spans, found.symbol_log_probabilities) == ((), (), ())
        assert found.closing_log_probability == pytest.approx(outputs[:, 0].mean())
        assert found.log_probability == pytest.approx(outputs[:, 0].sum())

    def test_an_empty_alternative_has_the_blanks_probability_too(self) -> None:
        outputs = log_softmax(np.array([[1.0, 0.5], [0.0, 1.0]]))
        found = {h.symbols: h for h in decode(outputs, ResolvedOptions(beam_width=4, max_alternatives=4))}
        assert found[()].closing_log_probability == pytest.approx(outputs[:, 0].mean())

    @pytest.mark.parametrize("width", [1, 4])
    def test_an_image_without_frames_reads_as_nothing_for_certain(self, width: int) -> None:
        options = ResolvedOptions(beam_width=width, max_alternatives=width)
        nothing = Hypothesis((), 0.0, 0.0, (), 0.0, (), share=None if width == 1 else 1.0)
        assert decode_ctc(np.zeros((2, 0, 5)), np.zeros(2, dtype=np.int64), options) == [[nothing], [nothing]]
        mixed = decode_ctc(random_outputs(1, 2, 6, 5), np.array([6, 0]), options)
        assert mixed[1] == [nothing]

    @given(st.integers(0, 2**32))
    def test_shares_are_parts_of_one_whole(self, seed: int) -> None:
        outputs = random_outputs(seed, 1, 8, 5)[0]
        few, many = (decode(outputs, ResolvedOptions(beam_width=6, max_alternatives=most)) for most in (1, 6))
        shares = [hypothesis.share for hypothesis in many]
        assert all(share is not None and 0.0 <= share <= 1.0 for share in shares)
        assert sum(share or 0.0 for share in shares) <= 1.0 + 1e-9
        of_text = {hypothesis.symbols: hypothesis.share for hypothesis in many}
        assert few[0].share == of_text[few[0].symbols], "it does not depend on how many are asked for"

    def test_no_images_give_no_readings(self) -> None:
        assert decode_ctc(np.zeros((0, 9, 5)), np.zeros(0, dtype=np.int64), GREEDY) == []
        assert decode_ctc(np.zeros((0, 9, 5)), np.zeros(0, dtype=np.int64), ResolvedOptions(beam_width=3)) == []


def same(left: list[Hypothesis], right: list[Hypothesis]) -> bool:
    """Equal up to the last bits of sums."""

    def numbers(hypothesis: Hypothesis) -> NDArray[np.float64]:
        closing = hypothesis.closing_log_probability or 0.0
        values = (hypothesis.score, *hypothesis.symbol_log_probabilities, closing)
        return np.array([*values, *itertools.chain(*hypothesis.spans or ())])

    return [h.symbols for h in left] == [h.symbols for h in right] and all(
        np.allclose(numbers(one), numbers(other), rtol=0, atol=1e-9) for one, other in zip(left, right, strict=True)
    )
