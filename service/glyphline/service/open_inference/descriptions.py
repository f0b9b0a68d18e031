"""Describes server and models in the protocol's words."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version

from glyphline.open_inference.v2 import open_inference_pb2 as api
from glyphline.service.catalogue import Catalogue, ServedModel
from glyphline.service.open_inference.interface import INPUTS, OUTPUTS, PLATFORM, TensorKind
from glyphline.service.open_inference.statistics import STAGES, Spent, Statistics

__all__ = ["config_message", "index_message", "metadata_message", "server_message", "statistics_message"]

_NAME = "glyphline"
_EXTENSIONS = ("model_configuration", "parameters", "schedule_policy", "statistics")
_TYPES = {"BYTES": api.TYPE_STRING, "FP32": api.TYPE_FP32, "INT32": api.TYPE_INT32}
_COMPUTE = ("compute_input", "compute_infer", "compute_output")  # the protocol's names of the stages


def server_message() -> api.ServerMetadataResponse:
    """Describes the server."""
    return api.ServerMetadataResponse(name=_NAME, version=version(_NAME), extensions=_EXTENSIONS)


def metadata_message(model: ServedModel, catalogue: Catalogue) -> api.ModelMetadataResponse:
    """Describes the tensors of a model, and which versions of it there are."""
    return api.ModelMetadataResponse(
        name=model.name,
        versions=[str(each.version) for each in catalogue.models if each.name == model.name],
        platform=PLATFORM,
        inputs=_metadata(INPUTS),
        outputs=_metadata(OUTPUTS),
    )


def config_message(model: ServedModel, *, workers: int, on_gpu: bool) -> api.ModelConfigResponse:
    """Describes a model as a configuration.

    Args:
        model: The model.
        workers: How many worker processes hold it.
        on_gpu: Whether they run it on a GPU.
    """
    manifest = model.manifest
    parameters = {
        "version": str(model.version),
        "task": manifest.task,
        "head": manifest.head,
        "decoder": manifest.decoder.name,
        "beam_width": str(manifest.decoder.beam_width),
        "max_output_length": str(manifest.max_output_length),
        "sha256": model.manifest_sha256,
    }
    group = api.ModelInstanceGroup
    return api.ModelConfigResponse(
        config=api.ModelConfig(
            name=model.name,
            platform=PLATFORM,
            backend=_NAME,
            input=[
                api.ModelInput(name=kind.name, data_type=_TYPES[kind.datatype], dims=kind.shape, optional=kind.optional)
                for kind in INPUTS
            ],
            output=[
                api.ModelOutput(name=kind.name, data_type=_TYPES[kind.datatype], dims=kind.shape) for kind in OUTPUTS
            ],
            instance_group=[
                group(name="workers", count=workers, kind=group.KIND_GPU if on_gpu else group.KIND_CPU),
            ],
            parameters={name: api.ModelParameter(string_value=value) for name, value in parameters.items()},
        )
    )


def statistics_message(models: Iterable[ServedModel], statistics: Statistics) -> api.ModelStatisticsResponse:
    """Tells what models have read."""
    return api.ModelStatisticsResponse(model_stats=[_statistics(model, statistics) for model in models])


def index_message(models: Iterable[ServedModel], ready: bool) -> api.RepositoryIndexResponse:
    """Lists models.

    Args:
        models: The models.
        ready: Whether they can be used.
    """
    state, reason = ("READY", "") if ready else ("UNAVAILABLE", "the server is not ready")
    return api.RepositoryIndexResponse(
        models=[
            api.RepositoryIndexResponse.ModelIndex(
                name=model.name, version=str(model.version), state=state, reason=reason
            )
            for model in models
        ]
    )


def _metadata(kinds: Iterable[TensorKind]) -> list[api.ModelMetadataResponse.TensorMetadata]:
    return [
        api.ModelMetadataResponse.TensorMetadata(name=kind.name, datatype=kind.datatype, shape=kind.shape)
        for kind in kinds
    ]


def _statistics(model: ServedModel, statistics: Statistics) -> api.ModelStatistics:
    record, outcomes = statistics.of(model), statistics.outcomes(model)
    message = api.ModelStatistics(
        name=model.name,
        version=str(model.version),
        last_inference=round(1000 * record.last),
        inference_count=outcomes.read,
        execution_count=record.batches,
        inference_stats=api.InferStatistics(
            success=_duration(Spent(outcomes.read, record.read.seconds)),
            fail=_duration(Spent(outcomes.failed, record.unread.seconds)),
            queue=_duration(record.queue),
        ),
    )
    for name, stage in zip(_COMPUTE, STAGES, strict=True):
        getattr(message.inference_stats, name).CopyFrom(_duration(record.stages[stage]))
    for size in sorted(record.by_size):
        batches = message.batch_stats.add(batch_size=size)
        for name, stage in zip(_COMPUTE, STAGES, strict=True):
            getattr(batches, name).CopyFrom(_duration(record.by_size[size][stage]))
    return message


def _duration(spent: Spent) -> api.StatisticDuration:
    return api.StatisticDuration(count=spent.count, ns=round(1e9 * spent.seconds))
