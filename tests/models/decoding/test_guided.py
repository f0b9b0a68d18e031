"""Decoding with a lexicon and a language model against enumeration of all texts, for both kinds of head."""

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from glyphline.models.alphabet import Alphabet
from glyphline.models.decoding.attention import StepOutput, decode_attention
from glyphline.models.decoding.ctc import Pruning, decode_ctc
from glyphline.models.decoding.distributions import FloatArray, log_softmax
from glyphline.models.decoding.guide import make_guide
from glyphline.models.decoding.language_model import CharacterModel
from glyphline.models.decoding.lexicon import Lexicon
from glyphline.models.decoding.options import DecodingOptions, ResolvedOptions
from glyphline.models.decoding.readings import Hypothesis
from glyphline.models.manifest import DecoderDefaults

LETTERS = Alphabet("ab ")
NO_PRUNING = Pruning(threshold=0.0, candidates=10_000, margin=0.0)
START = 99
FRAMES = 5
Text = tuple[int, ...]

MODEL = CharacterModel(
    rb"""
\data\
ngram 1=6
ngram 2=5
ngram 3=2

\1-grams:
-99 <s> -0.3
-0.9 </s>
-1.5 <unk>
-0.6 a -0.2
-0.8 b -0.4
-1.1 <space> -0.1

\2-grams:
-0.3 <s> a -0.1
-0.2 a b -0.3
-0.4 b </s>
-0.7 b b 0.1
-0.5 a <space>

\3-grams:
-0.1 <s> a b
-0.9 a b b

\end\
"""
)


@dataclass(frozen=True)
class Case:
    """What a search is asked for, and the definition of what it should find."""

    words: tuple[str, ...] | None
    several_words: bool
    model: CharacterModel | None
    weight: float
    bonus: float

    def options(self, **others: object) -> ResolvedOptions:
        options = DecodingOptions(
            decoder="beam",
            lexicon=None if self.words is None else Lexicon(self.words),
            several_words=self.several_words,
            language_model=self.model,
            language_model_weight=self.weight,
            length_bonus=self.bonus,
        )
        resolved = options.resolve(LETTERS, DecoderDefaults(name="greedy", beam_width=1, length_penalty=0.0), 100)
        return replace(resolved, **others)  # type: ignore[arg-type]

    def added(self, text: Text, greedy_is_empty: bool) -> float:
        """What lexicon, language model and bonus add to the score of a text."""
        spelling = "".join(LETTERS.symbols[symbol - 1] for symbol in text)
        if self.words is not None and not (greedy_is_empty and not text):
            allowed = {part for word in self.words for part in word.split(" ")} if self.several_words else {*self.words}
            parts = spelling.split(" ") if self.several_words else [spelling]
            if not all(part in allowed for part in parts):
                return -math.inf
        likelihood = 0.0 if self.model is None else self.weight * self.model.log_probability(spelling)
        return likelihood + self.bonus * len(text)


cases = st.builds(
    Case,
    words=st.lists(st.text("ab ", min_size=1, max_size=4).map(str.strip).filter(bool), min_size=1, max_size=4).map(
        lambda words: tuple(" ".join(word.split()) for word in words)
    ),
    several_words=st.booleans(),
    model=st.sampled_from([None, MODEL]),
    weight=st.sampled_from([0.0, 0.3, 1.0]),
    bonus=st.sampled_from([-0.5, 0.0, 0.7]),
) | st.builds(
    Case,
    words=st.none(),
    several_words=st.just(False),
    model=st.just(MODEL),
    weight=st.sampled_from([0.3, 1.0, 3.0]),
    bonus=st.sampled_from([-0.5, 0.0, 0.7]),
)


def ctc_texts(outputs: FloatArray) -> dict[Text, float]:
    """Log-probability of every text, summed over every path."""
    texts: dict[Text, float] = defaultdict(float)
    for path in itertools.product(range(outputs.shape[1]), repeat=len(outputs)):
        text = tuple(symbol for symbol, _ in itertools.groupby(path) if symbol)
        texts[text] += math.exp(sum(outputs[frame, symbol] for frame, symbol in enumerate(path)))
    return {text: math.log(probability) for text, probability in texts.items()}


def random_outputs(seed: int, frames: int, spread: float = 2.0) -> FloatArray:
    return log_softmax(np.random.default_rng(seed).normal(0.0, spread, (frames, LETTERS.size)))


def greedy_text(outputs: FloatArray) -> Text:
    return tuple(symbol for symbol, _ in itertools.groupby(outputs.argmax(axis=1).tolist()) if symbol)


def decode(outputs: FloatArray, options: ResolvedOptions, pruning: Pruning | None = None) -> list[Hypothesis]:
    return decode_ctc(outputs[None], np.array([len(outputs)]), options, pruning=pruning)[0]


class TestCtc:
    @settings(max_examples=80, deadline=None)
    @given(cases, st.integers(0, 2**32), st.integers(1, 5))
    def test_a_wide_beam_finds_what_trying_every_text_finds(self, case: Case, seed: int, frames: int) -> None:
        outputs = random_outputs(seed, frames)
        empty = not greedy_text(outputs)
        scores = {text: chance + case.added(text, empty) for text, chance in ctc_texts(outputs).items()}
        chances = ctc_texts(outputs)
        possible = sorted((text for text in scores if scores[text] > -math.inf), key=lambda text: -scores[text])
        found = decode(outputs, case.options(beam_width=256, max_alternatives=256), NO_PRUNING)
        if not possible:
            assert [(each.symbols, each.closing_log_probability) for each in found] == [((), -math.inf)]
            return
        assert {each.symbols for each in found} == set(possible)
        assert [each.score for each in found] == pytest.approx([scores[text] for text in possible], abs=1e-9)
        assert [each.log_probability for each in found] == pytest.approx(
            [chances[each.symbols] for each in found], abs=1e-9
        )

    @settings(max_examples=60, deadline=None)
    @given(cases, st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 6))
    def test_a_narrow_beam_always_finds_something_allowed(self, case: Case, seed: int, frames: int, width: int) -> None:
        outputs = random_outputs(seed, frames, spread=6.0)
        found = decode(outputs, case.options(beam_width=width, max_alternatives=width))
        assert 1 <= len(found) <= width
        assert len({each.symbols for each in found}) == len(found)
        for each in found:
            added = case.added(each.symbols, not greedy_text(outputs))
            if each.closing_log_probability != -math.inf:
                assert each.score == pytest.approx(each.log_probability + added, abs=1e-9)
                assert added > -math.inf
        greedy = greedy_text(outputs)
        chance = decode(outputs, ResolvedOptions())[0].log_probability
        assert found[0].score >= chance + case.added(greedy, not greedy) - 1e-9 or found[0].symbols == ()

    def test_a_word_far_from_what_the_network_reads_is_found(self) -> None:
        """The network is all but certain of "bbbb"; only one word of the lexicon has room in the frames."""
        logits = np.full((9, LETTERS.size), -40.0)
        logits[np.arange(9), [0, 2, 0, 2, 0, 2, 0, 2, 0]] = 40.0
        case = Case(("a a a a a a a", "abaab"), False, None, 1.0, 0.0)
        (found,) = decode(log_softmax(logits), case.options(beam_width=4))
        assert LETTERS.decode(found.symbols) == "abaab"
        assert found.symbol_log_probabilities[0] < -40.0

    def test_no_room_for_any_word_is_an_empty_text_of_no_confidence(self) -> None:
        case = Case(("abab", "bb"), False, None, 1.0, 0.0)
        outputs = random_outputs(3, 1)
        outputs[0] = log_softmax(np.array([0.0, 0.0, 9.0, 0.0]))
        (found,) = decode(outputs, case.options())
        assert (found.symbols, found.closing_log_probability) == ((), -math.inf)
        assert math.isfinite(found.log_probability)

    def test_an_image_without_writing_reads_as_nothing(self) -> None:
        outputs = log_softmax(np.tile([9.0, 0.0, 0.0, 0.0], (6, 1)))
        for case in (Case(("ab", "b"), False, MODEL, 0.3, 0.0), Case(("ab",), True, None, 1.0, 0.0)):
            assert decode(outputs, case.options())[0].symbols == ()

    @pytest.mark.parametrize("words", [None, ("ab", "bba", "a b", "baab")])
    def test_an_image_reads_the_same_alone_and_in_a_batch(self, words: tuple[str, ...] | None) -> None:
        options = Case(words, False, MODEL, 0.5, 0.1).options(beam_width=8, max_alternatives=3)
        outputs = np.stack([random_outputs(seed, 12) for seed in range(6)])
        lengths = np.array([12, 7, 1, 0, 12, 5])
        together = decode_ctc(outputs, lengths, options)
        alone = [decode(image[:length], options) for image, length in zip(outputs, lengths, strict=True)]
        assert [[each.symbols for each in image] for image in together] == [
            [each.symbols for each in image] for image in alone
        ]

    def test_a_long_text_is_cut_and_flagged(self) -> None:
        outputs = log_softmax(np.eye(LETTERS.size)[[0, 1, 0, 2, 0, 1, 0]] * 12.0)
        options = Case(("aba", "b"), False, None, 1.0, 0.0).options(max_output_length=2)
        (found,) = decode(outputs, options)
        assert (LETTERS.decode(found.symbols), found.truncated) == ("ab", True)


class RandomDecoder:
    """A recurrent network with random weights, one for each image."""

    def __init__(self, seed: int, images: int) -> None:
        random = np.random.default_rng(seed)
        self._inputs = random.normal(0.0, 1.0, (LETTERS.size + 1, 5))
        self._recurrence = random.normal(0.0, 1.0, (5, 5))
        self._outputs = random.normal(0.0, 2.0, (5, LETTERS.size))
        self.initial = random.normal(0.0, 1.0, (images, 5))

    def start(self) -> Sequence[FloatArray]:
        return [self.initial]

    def step(self, symbols: NDArray[np.int64], states: Sequence[FloatArray], images: NDArray[np.int64]) -> StepOutput:
        inputs = self._inputs[np.where(symbols == START, LETTERS.size, symbols)]
        hidden = np.tanh((states[0][:, :, None] * self._recurrence).sum(axis=1) + inputs)
        logits = (hidden[:, :, None] * self._outputs).sum(axis=1)
        attention = np.full((len(symbols), FRAMES), 1.0 / FRAMES)
        return StepOutput(log_softmax(logits), attention, [hidden])

    def following(self, text: Text) -> tuple[float, FloatArray]:
        """Log-probability of a text's symbols, and the log-probabilities of what follows."""
        states: Sequence[FloatArray] = [self.initial[:1]]
        total = 0.0
        for symbol, then in zip((START, *text), (*text, None), strict=True):
            output = self.step(np.array([symbol]), states, np.array([0]))
            total += 0.0 if then is None else float(output.log_probabilities[0, then])
            states = output.states
        return total, output.log_probabilities[0]


def read(decoder: RandomDecoder, options: ResolvedOptions) -> list[list[Hypothesis]]:
    return decode_attention(decoder, np.full(len(decoder.initial), FRAMES), START, options)


class TestStepByStep:
    @settings(max_examples=60, deadline=None)
    @given(cases, st.integers(0, 2**32), st.sampled_from([0.0, 0.7, 1.0]), st.integers(1, 4))
    def test_a_wide_beam_finds_what_trying_every_text_finds(
        self, case: Case, seed: int, penalty: float, most: int
    ) -> None:
        longest = 3
        decoder = RandomDecoder(seed, 1)
        options = case.options(beam_width=60, max_alternatives=most, length_penalty=penalty, max_output_length=longest)
        empty = int(decoder.following(())[1].argmax()) == 0
        scores: dict[Text, float] = {}
        chances: dict[Text, float] = {}
        for length in range(longest + 1):
            for text in itertools.product(range(1, LETTERS.size), repeat=length):
                total, last = decoder.following(text)
                added = case.added(text, empty)
                if length == longest and case.words is None:
                    row, state = options.guide.row, options.guide.start  # type: ignore[union-attr]
                    for symbol in text:
                        state = options.guide.follow(state, symbol)  # type: ignore[union-attr]
                    if int((last + row(state)).argmax()) != 0:  # cut: its end has not been written
                        added -= float(row(state)[0])
                        scores[text] = (total + added) / length**penalty
                        chances[text] = total
                        continue
                if added > -math.inf:
                    scores[text] = (total + float(last[0]) + added) / (length + 1) ** penalty
                    chances[text] = total + float(last[0])
        (found,) = read(decoder, options)
        if not scores:
            assert all(each.truncated for each in found)
            assert found
            return
        best = sorted(scores.values(), reverse=True)[: len(found)]
        assert found[0].score == pytest.approx(best[0], abs=1e-9)
        for each in found:
            assert each.score == pytest.approx(scores[each.symbols], abs=1e-9)
            assert each.log_probability == pytest.approx(chances[each.symbols], abs=1e-9)

    @settings(max_examples=40, deadline=None)
    @given(cases, st.integers(0, 2**32), st.integers(1, 4))
    def test_images_do_not_depend_on_their_company(self, case: Case, seed: int, width: int) -> None:
        options = case.options(beam_width=width, max_alternatives=width, max_output_length=5)
        decoder = RandomDecoder(seed, 3)
        together = read(decoder, options)
        for image, hypotheses in enumerate(together):
            lone = RandomDecoder(seed, 3)
            lone.initial = decoder.initial[[image]]
            (alone,) = read(lone, options)
            assert [each.symbols for each in hypotheses] == [each.symbols for each in alone]
            assert len({each.symbols for each in hypotheses}) == len(hypotheses) >= 1
            for each in hypotheses:
                assert each.truncated or case.added(each.symbols, True) > -math.inf


class TestGuide:
    def test_states_mean_the_same_whenever_they_are_reached(self) -> None:
        guide = make_guide(LETTERS, Lexicon(["abba", "ab"]), MODEL, False, 0.5, 0.1)
        assert guide is make_guide(LETTERS, Lexicon(["ab", "abba"]), MODEL, False, 0.5, 0.1)
        state = guide.follow(guide.follow(guide.start, 1), 2)
        assert np.isfinite(guide.row(state)).tolist() == [True, False, True, False]
        assert guide.score((1, 2)) == pytest.approx(0.5 * MODEL.log_probability("ab") + 0.2)
        assert guide.score((2,)) == -np.inf
        assert guide.completions(guide.start, 5) == [(1, 2), (1, 2, 2, 1)]
        assert guide.completions(state, 1) == [()]
