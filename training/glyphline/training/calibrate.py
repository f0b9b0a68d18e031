"""What a bundle's confidences are made of, so that they tell best which texts are right."""

from __future__ import annotations

from functools import partial
from typing import get_args

from glyphline.models.decoding.confidence import Aggregate, fit_temperature
from glyphline.models.recognizer import Recognizer
from glyphline.training.datasets.samples import Sample
from glyphline.training.evaluate import read_samples
from glyphline.training.report.calibration import log_loss


def calibrate(recognizer: Recognizer, samples: list[Sample], right: list[bool]) -> tuple[float, Aggregate]:
    """Finds what tells best, by its log loss, whether a text is right: a temperature and what is done with the symbols.

    Args:
        recognizer: The recogniser.
        samples: Strips.
        right: Whether it reads each right.
    """

    def confidences(aggregate: Aggregate, temperature: float) -> list[float]:
        calibrated = recognizer.with_temperature(temperature, aggregate)
        return [reading.confidence for reading in read_samples(calibrated, samples)]

    found: list[tuple[float, float, Aggregate]] = []
    for aggregate in get_args(Aggregate):
        of = partial(confidences, aggregate)
        temperature = round(fit_temperature(of, right, low=0.5, high=4.0, tolerance=0.05), 3)
        found.append((log_loss(of(temperature), right), temperature, aggregate))
    _, temperature, aggregate = min(found)
    return temperature, aggregate
