"""Where the time of recognition goes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal

__all__ = ["StageTimings"]


@dataclass(slots=True)
class StageTimings:
    """Sums up what recognition spends its time on. Give each thread its own.

    Attributes:
        decode_image: Seconds in reading and normalising images.
        infer: Seconds in networks.
        search: Seconds in decoding the networks' outputs.
        batches: Size of each batch, and the share of its columns that are padding.
    """

    decode_image: float = 0.0
    infer: float = 0.0
    search: float = 0.0
    batches: list[tuple[int, float]] = field(default_factory=list)

    @contextmanager
    def measure(self, stage: Literal["decode_image", "infer", "search"]) -> Iterator[None]:
        """Adds the time spent within to a stage. Within a search, inference is taken off the search."""
        started, inferring = perf_counter(), self.infer
        try:
            yield
        finally:
            spent = perf_counter() - started
            if stage == "search":
                spent -= self.infer - inferring
            setattr(self, stage, getattr(self, stage) + spent)
