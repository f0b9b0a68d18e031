"""Language models made of texts: what is written is what was computed, and it is a probability."""

import itertools
import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphline.models.alphabet import Alphabet
from glyphline.models.decoding.language_model import CharacterModel
from glyphline.models.errors import OptionsError
from glyphline.training.language_model import bits_per_character, count_and_smooth, write_arpa

TEXTS = ["ab", "abba", "b a", "ab", "é"]


def make(texts: list[str], order: int, folder: Path, minimum_count: int = 1) -> CharacterModel:
    write_arpa(count_and_smooth(texts, order, minimum_count), folder / "m.arpa")
    return CharacterModel.read(folder / "m.arpa")


def witten_bell(texts: list[str], order: int) -> dict[str, float]:
    """The definition, for every text of up to four characters: natural log-probabilities."""
    lines = [["<s>", *text, "</s>"] for text in texts]
    counts: Counter[tuple[str, ...]] = Counter()
    for line in lines:
        for length in range(1, order + 1):
            counts.update(tuple(line[start : start + length]) for start in range(len(line) - length + 1))
    vocabulary = sorted({token for line in lines for token in line} - {"<s>"})

    def probability(token: str, context: tuple[str, ...]) -> float:
        following = {other: counts[*context, other] for other in vocabulary if counts[*context, other]}
        kinds, seen = len(following), sum(following.values())
        shorter = probability(token, context[1:]) if context else 1.0 / (len(vocabulary) + 1)
        return (following.get(token, 0) + kinds * shorter) / (seen + kinds) if kinds else shorter

    def score(text: str) -> float:
        tokens = ["<s>", *text, "</s>"]
        places = range(1, len(tokens))
        return sum(math.log(probability(tokens[p], tuple(tokens[max(0, p - order + 1) : p]))) for p in places)

    letters = [token for token in vocabulary if token != "</s>"]
    return {
        "".join(text): score("".join(text)) for length in range(4) for text in itertools.product(letters, repeat=length)
    }


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("abc", min_size=1, max_size=5), min_size=1, max_size=6), st.integers(1, 5))
def test_it_is_witten_bell(tmp_path_factory: pytest.TempPathFactory, texts: list[str], order: int) -> None:
    model = make(texts, order, tmp_path_factory.mktemp("model"))
    for text, expected in witten_bell(texts, order).items():
        assert model.log_probability(text) == pytest.approx(expected, abs=1e-5), text


@pytest.mark.parametrize(("order", "minimum_count"), [(1, 1), (2, 1), (5, 1), (5, 2), (10, 3)])
def test_probabilities_after_any_context_come_to_one(tmp_path: Path, order: int, minimum_count: int) -> None:
    bound = make(TEXTS * 2, order, tmp_path, minimum_count).bind(Alphabet("abé qx"))
    unknown = bound.row(bound.start)[[5, 6]]
    assert unknown[0] == unknown[1]
    for text in ("", "a", "ab", "abba", "b ", "qab", "é"):
        state = bound.start
        for symbol in bound.alphabet.encode(text):
            state = bound.follow(state, symbol)
        total = sum(math.exp(value) for value in bound.row(state)[:6])  # q stands for all that is unknown
        assert total == pytest.approx(1.0, abs=1e-5)


def test_rare_sequences_can_be_left_out(tmp_path: Path) -> None:
    everything, frequent = count_and_smooth(TEXTS, 4), count_and_smooth(TEXTS, 4, 2)
    assert frequent.counts[:2] == everything.counts[:2]
    assert sum(frequent.counts) < sum(everything.counts)
    assert make(TEXTS, 4, tmp_path, 2).log_probability("ab") > make(TEXTS, 4, tmp_path).log_probability("ba")


def test_it_can_be_packed_and_white_space_is_a_space(tmp_path: Path) -> None:
    write_arpa(count_and_smooth(["  b\t a \r", "", "ab"], 3), tmp_path / "m.arpa.gz")
    assert (tmp_path / "m.arpa.gz").read_bytes().startswith(b"\x1f\x8b")
    assert CharacterModel.read(tmp_path / "m.arpa.gz").characters == frozenset("ab ")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [(([" ", ""], 3), "texts"), ((["a"], 0), "order"), ((["a"], 11), "order"), ((["a"], 3, 0), "minimum_count")],
)
def test_what_cannot_be_done_is_an_error(arguments: tuple[list[str], int], field: str) -> None:
    with pytest.raises(OptionsError) as caught:
        count_and_smooth(*arguments)
    assert caught.value.field == field


def test_bits() -> None:
    assert bits_per_character([math.log(0.25), math.log(0.5)], 3) == pytest.approx(1.0)


def test_fewer_decimals_are_a_little_less_exact(tmp_path: Path) -> None:
    ngrams = count_and_smooth(TEXTS, 3)
    write_arpa(ngrams, tmp_path / "exact.arpa")
    write_arpa(ngrams, tmp_path / "short.arpa.gz", decimals=2)
    exact, short = (CharacterModel.read(tmp_path / name) for name in ("exact.arpa", "short.arpa.gz"))
    assert len(exact) == len(short)
    for text in TEXTS:
        assert short.log_probability(text) == pytest.approx(exact.log_probability(text), abs=0.05)
        assert short.log_probability(text) != exact.log_probability(text)
