"""What `/metrics` tells. Every label value comes from a closed set: the models held and what `metric_labels` lists.

The families that begin with `grpc_server_` are in `grpc_metrics`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

from glyphline.models.decoding.readings import Reading
from glyphline.models.error_rate import EditCounts
from glyphline.models.errors import GlyphlineError, ImageTooWideError
from glyphline.service.catalogue import Catalogue, ServedModel
from glyphline.service.entries import Expired, Failed, Finished, Outcome
from glyphline.service.errors import QueueFullError
from glyphline.service.messages import JobResult, ModelKey
from glyphline.service.metric_labels import (
    DECODERS,
    EDITS,
    LOADS,
    OUTCOMES,
    REASONS,
    STAGES,
    UNKNOWN,
    outcome_of,
    refusal_of,
)

if TYPE_CHECKING:
    from glyphline.service.batcher import Done, Item

__all__ = ["Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
_CONFIDENCES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
_COLUMNS = tuple(2**power for power in range(5, 16))  # 32 to 32,768, the longest line
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_MODEL = ("model", "version")
_INFO = (*_MODEL, "head", "device", "provider", "manifest_sha256")
_REMEMBERED_MODELS = 4  # that are not held any more


class Metrics:
    """All of the server's own metrics, in a registry of their own.

    Args:
        registry: Where they are registered.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry or CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.images = Counter(
            "glyphline_images_total",
            "Images that came to an outcome; each counts once.",
            (*_MODEL, "decoder", "outcome"),
            registry=self.registry,
        )
        self.rejected = Counter(
            "glyphline_rejected_total",
            "Images and calls that were refused, by reason.",
            ("reason",),
            registry=self.registry,
        )
        self.queue_depth = Gauge("glyphline_queue_depth", "Images that wait for a worker.", registry=self.registry)
        self.queue_limit = Gauge(
            "glyphline_queue_limit", "Images that may wait; further ones are refused.", registry=self.registry
        )
        self.queue_seconds = Histogram(
            "glyphline_queue_seconds",
            "Time that an image waited for a worker.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.stage_seconds = Histogram(
            "glyphline_stage_seconds",
            "Time that a batch spent in a stage: decoding files, network, search for the text, building the reply.",
            ("stage",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.batch_size = Histogram(
            "glyphline_batch_size", "Images of one run of a network.", buckets=_SIZES, registry=self.registry
        )
        self.batch_padding = Histogram(
            "glyphline_batch_padding_ratio",
            "Share of a run's pixels that is padding.",
            buckets=_SHARES,
            registry=self.registry,
        )
        self.model_ready = Gauge(
            "glyphline_model_ready", "Whether a model can be used.", _MODEL, registry=self.registry
        )
        self.model_info = Gauge(
            "glyphline_model_info",
            "Always 1; the labels say what a model is and what runs it.",
            _INFO,
            registry=self.registry,
        )
        self.confidence = Histogram(
            "glyphline_confidence", "Confidence of readings.", _MODEL, buckets=_CONFIDENCES, registry=self.registry
        )
        self.columns = Histogram(
            "glyphline_columns",
            "Width of an image that was read, in columns of the model's form.",
            _MODEL,
            buckets=_COLUMNS,
            registry=self.registry,
        )
        self.truncated = Counter(
            "glyphline_truncated_total",
            "Readings that were cut at the greatest length.",
            _MODEL,
            registry=self.registry,
        )
        self.empty = Counter("glyphline_empty_total", "Readings without any text.", _MODEL, registry=self.registry)
        self.too_wide = Counter(
            "glyphline_too_wide_total", "Images refused because they are too wide.", _MODEL, registry=self.registry
        )
        self.edits = Counter(
            "glyphline_cer_edits_total",
            "Edits between readings and their reference texts: the numerator of the character error rate.",
            (*_MODEL, "kind"),
            registry=self.registry,
        )
        self.reference_characters = Counter(
            "glyphline_cer_reference_characters_total",
            "Characters of reference texts: the denominator of the character error rate.",
            _MODEL,
            registry=self.registry,
        )
        self.exact_matches = Counter(
            "glyphline_exact_match_total", "Readings equal to their reference text.", _MODEL, registry=self.registry
        )
        self.evaluated = Counter(
            "glyphline_evaluated_total", "Readings compared with a reference text.", _MODEL, registry=self.registry
        )
        self.model_loads = Counter(
            "glyphline_model_loads_total",
            "Versions of models that were loaded, or refused because they cannot be used.",
            ("model", "outcome"),
            registry=self.registry,
        )
        self.workers = Gauge("glyphline_workers", "Workers that are ready or at work.", registry=self.registry)
        self.worker_losses = Counter(
            "glyphline_worker_losses_total", "Workers that died and were replaced.", registry=self.registry
        )
        self._retired: deque[ServedModel] = deque()
        self._reasons = {reason: self.rejected.labels(reason) for reason in REASONS}
        self._stages = {stage: self.stage_seconds.labels(stage) for stage in STAGES}
        self._series: dict[ModelKey, _ModelSeries] = {}  # of the models that were read with

    def add_models(self, catalogue: Catalogue) -> None:
        """Makes every series of the models, so that a rate over the first event is right."""
        for model in catalogue.models:
            labels = _labels(model)
            for outcome in LOADS:
                self.model_loads.labels(model.name, outcome)
            for decoder in DECODERS:
                for outcome in OUTCOMES:
                    self.images.labels(*labels, decoder, outcome)
            for kind in EDITS:
                self.edits.labels(*labels, kind)
            for family in self._families_of_models():
                family.labels(*labels)

    def retire_model(self, model: ServedModel) -> None:
        """Takes note that a model is not held any more.

        What it counted stays for a while, so that the last of it is collected, and for no more than a few models, so
        that a server that has seen many does not tell of all.
        """
        labels = _labels(model)
        self.model_ready.labels(*labels).set(0)
        self._forget_info(labels)
        self._retired.append(model)
        if len(self._retired) > _REMEMBERED_MODELS:
            self._forget_model(_labels(self._retired.popleft()))

    def _forget_info(self, labels: tuple[str, str], but: tuple[str, ...] | None = None) -> None:
        """Removes what was told of a model before, except the values of the other labels that hold now."""
        for sample in [sample for family in self.model_info.collect() for sample in family.samples]:
            values = tuple(sample.labels[name] for name in _INFO)
            if values[:2] == labels and values[2:] != but:
                self.model_info.remove(*values)

    def _forget_model(self, labels: tuple[str, str]) -> None:
        """Removes all series of a model."""
        series: list[tuple[Counter | Gauge | Histogram, tuple[str, ...]]] = [
            (family, ()) for family in self._families_of_models()
        ]
        series += [(self.images, (decoder, outcome)) for decoder in (*DECODERS, UNKNOWN) for outcome in OUTCOMES]
        series += [(self.edits, (kind,)) for kind in EDITS]
        self._series = {key: found for key, found in self._series.items() if found.labels != labels}
        for family, more in series:
            with suppress(KeyError):
                family.remove(*labels, *more)

    def _families_of_models(self) -> Sequence[Counter | Gauge | Histogram]:
        """Returns the families that have only a model's name and version for labels."""
        return (
            self.model_ready,
            self.confidence,
            self.columns,
            self.truncated,
            self.empty,
            self.too_wide,
            self.reference_characters,
            self.exact_matches,
            self.evaluated,
        )

    def set_models_ready(self, catalogue: Catalogue, ready: bool) -> None:
        """Tells whether the models can be used."""
        for model in catalogue.models:
            self.model_ready.labels(*_labels(model)).set(ready)

    def set_providers(self, catalogue: Catalogue, providers: dict[ModelKey, str], device: str) -> None:
        """Tells what runs each model, as far as it is known, and what was asked to.

        Args:
            catalogue: The models held.
            providers: What runs them.
            device: What was asked to, as `--device` names it.
        """
        for model in catalogue.models:
            provider = providers.get(model.key)
            if provider is not None:
                values = (model.manifest.head, device, provider, model.manifest_sha256)
                self.model_info.labels(*_labels(model), *values).set(1)
                self._forget_info(_labels(model), but=values)

    def watch_queue(self, depth: Callable[[], float], limit: int) -> None:
        """Tells where the depth of the queue is read when it is asked for, and how much may wait."""
        self.queue_limit.set(limit)
        self.queue_depth.set_function(depth)

    def count_outcome(self, item: Item, outcome: Outcome[Done]) -> None:
        """Counts what became of an image that was admitted."""
        series = self._series_of(item.model)
        if isinstance(outcome, Finished) and isinstance(outcome.value.result, Reading):
            series.observe_reading(outcome.value.result, item.width)
        if isinstance(outcome, Expired):
            self._reasons["deadline"].inc()
        if isinstance(outcome, Failed) and isinstance(outcome.error, QueueFullError):  # pushed out by another client
            self._reasons["queue_full"].inc()
        series.images(item.decoder, outcome_of(outcome)).inc()

    def count_refusal(self, error: GlyphlineError, model: ServedModel | None = None, decoder: str = UNKNOWN) -> None:
        """Counts an image that was not admitted."""
        reason, outcome = refusal_of(error)
        labels = (UNKNOWN, UNKNOWN) if model is None else _labels(model)
        if model is not None and isinstance(error, ImageTooWideError):
            self.too_wide.labels(*labels).inc()
        self._reasons[reason].inc()
        self.images.labels(*labels, decoder, outcome).inc()

    def count_call_refusal(self, error: GlyphlineError) -> None:
        """Counts a call that was refused as a whole, before its images were looked at."""
        self._reasons[refusal_of(error)[0]].inc()

    def observe_waits(self, seconds: Iterable[float]) -> None:
        """Records how long the images of a batch waited."""
        for wait in seconds:
            self.queue_seconds.observe(wait)

    def observe_batch(self, result: JobResult) -> None:
        """Records what a batch cost."""
        for stage, seconds in result.stages.items():
            self._stages[stage].observe(seconds)
        for size, padding in result.runs:
            self.batch_size.observe(size)
            self.batch_padding.observe(padding)

    def observe_encoding(self, seconds: float) -> None:
        """Records how long a reply took to build."""
        self._stages["encode"].observe(seconds)

    def count_evaluation(self, model: ServedModel, counts: EditCounts) -> None:
        """Counts the comparison of a reading with its reference text."""
        labels = _labels(model)
        self.edits.labels(*labels, "insertion").inc(counts.insertions)
        self.edits.labels(*labels, "deletion").inc(counts.deletions)
        self.edits.labels(*labels, "substitution").inc(counts.substitutions)
        self.reference_characters.labels(*labels).inc(counts.reference_characters)
        self.exact_matches.labels(*labels).inc(counts.exact)
        self.evaluated.labels(*labels).inc()

    def _series_of(self, model: ServedModel) -> _ModelSeries:
        """Finds the series that every image of a model adds to; by their labels only for the first."""
        found = self._series.get(model.key)
        if found is None:
            labels = _labels(model)
            found = self._series[model.key] = _ModelSeries(
                labels=labels,
                images=cache(lambda decoder, outcome: self.images.labels(*labels, decoder, outcome)),
                confidence=self.confidence.labels(*labels),
                columns=self.columns.labels(*labels),
                truncated=self.truncated.labels(*labels),
                empty=self.empty.labels(*labels),
            )
        return found


@dataclass(frozen=True, slots=True)
class _ModelSeries:
    """The series of one model that every image of it adds to."""

    labels: tuple[str, str]
    images: Callable[[str, str], Counter]
    confidence: Histogram
    columns: Histogram
    truncated: Counter
    empty: Counter

    def observe_reading(self, reading: Reading, columns: int) -> None:
        """Records what shows when images or readings become others than they were."""
        self.confidence.observe(reading.confidence)
        self.columns.observe(columns)
        if reading.truncated:
            self.truncated.inc()
        if not reading.text:
            self.empty.inc()


def _labels(model: ServedModel) -> tuple[str, str]:
    return model.name, str(model.version)
