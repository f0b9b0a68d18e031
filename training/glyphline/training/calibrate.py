"""What a bundle's confidences are made of, so that they tell best which texts are right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression

from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.manifest import LogOdds, Search
from glyphline.models.recognizer import Recognizer
from glyphline.training.datasets.samples import Sample
from glyphline.training.evaluate import read_samples
from glyphline.training.report.calibration import log_odds

SYMBOLS = LogOdds(offset=0.0, symbols=1.0)
"""Takes the symbols at their word: the confidence is the product of theirs."""

_SHARE = LogOdds(offset=0.0, symbols=0.0, share=1.0)
_FREEDOM = 100.0  # of the fit from its pull towards no weight at all, which matters only where few texts are wrong


def calibrate(recognizer: Recognizer, samples: Sequence[Sample]) -> Recognizer:
    """Fits how likely a text is right, for greedy search and for a beam.

    Args:
        recognizer: The recogniser.
        samples: Strips that it was not trained on, with their texts.

    Returns:
        The same recogniser with fitted confidences; its bundle's manifest tells how they come about.
    """
    manifest = recognizer.bundle.manifest
    texts = [sample.text for sample in samples]

    def read(search: Search, odds: LogOdds) -> tuple[list[float], list[bool]]:
        told = DecodingOptions(decoder=None if search == manifest.decoder.name else search)
        plain = recognizer.with_confidence(temperature=1.0, odds={search: odds})
        readings = read_samples(plain, samples, told)
        right = [reading.text == text for reading, text in zip(readings, texts, strict=True)]
        return log_odds([reading.confidence for reading in readings]).tolist(), right

    symbols, right = read("greedy", SYMBOLS)
    odds: dict[Search, LogOdds] = {"greedy": fit_odds([symbols], right)}
    if manifest.head == "ctc":  # the search of the others does not know what it leaves out
        symbols, right = read("beam", SYMBOLS)
        share, _ = read("beam", _SHARE)
        odds["beam"] = fit_odds([symbols, share], right)
    return recognizer.with_confidence(temperature=1.0, odds=odds)


def fit_odds(evidence: Sequence[Sequence[float]], right: Sequence[bool]) -> LogOdds:
    """Fits what evidence weighs, by logistic regression.

    Args:
        evidence: Log odds of each line, by its symbols and, where there is a second row, by its share (kinds, lines).
        right: Whether each line is right (lines).

    Returns:
        The weights. Evidence that would speak against a text is left out. Where all lines are right, or all wrong,
        there is nothing to learn, and the symbols are taken at their word.
    """
    if len(set(right)) < 2:
        return SYMBOLS
    model = LogisticRegression(C=_FREEDOM).fit(np.array(evidence).T, np.array(right))
    weights = [float(weight) for weight in model.coef_[0]]
    if min(weights) < 0.0 and len(weights) > 1:
        kept = int(np.argmax(weights))
        alone = fit_odds([evidence[kept]], right)
        return alone if kept == 0 else LogOdds(offset=alone.offset, symbols=0.0, share=alone.symbols)
    names = ("symbols", "share")
    rounded = {name: round(max(weight, 0.0), 4) for name, weight in zip(names, weights, strict=False)}
    return LogOdds(offset=round(float(model.intercept_[0]), 4), **rounded)
