from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from glyphline.models.alphabet import Alphabet
from glyphline.training.config import ComposedConfig, EffectsConfig, RenderedConfig, TextsConfig
from glyphline.training.datasets.build import build_source
from glyphline.training.datasets.characters import CharacterSet
from glyphline.training.datasets.dice import Dice
from glyphline.training.datasets.faces import load_face, set_line
from glyphline.training.datasets.marks import ACCENTS, SIGNS, draw_accent, draw_sign
from glyphline.training.datasets.rendered import RenderedStrips, find_fonts
from glyphline.training.datasets.texts import build_texts
from glyphline.training.datasets.written import WrittenStrips
from glyphline.training.effects import STYLES, Look

ASCII = Alphabet(tuple(map(chr, range(32, 127))))


def rendered(**settings: object) -> RenderedConfig:
    return RenderedConfig.model_validate({"kind": "rendered", "fonts": "fonts", "texts": {}} | settings)


@pytest.mark.parametrize("style", list(STYLES))
def test_strips_of_each_style_are_pictures_of_their_texts(data_root: Path, style: str) -> None:
    source = build_source(rendered(style=style, longest=12), data_root, ASCII)
    for seed in range(30):
        sample = source.draw(np.random.default_rng(seed))
        again = source.draw(np.random.default_rng(seed))
        assert sample.text == again.text
        assert np.array_equal(sample.pixels, again.pixels)
        assert 0 < len(sample.text) <= 12
        assert not ASCII.unknown_characters(sample.text)
        assert sample.pixels.dtype == np.uint8
        assert sample.pixels.ndim == 2
        assert min(sample.pixels.shape) >= 4
        assert int(sample.pixels.max()) - int(sample.pixels.min()) >= 18, "something is to be seen"


def test_digits_are_drawn_as_before_where_no_texts_are_given(data_root: Path) -> None:
    source = build_source(RenderedConfig(kind="rendered", fonts="fonts"), data_root)
    plain = RenderedStrips(tuple(find_fonts(data_root / "fonts")))
    assert isinstance(source, RenderedStrips)
    first, other = (one.draw(np.random.default_rng(3)) for one in (source, plain))
    assert first.text == other.text
    assert np.array_equal(first.pixels, other.pixels)


def test_effects_and_wear_are_settings() -> None:
    given = {one.name for one in fields(Look)} - {"wear"}
    assert given == set(EffectsConfig.model_fields), "every effect can be set"
    assert EffectsConfig(blur=0.9).apply(STYLES["scene"]).blur == 0.9
    for wrong in ({"style": "scene", "texts": None}, {"cells": 0.5}, {"effects": {"least_size": 9, "most_size": 4}}):
        with pytest.raises(ValueError, match=r"texts|least_size"):
            rendered(**wrong)


def test_clean_strips_are_black_on_white(data_root: Path) -> None:
    off = dict.fromkeys((one.name for one in fields(Look) if one.type == "float"), 0.0)
    effects = off | {"clean": 1.0, "least_size": 24, "most_size": 24, "least_contrast": 1}
    wear = {"slant": 0, "rotation": 0, "elastic": 0, "inverted": 0}
    source = build_source(rendered(effects=effects, wear=wear), data_root, ASCII)
    for seed in range(10):
        pixels = source.draw(np.random.default_rng(seed)).pixels
        assert pixels.min() < 90
        assert pixels.max() > 200
        assert np.median(pixels) > 200


def test_a_line_is_as_wide_as_its_letters(data_root: Path) -> None:
    [path] = find_fonts(data_root / "fonts")
    face = load_face(path, 26)
    assert face is load_face(path, 26), "opened once"
    assert face.glyph("A") is face.glyph("A"), "drawn once"
    assert not face.unicase
    narrow, wide = set_line("ill", [face]), set_line("ill", [face], spacing=5)
    assert narrow.shape[0] == wide.shape[0]
    assert wide.shape[1] == narrow.shape[1] + 10
    assert set_line("a b", [face], word_space=2.0).shape[1] > set_line("a b", [face]).shape[1]
    assert set_line("ag", [face], rises=(6, 0)).shape[0] > set_line("ag", [face]).shape[0]
    assert set_line("   ", [face]).max() == 0


@pytest.fixture(scope="module")
def letters() -> CharacterSet:
    """One block of its own grey for each letter and digit."""
    labels = list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") * 2
    images = []
    for index in range(len(labels)):
        image = np.zeros((28, 28), np.uint8)
        image[4:24, 8:20] = 100 + index
        images.append(image)
    return CharacterSet("letters", images, labels, np.zeros(len(labels), np.int64))


def test_letters_stand_where_they_belong(letters: CharacterSet, tmp_path: Path) -> None:
    strips = WrittenStrips(letters, build_texts(TextsConfig(), 20, tmp_path), distortion=0)

    def extent(character: str) -> tuple[int, int]:
        ink, top = strips._character(character, 40, 3.0, 0.0, {}, Dice(np.random.default_rng(1)))
        return top, top + ink.shape[0]

    assert extent("x")[0] > extent("X")[0] + 8, "an x is lower than an X"
    assert extent("p")[1] > extent("x")[1] + 8, "a p goes below the line"
    assert abs(extent("b")[1] - extent("x")[1]) < 6, "both stand on it"
    assert extent("é")[0] < extent("e")[0], "an accent above"
    assert extent("ç")[1] > extent("c")[1], "a cedilla below"


def test_what_no_set_has_is_never_written(letters: CharacterSet, tmp_path: Path) -> None:
    alphabet = Alphabet(tuple("abcßœéÄ€ .,!?"))
    strips = WrittenStrips(letters, build_texts(TextsConfig(), 8, tmp_path, alphabet))
    texts = [strips.draw(np.random.default_rng(seed)).text for seed in range(80)]
    written = set("".join(texts))
    assert written <= set("abcéÄ .,!?")
    assert len(written) > 6
    first, again = (strips.draw(np.random.default_rng(5)).pixels for _ in "ab")
    assert np.array_equal(first, again)


def test_sets_are_mixed(data_root: Path) -> None:
    one = {"reader": "npz", "path": "characters"}
    config = {"kind": "composed", "characters": [one, one], "longest": 6, "texts": {"words": 0, "lines": 0}}
    source = build_source(ComposedConfig.model_validate(config), data_root, Alphabet(tuple("0123456789.")))
    assert isinstance(source, WrittenStrips)
    assert set(source.draw(np.random.default_rng(2)).text) <= set("0123456789.")


@pytest.mark.parametrize("sign", SIGNS)
def test_signs_have_ink_and_room(sign: str) -> None:
    ink = draw_sign(sign, 30, 3.0, Dice(np.random.default_rng(1)))
    assert ink.max() > 100
    assert ink.shape[0] == 40
    assert 0 < (ink > 0).mean() < 0.6


@pytest.mark.parametrize("name", list(ACCENTS.values()))
def test_accents_have_ink(name: str) -> None:
    assert draw_accent(name, 30, 3.0, Dice(np.random.default_rng(1))).max() > 100
