"""What models have read since the server started, as the protocol's `ModelStatistics` tells it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from glyphline.models.decoding.readings import Reading
from glyphline.service.catalogue import Catalogue, ServedModel
from glyphline.service.messages import JobResult, ModelKey
from glyphline.service.metrics import Metrics

__all__ = ["STAGES", "Outcomes", "Record", "Spent", "Statistics"]

STAGES = ("decode_image", "infer", "search")
"""What a worker does with a batch, one after the other."""


@dataclass(slots=True)
class Spent:
    """How often something was done, and how long it took in all.

    Attributes:
        count: How often.
        seconds: How long.
    """

    count: int = 0
    seconds: float = 0.0

    def add(self, count: int, seconds: float) -> None:
        """Adds what was done `count` times and took so long in all."""
        self.count += count
        self.seconds += seconds


@dataclass(slots=True)
class Record:
    """What one model has done.

    Attributes:
        last: When it last read, in seconds since 1970; 0 if it has not.
        batches: Batches that it read.
        read: Images that it read, from their arrival in the queue.
        unread: Images that a worker looked at and could not read.
        queue: Waiting of images.
        stages: Each stage, for every image of its batch.
        by_size: Each stage of batches, by the number of their images.
    """

    last: float = 0.0
    batches: int = 0
    read: Spent = field(default_factory=Spent)
    unread: Spent = field(default_factory=Spent)
    queue: Spent = field(default_factory=Spent)
    stages: dict[str, Spent] = field(default_factory=lambda: defaultdict(Spent))
    by_size: dict[int, dict[str, Spent]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(Spent)))


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What became of a model's images, those that were refused at the door included.

    Attributes:
        read: Images that were read.
        failed: Images that were not.
    """

    read: int
    failed: int


class Statistics:
    """Adds up what models do; of those that are held.

    Args:
        catalogue: The models that are held.
        metrics: Where the outcomes of images are counted already.
        clock: Tells the time in seconds since 1970.
    """

    def __init__(self, catalogue: Catalogue, metrics: Metrics, clock: Callable[[], float] = time.time) -> None:
        self._catalogue = catalogue
        self._metrics = metrics
        self._clock = clock
        self._records: dict[ModelKey, Record] = {}

    def observe_batch(self, model: ModelKey, waits: Sequence[float], result: JobResult) -> None:
        """Adds a batch that was read.

        Args:
            model: What read it.
            waits: How long each image had waited.
            result: What became of it.
        """
        record = self._record(model)
        size = len(waits)
        record.last = self._clock()
        record.batches += 1
        record.queue.add(size, sum(waits))
        for wait, outcome in zip(waits, result.outcomes, strict=True):
            kind = record.read if isinstance(outcome, Reading) else record.unread
            kind.add(1, wait + result.seconds)
        for stage in STAGES:
            seconds = result.stages.get(stage, 0.0)
            record.stages[stage].add(size, size * seconds)
            record.by_size[size][stage].add(1, seconds)

    def of(self, model: ServedModel) -> Record:
        """Returns what a model has done."""
        return self._records.get(model.key) or Record()

    def outcomes(self, model: ServedModel) -> Outcomes:
        """Returns what became of a model's images, as the metrics count it."""
        read = failed = 0
        labels = {"model": model.name, "version": str(model.version)}
        for family in self._metrics.images.collect():
            for sample in family.samples:
                if sample.name.endswith("_total") and labels.items() <= sample.labels.items():
                    if sample.labels["outcome"] == "ok":
                        read += int(sample.value)
                    else:
                        failed += int(sample.value)
        return Outcomes(read, failed)

    def _record(self, model: ModelKey) -> Record:
        """Finds a model's record; a new one takes the place of those of models that are not held any more."""
        if model not in self._records:
            held = {each.key for each in self._catalogue.models}
            self._records = {key: record for key, record in self._records.items() if key in held}
            self._records[model] = Record()
        return self._records[model]
