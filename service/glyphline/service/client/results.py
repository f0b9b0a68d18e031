"""What a client returns."""

from __future__ import annotations

from dataclasses import dataclass

from glyphline.models.decoding.readings import Alternative, Reading, Token
from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.service.client.errors import RecognitionError, from_status

__all__ = ["Evaluation", "Metadata", "ModelInfo", "Outcome", "Result", "read_evaluation", "read_model", "read_outcome"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How a reading compares with the true text.

    Attributes:
        edit_distance: Characters to insert, delete or substitute.
        reference_length: Characters of the true text.
        character_error_rate: Their ratio; may exceed 1.
        exact_match: Whether the two are equal.
    """

    edit_distance: int
    reference_length: int
    character_error_rate: float
    exact_match: bool


@dataclass(frozen=True, slots=True)
class Metadata:
    """How a request was served.

    Attributes:
        request_id: Its id, with which its true text can be submitted later.
        queue_seconds: Time that the image waited for a worker.
        inference_seconds: Time that its batch took.
        batch_size: Images of that batch.
        execution_provider: What ran the network.
    """

    request_id: str
    queue_seconds: float
    inference_seconds: float
    batch_size: int
    execution_provider: str


@dataclass(frozen=True, slots=True)
class Result:
    """The reading of an image.

    Attributes:
        reading: What the image says.
        model: Name of the model.
        version: Version of the model.
        evaluation: The comparison with the true text, if that was given.
        metadata: How it was served.
    """

    reading: Reading
    model: str
    version: int
    evaluation: Evaluation | None
    metadata: Metadata

    @property
    def text(self) -> str:
        """The text read."""
        return self.reading.text

    @property
    def confidence(self) -> float:
        """How sure the model is of the text, from 0 to 1."""
        return self.reading.confidence

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The ways to read the image, best first; at least one."""
        return self.reading.alternatives

    @property
    def truncated(self) -> bool:
        """Whether the text was cut at the maximum length."""
        return self.reading.truncated


Outcome = Result | RecognitionError


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model of the server.

    Attributes:
        name: Its name.
        version: Its version.
        task: What it reads.
        head: `ctc` or `attention`.
        alphabet: The symbols it can write.
        max_output_length: Longest text, in symbols.
        default_decoder: `greedy` or `beam`.
        default_beam_width: Beam width if none is named.
        is_default: Whether requests without a model name use it.
        is_latest: Whether requests without a version use it.
        execution_provider: What runs it.
        licence: Of the weights.
        labels: What stands for this version besides its number.
        sha256: Of its bundle's manifest, which has those of all its files; empty if the server is older.
    """

    name: str
    version: int
    task: str
    head: str
    alphabet: tuple[str, ...]
    max_output_length: int
    default_decoder: str
    default_beam_width: int
    is_default: bool
    is_latest: bool
    execution_provider: str
    licence: str
    labels: tuple[str, ...]
    sha256: str = ""


def read_result(response: api.RecognizeResponse) -> Result:
    """Converts a response."""
    alternatives = tuple(_alternative(alternative) for alternative in response.alternatives)
    best = alternatives[0]
    metadata = response.metadata
    return Result(
        reading=Reading(best.text, best.confidence, alternatives, best.truncated),
        model=response.model,
        version=int(response.model_version),
        evaluation=read_evaluation(response.evaluation) if response.HasField("evaluation") else None,
        metadata=Metadata(
            request_id=metadata.request_id,
            queue_seconds=metadata.queue_duration.ToTimedelta().total_seconds(),
            inference_seconds=metadata.inference_duration.ToTimedelta().total_seconds(),
            batch_size=metadata.batch_size,
            execution_provider=metadata.execution_provider,
        ),
    )


def read_outcome(result: api.BatchItemResult) -> Outcome:
    """Converts the result of an item of a batch or stream."""
    return read_result(result.response) if result.HasField("response") else from_status(result.error)


def read_evaluation(message: api.Evaluation) -> Evaluation:
    """Converts a comparison."""
    return Evaluation(
        edit_distance=message.edit_distance,
        reference_length=message.reference_length,
        character_error_rate=message.character_error_rate,
        exact_match=message.exact_match,
    )


def read_model(message: api.Model) -> ModelInfo:
    """Converts the description of a model."""
    return ModelInfo(
        name=message.name,
        version=int(message.version),
        task=message.task,
        head=message.head,
        alphabet=tuple(message.alphabet),
        max_output_length=message.max_output_length,
        default_decoder=message.default_decoder,
        default_beam_width=message.default_beam_width,
        is_default=message.is_default,
        is_latest=message.is_latest,
        execution_provider=message.execution_provider,
        licence=message.licence,
        labels=tuple(message.labels),
        sha256=message.sha256,
    )


def _alternative(message: api.Alternative) -> Alternative:
    return Alternative(
        text=message.text,
        confidence=message.confidence,
        log_probability=message.log_probability,
        tokens=tuple(
            Token(
                text=token.text,
                confidence=token.confidence,
                span=(token.span.start, token.span.end) if token.HasField("span") else None,
            )
            for token in message.tokens
        ),
        truncated=message.truncated,
    )
