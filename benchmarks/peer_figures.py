"""From readings to figures: what of two texts is compared, how often they are equal, and what reading cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peer_processes import Readings

from glyphline.models.error_rate import evaluate_pairs
from glyphline.training.report.comparison import COMPARISONS


@dataclass(frozen=True, slots=True)
class PeerFigures:
    """How one reader did on one data set.

    Attributes:
        reader: What it is called.
        version: Of the program and its model.
        model_bytes: Size of the model's files.
        images: Number of images.
        exact: Share of them read without any error.
        exact_interval: Its 95 % interval.
        cer: Character error rate.
        cer_interval: Its 95 % interval.
        cpu_milliseconds: CPU time an image, user and system.
        cpu_range: Least and greatest of the turns.
        wall_milliseconds: Time by the clock an image.
        relative_cost: CPU time over that of the first reader; 1 for the first.
        refused: Images that it would not read; they count as read empty.
    """

    reader: str
    version: str
    model_bytes: int
    images: int
    exact: float
    exact_interval: tuple[float, float]
    cer: float
    cer_interval: tuple[float, float]
    cpu_milliseconds: float
    cpu_range: tuple[float, float]
    wall_milliseconds: float
    relative_cost: float
    refused: int


def figures_of(
    readers: Sequence[tuple[str, str, int]], truths: Sequence[str], readings: Sequence[Readings], compare: str
) -> list[PeerFigures]:
    """Counts what every reader got right, and what it took.

    Args:
        readers: Name, version and size of the model of each.
        truths: The true texts.
        readings: What each reader made of them, in the same order.
        compare: One of `COMPARISONS`.
    """
    keep = COMPARISONS[compare]
    figures: list[PeerFigures] = []
    for (name, version, size), found in zip(readers, readings, strict=True):
        pairs = zip(truths, found.texts, strict=True)
        rate = evaluate_pairs((keep(truth), keep(text or "")) for truth, text in pairs)
        cost = 1000 * sum(cpu for _, cpu, _ in found.turns) / rate.n
        of_turns = [1000 * cpu / images for images, cpu, _ in found.turns]
        figures.append(
            PeerFigures(
                reader=name,
                version=version,
                model_bytes=size,
                images=rate.n,
                exact=rate.exact,
                exact_interval=rate.exact_interval(),
                cer=rate.cer,
                cer_interval=rate.cer_interval(),
                cpu_milliseconds=cost,
                cpu_range=(min(of_turns), max(of_turns)),
                wall_milliseconds=1000 * sum(wall for _, _, wall in found.turns) / rate.n,
                relative_cost=cost / figures[0].cpu_milliseconds if figures else 1.0,
                refused=sum(text is None for text in found.texts),
            )
        )
    return figures
