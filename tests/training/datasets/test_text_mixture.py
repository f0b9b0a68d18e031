from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphline.models.alphabet import Alphabet
from glyphline.training.config import TextsConfig
from glyphline.training.config.texts import KINDS
from glyphline.training.datasets.dice import Dice
from glyphline.training.datasets.texts import build_texts, read_words
from glyphline.training.datasets.texts.words import learn_babble
from glyphline.training.errors import DataError

ASCII = "".join(map(chr, range(32, 127)))
NOTHING = dict.fromkeys(KINDS, 0.0)


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lists")
    words = "apple Banana cherry's don't Größe über naïve façade NATO e-mail a I zoo lantern spoon river mountain"
    (root / "words.txt").write_text("\n".join(words.split()), encoding="utf-8")
    return root


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    longest=st.integers(1, 60),
    alphabet=st.sampled_from([ASCII, ASCII + "äöüßéèçà’«»", "0123456789", "abcdefghij ", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"]),
    kind=st.sampled_from([*KINDS, "all"]),
    languages=st.sampled_from([("en",), ("de", "fr")]),
)
def test_texts_are_of_the_alphabet_and_not_too_long(
    lists: Path, seed: int, longest: int, alphabet: str, kind: str, languages: tuple[str, ...]
) -> None:
    shares = {} if kind == "all" else NOTHING | {kind: 1.0}
    files = ("words.txt",) if "a" in alphabet.lower() and len(alphabet) > 20 else ()
    if kind == "babble" and not files:
        return
    config = TextsConfig.model_validate({"lists": files, "languages": languages, "marks": 0.5} | shares)
    texts = build_texts(config, longest, lists, Alphabet(tuple(alphabet)))
    dice = Dice(np.random.default_rng(seed))
    for _ in range(8):
        text = texts.draw(dice)
        assert 0 < len(text) <= longest
        assert set(text) <= set(alphabet)
        assert text == " ".join(text.split())
        assert unicodedata.is_normalized("NFC", text)


def test_a_seed_gives_one_sequence_of_texts(lists: Path) -> None:
    texts = build_texts(TextsConfig(lists=("words.txt",)), 30, lists, Alphabet(tuple(ASCII)))
    first, again = ([texts.draw(dice) for _ in range(50)] for dice in (Dice(np.random.default_rng(3)) for _ in "ab"))
    assert first == again
    assert len(set(first)) > 25


def test_what_cannot_be_drawn_is_avoided(lists: Path) -> None:
    texts = build_texts(TextsConfig(lists=("words.txt",)), 20, lists, Alphabet(tuple(ASCII)))
    dice = Dice(np.random.default_rng(1))
    only = frozenset("abcdefghijklmnopqrstuvwxyz ")
    assert all(set(texts.draw(dice, only)) <= only for _ in range(200))
    with pytest.raises(DataError, match="not one character"):
        texts.draw(dice, frozenset("é"))


def test_cases_and_shares_are_kept(lists: Path) -> None:
    upper = {"same": 0, "lower": 0, "title": 0, "upper": 1, "mixed": 0}
    config = TextsConfig.model_validate(NOTHING | {"words": 1, "lists": ["words.txt"], "cases": upper, "marks": 0})
    dice = Dice(np.random.default_rng(1))
    texts = build_texts(config, 20, lists)
    assert all(text == text.upper() for text in (texts.draw(dice) for _ in range(100)))
    with pytest.raises(ValueError, match="above 0"):
        TextsConfig.model_validate(NOTHING)


def test_babble_is_made_of_what_it_learnt() -> None:
    babble = learn_babble(["banana", "bandana", "cabana"])
    dice = Dice(np.random.default_rng(1))
    words = [babble.draw(dice, 9) for _ in range(200)]
    assert all(len(word) <= 9 and set(word) <= set("bandc") for word in words)
    assert set(words) - {"banana", "bandana", "cabana"}, "words that are in no list"


def test_lists_are_read_with_their_faults(tmp_path: Path) -> None:
    (tmp_path / "flags.txt").write_text("\ufeffHaus/S\n\nHaus/T\ntür\n", encoding="utf-8")
    assert read_words(tmp_path / "flags.txt") == ("Haus", "tür")
    with pytest.raises(DataError, match="fetch_words"):
        read_words(tmp_path / "none.txt")
    (tmp_path / "bad.txt").write_bytes(b"caf\xe9\n")
    with pytest.raises(DataError, match="not UTF-8"):
        read_words(tmp_path / "bad.txt")
    with pytest.raises(DataError, match="no word of it"):
        build_texts(TextsConfig(lists=("flags.txt",)), 9, tmp_path, Alphabet(tuple("0123")))


def test_dice_are_a_function_of_the_generator() -> None:
    one, other = (Dice(np.random.default_rng(7)) for _ in "ab")
    assert [one.unit() for _ in range(300)] == [other.unit() for _ in range(300)]
    values = [one.normal() for _ in range(4000)]
    assert abs(float(np.mean(values))) < 0.06
    assert abs(float(np.std(values)) - 1) < 0.06
    assert {one.whole(2, 5) for _ in range(100)} == {2, 3, 4}
    assert [one.pick_by("ab", (0.0, 1.0)) for _ in range(20)] == ["b"] * 20
