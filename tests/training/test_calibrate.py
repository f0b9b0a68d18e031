"""Confidences are fitted to what is right."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.manifest import LogOdds, Search
from glyphline.models.recognizer import load_recognizer
from glyphline.training.calibrate import SYMBOLS, calibrate, fit_odds
from glyphline.training.datasets.samples import Sample
from glyphline.training.evaluate import read_samples
from glyphline.training.report.calibration import log_loss


@pytest.fixture(scope="module")
def samples(strips_folder: Path) -> list[Sample]:
    found = []
    for line in (strips_folder / "labels.tsv").read_text("utf-8").splitlines():
        name, _, text = line.partition("\t")
        with Image.open(strips_folder / name) as picture:
            found.append(Sample(np.asarray(picture.convert("L")), text, name))
    return found


def test_what_was_put_in_is_found() -> None:
    random = np.random.default_rng(0)
    symbols, share = random.normal(1, 3, 20_000), random.normal(2, 3, 20_000)
    right = random.random(20_000) < 1 / (1 + np.exp(-(0.5 + 0.3 * symbols + 0.8 * share)))
    found = fit_odds([symbols.tolist(), share.tolist()], right.tolist())
    assert (found.offset, found.symbols, found.share) == pytest.approx((0.5, 0.3, 0.8), abs=0.08)
    alone = fit_odds([symbols.tolist()], right.tolist())
    assert alone.symbols > 0.0
    assert alone.share == 0.0


def test_nothing_speaks_against_a_text() -> None:
    random = np.random.default_rng(0)
    symbols, share = random.normal(1, 3, 2000), random.normal(2, 3, 2000)
    right = (random.random(2000) < 1 / (1 + np.exp(-share + symbols))).tolist()
    found = fit_odds([symbols.tolist(), share.tolist()], right)
    assert found.symbols == 0.0
    assert found.share > 0.0


@pytest.mark.parametrize("right", [[True] * 3, [False] * 3])
def test_where_all_are_alike_the_symbols_are_taken_at_their_word(right: list[bool]) -> None:
    assert fit_odds([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], right) == SYMBOLS


@pytest.mark.parametrize("name", ["digits-ctc", "digits"])
def test_fitted_confidences_tell_better_what_is_right(name: str, samples: list[Sample]) -> None:
    recognizer = load_recognizer(name)
    # Labels that are wrong where the network hesitates most: so few strips have hardly a mistake of their own.
    plain = recognizer.with_confidence(temperature=1.0)
    greedy = DecodingOptions(decoder="greedy")
    sure = [reading.confidence for reading in read_samples(plain, samples, greedy)]
    limit = np.quantile(sure, 0.4)
    told = [
        Sample(s.pixels, s.text if value > limit else "#", s.source) for s, value in zip(samples, sure, strict=True)
    ]
    calibrated = calibrate(recognizer, told)
    manifest = calibrated.bundle.manifest
    assert set(manifest.odds) == ({"greedy", "beam"} if manifest.head == "ctc" else {"greedy"})
    for options in (greedy, DecodingOptions(decoder="beam")):
        before, after = read_samples(plain, told, options), read_samples(calibrated, told, options)
        assert [reading.text for reading in before] == [reading.text for reading in after]
        right = [reading.text == sample.text for reading, sample in zip(after, told, strict=True)]
        losses = [log_loss([reading.confidence for reading in readings], right) for readings in (before, after)]
        assert losses[1] < losses[0]


def test_odds_change_confidences_only(samples: list[Sample]) -> None:
    recognizer = load_recognizer("digits-ctc")
    beam = DecodingOptions(decoder="beam", max_alternatives=3)
    odds: dict[Search, LogOdds] = {"beam": LogOdds(offset=-3.0, symbols=0.5, share=0.5)}
    plain = recognizer.with_confidence(temperature=1.0)
    for one, other in zip(
        read_samples(plain, samples, beam),
        read_samples(recognizer.with_confidence(temperature=1.0, odds=odds), samples, beam),
        strict=True,
    ):
        assert [each.text for each in one.alternatives] == [each.text for each in other.alternatives]
        assert [each.log_probability for each in one.alternatives] == [
            each.log_probability for each in other.alternatives
        ]
        assert other.confidence < one.confidence
