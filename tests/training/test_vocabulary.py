from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from glyphline.models.alphabet import Alphabet
from glyphline.training.config import TrainingConfig, VocabularyConfig
from glyphline.training.errors import TrainingError
from glyphline.training.vocabulary import ALPHABET_NAME, learn_vocabulary, run_alphabet, split_words

LABELS = ["the cat sat", "the cats sat on the mat", "a mat", "at the cat"]


def make_config(**settings: object) -> TrainingConfig:
    rest = {"name": "small", "sources": [{"kind": "blank"}], "validation": {"v": {"kind": "folder", "path": "v"}}}
    return TrainingConfig.model_validate(rest | settings)


def test_characters_are_all_that_occur_in_normal_form() -> None:
    assert learn_vocabulary("characters", ["ba", "e\u0301a", ""]) == ("a", "b", "é")


def test_words_carry_the_space_before_them_and_the_most_frequent_is_first() -> None:
    symbols = learn_vocabulary("words", LABELS)
    assert symbols[:4] == (" cat", " mat", " sat", " the")
    assert set(symbols) == {"the", "a", "at", " cat", " cats", " sat", " on", " the", " mat"}
    alphabet = Alphabet(symbols)
    assert [alphabet.symbols[i - 1] for i in alphabet.encode("the cats sat")] == ["the", " cats", " sat"]


def test_subwords_are_characters_and_then_what_occurs_together() -> None:
    symbols = learn_vocabulary("subwords", LABELS, 20)
    characters = learn_vocabulary("characters", LABELS)
    assert symbols[: len(characters)] == characters
    assert len(symbols) == 20
    assert "at" in symbols
    assert " the" in symbols
    assert not any(" " in symbol[1:] for symbol in symbols), "no symbol spans two words"
    alphabet = Alphabet(symbols)
    for label in [*LABELS, "no cheese on the table".replace("b", "m").replace("l", "m")]:
        assert alphabet.decode(alphabet.encode(label)) == label
        assert len(alphabet.encode(label)) < len(label)
    assert learn_vocabulary("subwords", LABELS, 20) == symbols


@given(st.lists(st.text("ab é\u0301 ", max_size=12), max_size=6).filter(any))
@pytest.mark.parametrize(("kind", "size"), [("characters", 0), ("words", 0), ("subwords", 12)])
def test_every_label_can_be_written_with_what_was_learnt(kind: str, size: int, labels: list[str]) -> None:
    settings = VocabularyConfig.model_validate({"kind": kind, "size": size})
    alphabet = Alphabet(learn_vocabulary(settings.kind, labels, size))
    for label in labels:
        assert alphabet.decode(alphabet.encode(label)) == Alphabet.normalise_text(label)


def test_words_join_to_the_text() -> None:
    assert split_words("  a b  c ") == [" ", " a", " b", " ", " c", " "]


@pytest.mark.parametrize(
    ("kind", "size", "message"),
    [
        ("words", 3, "9 different words"),
        ("characters", 2, "raise it, leave it out"),
        ("subwords", 4, "different characters.*: raise it$"),
    ],
)
def test_a_size_that_leaves_labels_unwritten_is_refused(kind: str, size: int, message: str) -> None:
    settings = VocabularyConfig.model_validate({"kind": kind, "size": size})
    with pytest.raises(TrainingError, match=message):
        learn_vocabulary(settings.kind, LABELS, size)


def test_no_labels_are_no_vocabulary() -> None:
    with pytest.raises(TrainingError, match="alphabet ="):
        learn_vocabulary("words", [""])


def test_a_run_keeps_the_vocabulary_it_was_begun_with(tmp_path: Path) -> None:
    config = make_config(vocabulary={"kind": "words"})
    with pytest.raises(TrainingError, match="not learnt yet"):
        config.make_alphabet()
    with pytest.raises(TrainingError, match="is missing"):
        run_alphabet(config, tmp_path)
    first = run_alphabet(config, tmp_path / "run", LABELS)
    assert json.loads((tmp_path / "run" / ALPHABET_NAME).read_text())["symbols"] == list(first.symbols)
    assert run_alphabet(config, tmp_path / "run", ["other labels"]) == first
    assert run_alphabet(config, tmp_path / "run") == first
    learnt = config.with_alphabet(first)
    assert learnt.make_alphabet() == first
    assert learnt.vocabulary == config.vocabulary
    other = make_config(vocabulary={"kind": "subwords", "size": 30})
    with pytest.raises(TrainingError, match=r"holds words.*wants subwords"):
        run_alphabet(other, tmp_path / "run", LABELS)
    (tmp_path / "run" / ALPHABET_NAME).write_text("[]")
    with pytest.raises(TrainingError, match="is no vocabulary"):
        run_alphabet(config, tmp_path / "run")


def test_a_plain_alphabet_needs_no_file(tmp_path: Path) -> None:
    for symbols in ("01", ["0", "1"]):
        assert run_alphabet(make_config(alphabet=symbols), tmp_path) == Alphabet("01")
    assert make_config(alphabet=["ab", "a"]).make_alphabet().encode("aab") == [2, 1]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({}, "neither is there"),
        ({"alphabet": "01", "vocabulary": {"kind": "words"}}, "one of them, not both"),
        ({"vocabulary": {"kind": "subwords"}}, "need a size"),
        (
            {"alphabet": "01", "network": {"heads": ["flatten"], "canvas_width": 256}},
            "set image.max_width = 256",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_what_to_do(settings: dict[str, object], advice: str) -> None:
    with pytest.raises(ValidationError, match=advice):
        make_config(**settings)
