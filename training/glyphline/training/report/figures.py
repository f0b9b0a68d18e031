"""What a report says, as records that are written to JSON as they are."""

from __future__ import annotations

from dataclasses import dataclass

from glyphline.training.report.calibration import Bin
from glyphline.training.report.statistics import Difference, Interval


@dataclass(frozen=True, slots=True)
class Group:
    """Lines of one length, or of about the same width.

    Attributes:
        label: The length, or the range.
        images: Strips in it.
        exact: Share read without any error.
        exact_interval: Its 95 % interval (Wilson).
        cer: Character error rate.
    """

    label: str
    images: int
    exact: float
    exact_interval: Interval
    cer: float


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often a character was read as another.

    Attributes:
        truth: The true character; empty where one was inserted.
        read: What was read; empty where it was missed.
        count: How often.
    """

    truth: str
    read: str
    count: int


@dataclass(frozen=True, slots=True)
class CoverageLevel:
    """How many lines can go straight through at an accuracy.

    Attributes:
        accuracy: Share of the accepted lines that has to be right.
        share: Share of lines that may be accepted.
        threshold: Least confidence to accept; None if no threshold does.
        accepted: Lines accepted.
        wrong: Of these, lines with an error.
        interval: 95 % interval of the accuracy of lines accepted so (Wilson).
    """

    accuracy: float
    share: float
    threshold: float | None
    accepted: int
    wrong: int
    interval: Interval


@dataclass(frozen=True, slots=True)
class ConfidenceMeasure:
    """What one way to come by a confidence is worth.

    Attributes:
        name: The way.
        lines: Strips that it was measured on.
        calibration_error: Expected calibration error.
        log_loss: Mean surprise in nats.
        separation: Chance that a right line has a higher confidence than a wrong one; None without both, or where
            the lines have no common scale.
        coverage: Share of lines that can go straight through at 99.9 %; None where they have no common scale.
    """

    name: str
    lines: int
    calibration_error: float
    log_loss: float
    separation: float | None
    coverage: float | None


@dataclass(frozen=True, slots=True)
class Mistake:
    """A strip that was read wrong.

    Attributes:
        source: Where it comes from.
        truth: Its true text.
        read: What was read.
        confidence: How sure the model was.
    """

    source: str
    truth: str
    read: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """A strip that the model would not read. It counts as read as nothing, and as wrong, with confidence 0.

    Attributes:
        source: Where it comes from.
        reason: Why.
    """

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Figures:
    """How a model reads one data set.

    Attributes:
        model: Name and version of the model.
        data_set: Name or folder of the set.
        compare: What of the texts is compared, one of `COMPARISONS`.
        images: Number of strips.
        exact: Share read without any error.
        exact_interval: Its 95 % interval (Wilson, which stays honest where all are right).
        exact_bootstrap: The same by the bootstrap that the other rates have.
        cer: Character error rate: all edits over all true characters.
        cer_interval: Its 95 % interval (bootstrap over strips).
        wer: Word error rate.
        wer_interval: Its 95 % interval (bootstrap over strips).
        characters: Characters of the true texts.
        insertions: Characters that are not there.
        deletions: Characters that were missed.
        substitutions: Characters read as others.
        truncated: Readings cut at the greatest length.
        refused: Strips that were not read at all.
        seconds: Time that reading took.
        by_length: Accuracy by length of the true text.
        by_width: Accuracy by width of the strip, in times its height.
        confusions: What characters were read as, the most frequent errors first.
        calibration_error: Expected calibration error of the lines' confidences.
        calibration_chance: What that error would be by chance alone if the confidences were perfect.
        reliability: Confidence beside accuracy, in groups.
        coverage: Share of strips that can go straight through, by confidence, at 99.9 % exact.
        coverages: The same at several accuracies, with the thresholds.
        confidence: Ways to come by a confidence, compared; empty unless asked for.
        worst: The most confident wrong readings.
    """

    model: str
    data_set: str
    compare: str
    images: int
    exact: float
    exact_interval: Interval
    exact_bootstrap: Interval
    cer: float
    cer_interval: Interval
    wer: float
    wer_interval: Interval
    characters: int
    insertions: int
    deletions: int
    substitutions: int
    truncated: int
    refused: tuple[Refusal, ...]
    seconds: float
    by_length: tuple[Group, ...]
    by_width: tuple[Group, ...]
    confusions: tuple[Confusion, ...]
    calibration_error: float
    calibration_chance: float
    reliability: tuple[Bin, ...]
    coverage: float
    coverages: tuple[CoverageLevel, ...]
    confidence: tuple[ConfidenceMeasure, ...]
    worst: tuple[Mistake, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two models on the same strips.

    Attributes:
        data_set: The strips.
        first: One model.
        second: The other.
        difference: The second's rates less the first's.
    """

    data_set: str
    first: str
    second: str
    difference: Difference
