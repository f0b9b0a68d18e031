"""From a recogniser and labelled strips to figures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from glyphline.models.decoding.confidence import (
    Aggregate,
    coverage_at_accuracy,
    expected_calibration_error,
    line_confidence,
)
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.decoding.readings import Reading, Token
from glyphline.models.error_rate import EditCounts, edit_counts, evaluate_pairs, wilson_interval
from glyphline.models.image import GreyImage
from glyphline.models.recognizer import Recognizer
from glyphline.training.datasets.samples import Sample
from glyphline.training.report.calibration import (
    chance_calibration_error,
    log_loss,
    refit_by_halves,
    reliability,
    separation,
)
from glyphline.training.report.comparison import COMPARISONS
from glyphline.training.report.figures import (
    ConfidenceMeasure,
    Confusion,
    CoverageLevel,
    Figures,
    Group,
    Mistake,
    Refusal,
)
from glyphline.training.report.statistics import (
    Span,
    bootstrap_rates,
    count_confusions,
    group_lengths,
    group_quantiles,
    rates_of,
)

ACCURACIES = (0.99, 0.995, 0.999)
_WORST = 100


@dataclass(frozen=True, slots=True)
class Line:
    """One strip as it was read.

    Attributes:
        sample: The strip.
        truth: What of its text is compared.
        read: What of the reading is compared.
        text: The whole reading.
        confidence: How sure the model is; 0 where it refused.
        tokens: The reading's symbols, with their places where the model knows them.
        counts: Its errors.
        truncated: Whether the reading was cut at the greatest length.
        refused: Why it was not read, empty where it was.
    """

    sample: Sample
    truth: str
    read: str
    text: str
    confidence: float
    tokens: tuple[Token, ...]
    counts: EditCounts
    truncated: bool
    refused: str

    @property
    def aspect(self) -> float:
        """Width of the strip, in times its height."""
        height, width = self.sample.pixels.shape
        return float(width / height)


@dataclass(frozen=True, slots=True)
class Measured:
    """A data set as one model read it.

    Attributes:
        figures: The figures.
        lines: Every strip, in the set's order.
    """

    figures: Figures
    lines: tuple[Line, ...]


def read_lines(
    recognizer: Recognizer, samples: Sequence[Sample], options: DecodingOptions, compare: str = "all"
) -> list[Line]:
    """Reads strips and counts their errors; one that the model refuses counts as read as nothing, and as wrong."""
    outcomes = recognizer.recognize([GreyImage(sample.pixels) for sample in samples], options)
    compared = COMPARISONS[compare]
    lines = []
    for sample, outcome in zip(samples, outcomes, strict=True):
        truth = compared(sample.text)
        if isinstance(outcome, Reading):
            read = compared(outcome.text)
            tokens, counts = outcome.alternatives[0].tokens, edit_counts(truth, read)
            text, confidence = outcome.text, outcome.confidence
            lines.append(Line(sample, truth, read, text, confidence, tokens, counts, outcome.truncated, ""))
        else:
            counts = replace(edit_counts(truth, ""), exact=False)
            lines.append(Line(sample, truth, "", "", 0.0, (), counts, False, str(outcome)))
    return lines


def measure(
    recognizer: Recognizer,
    samples: Sequence[Sample],
    data_set: str,
    options: DecodingOptions | None = None,
    compare: str = "all",
    *,
    model: str | None = None,
    compare_confidences: bool = False,
) -> Measured:
    """Reads a data set and computes all figures.

    Args:
        recognizer: The recogniser.
        samples: Labelled strips, at least one.
        data_set: Name for the report.
        options: Decoding.
        compare: What of the texts is compared, one of `COMPARISONS`.
        model: Name of the model in the report; None takes the bundle's name and version.
        compare_confidences: Whether to set other measures of confidence beside the model's.
    """
    options = options or DecodingOptions()
    if compare_confidences:
        options = replace(options, token_details=True)
    began = time.perf_counter()
    lines = read_lines(recognizer, samples, options, compare)
    seconds = time.perf_counter() - began
    counts = [line.counts for line in lines]
    rates, intervals = rates_of(counts), bootstrap_rates(counts)
    right = [line.counts.exact for line in lines]
    confidences = [line.confidence for line in lines]
    confusions = count_confusions((line.truth, line.read) for line in lines)
    edits = evaluate_pairs((line.truth, line.read) for line in lines)
    wrong = sorted((line for line in lines if not line.counts.exact), key=lambda line: -line.confidence)
    manifest = recognizer.bundle.manifest
    figures = Figures(
        model=model or f"{manifest.name} {manifest.version}",
        data_set=data_set,
        compare=compare,
        images=len(lines),
        exact=rates.exact,
        exact_interval=wilson_interval(sum(right), len(right)),
        exact_bootstrap=intervals.exact,
        cer=rates.cer,
        cer_interval=intervals.cer,
        wer=rates.wer,
        wer_interval=intervals.wer,
        characters=edits.reference_characters,
        insertions=edits.insertions,
        deletions=edits.deletions,
        substitutions=edits.substitutions,
        truncated=sum(line.truncated for line in lines),
        refused=tuple(Refusal(line.sample.source, line.refused) for line in lines if line.refused),
        seconds=seconds,
        by_length=_groups(lines, group_lengths([len(line.truth) for line in lines])),
        by_width=_groups(lines, group_quantiles([line.aspect for line in lines], min(8, max(1, len(lines) // 10)))),
        confusions=tuple(
            Confusion(truth, read, count)
            for (truth, read), count in sorted(
                confusions.items(), key=lambda item: (item[0][0] == item[0][1], -item[1])
            )
        ),
        calibration_error=expected_calibration_error(confidences, right),
        calibration_chance=chance_calibration_error(confidences),
        reliability=tuple(reliability(confidences, right)),
        coverage=coverage_at_accuracy(confidences, right).share,
        coverages=tuple(coverage_level(confidences, right, accuracy) for accuracy in ACCURACIES),
        confidence=tuple(_compare_confidences(lines)) if compare_confidences else (),
        worst=tuple(
            Mistake(line.sample.source, line.truth, line.read, round(line.confidence, 4)) for line in wrong[:_WORST]
        ),
    )
    return Measured(figures, tuple(lines))


def _groups(lines: Sequence[Line], spans: Sequence[Span]) -> tuple[Group, ...]:
    found = []
    for span in spans:
        counts = [lines[index].counts for index in span.members]
        rates = rates_of(counts)
        interval = wilson_interval(sum(count.exact for count in counts), len(counts))
        found.append(Group(span.label, len(counts), rates.exact, interval, rates.cer))
    return tuple(found)


def coverage_level(confidences: Sequence[float], right: Sequence[bool], accuracy: float) -> CoverageLevel:
    """Finds the threshold for an accuracy, and how well so many lines can vouch for it."""
    found = coverage_at_accuracy(confidences, right, accuracy)
    passed = [flag for value, flag in zip(confidences, right, strict=True) if value >= found.threshold]
    return CoverageLevel(
        accuracy=accuracy,
        share=found.share,
        threshold=found.threshold if passed else None,
        accepted=len(passed),
        wrong=len(passed) - sum(passed),
        interval=wilson_interval(sum(passed), len(passed)),
    )


def _compare_confidences(lines: Sequence[Line]) -> list[ConfidenceMeasure]:
    """Compares the confidence as the model gives it with others."""
    lines = [line for line in lines if not line.refused]
    if len(lines) < 2:
        return []
    right = [line.counts.exact for line in lines]
    given = [line.confidence for line in lines]
    ways: list[tuple[str, Sequence[float], bool]] = [
        ("as the model gives it", given, True),
        # Either half has a scale of its own: there is no common order.
        ("the same, refitted on the other half of this set", refit_by_halves(given, right).tolist(), False),
        ("mean of the characters", _of_tokens(lines, "mean"), True),
        ("product of the characters", _of_tokens(lines, "product"), True),
        ("weakest character", _of_tokens(lines, "min"), True),
    ]
    return [
        ConfidenceMeasure(
            name=name,
            lines=len(lines),
            calibration_error=expected_calibration_error(values, right),
            log_loss=log_loss(values, right),
            separation=separation(values, right) if ordered else None,
            coverage=coverage_at_accuracy(values, right).share if ordered else None,
        )
        for name, values, ordered in ways
    ]


def _of_tokens(lines: Sequence[Line], aggregate: Aggregate) -> list[float]:
    """Sums up the confidences of each line's symbols; a line without any keeps its own."""
    return [
        line_confidence([float(np.log(max(token.confidence, 1e-12))) for token in line.tokens], aggregate)
        if line.tokens
        else line.confidence
        for line in lines
    ]
