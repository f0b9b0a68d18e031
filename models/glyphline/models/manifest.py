"""The manifest: what there is to know of a bundle besides its weights, and how a sound one looks.

It is `manifest.json` of the bundle's folder. A manifest is checked by itself here, whatever lies beside it; whether the
folder holds what it says is for `bundle` to find out.
"""

import json
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, ValidationError, model_validator

from glyphline.models.alphabet import Alphabet
from glyphline.models.errors import AlphabetError, BundleError
from glyphline.models.image import ImageSettings

__all__ = [
    "ERRORS_NAME",
    "MANIFEST_NAME",
    "MODEL_CARD_NAME",
    "SCHEMA_VERSION",
    "Aggregate",
    "DataSource",
    "DecoderDefaults",
    "Evaluation",
    "HeadName",
    "LengthScore",
    "LogOdds",
    "Manifest",
    "Precision",
    "Probe",
    "Search",
    "StateTensor",
    "Variant",
    "explain",
    "read_manifest",
]

MANIFEST_NAME = "manifest.json"
MODEL_CARD_NAME = "model_card.md"
ERRORS_NAME = "errors.png"
"""A sheet of typical errors, shown by the card of a bundle that has one."""

SCHEMA_VERSION: Final = 1

HeadName = Literal["ctc", "attention", "flatten", "image-first", "pooled-state"]
"""Kinds of network; all but `ctc` write step by step."""

Precision = Literal["fp32", "int8"]
"""Numbers that a bundle's networks compute in: those of training, or a variant made for speed."""

Aggregate = Literal["mean", "min", "product"]
"""How a text's confidence is made of those of its symbols."""

Search = Literal["greedy", "beam"]
"""Ways to search for a text."""

_NETWORK = {"network"}
_STEPS = {"encoder", "decoder_step"}
_MAY_HAVE = {"decode"}  # beside the steps

# A plain name can neither leave the folder nor hide in it.
PlainName = Annotated[str, StringConstraints(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]*\z")]
Sha256 = Annotated[str, StringConstraints(pattern=r"\A[0-9a-f]{64}\z")]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Rate = Annotated[float, Field(ge=0.0)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class DecoderDefaults(_Record):
    """The decoder used where a caller names none.

    Attributes:
        name: Which search.
        beam_width: Hypotheses kept by the beam search.
        length_penalty: Exponent α of a step-wise head's score / lengthᵅ.
        language_model: File of a language model of characters that the beam search is guided by, None for none.
        language_model_weight: What it counts for, beside the network's 1.
        length_bonus: What every symbol adds to a score that the language model has a part in.
    """

    name: Search = "greedy"
    beam_width: int = Field(default=10, ge=1)
    length_penalty: float = Field(default=1.0, ge=0.0)
    language_model: PlainName | None = None
    language_model_weight: float = Field(default=0.0, ge=0.0)
    length_bonus: float = 0.0

    @model_validator(mode="after")
    def _check_language_model(self) -> Self:
        if self.language_model is not None and self.name != "beam":
            raise ValueError("a language model guides a beam search, not a greedy one")
        return self


class StateTensor(_Record):
    """One tensor of the recurrent state of a step-wise head's decoder.

    Attributes:
        name: The graphs call it `initial_<name>`, `<name>` and `next_<name>`.
        kind: `fixed` is (batch, size); `frames` is (batch, frames), as wide as the encoder's memory is long; only
            an attention head has such.
        size: Width of a `fixed` state, None otherwise.
    """

    name: PlainName
    kind: Literal["fixed", "frames"]
    size: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        if (self.kind == "fixed") != (self.size is not None):
            raise ValueError("a fixed state states its size, and a state over frames does not")
        return self


class Probe(_Record):
    """An image and what the bundle must read in it.

    Attributes:
        image: File name within the bundle.
        text: The text that the default decoder gives.
        confidence: The confidence that goes with it.
    """

    image: PlainName
    text: str
    confidence: Share


class LengthScore(_Record):
    """What the model scored on the texts of some lengths.

    Attributes:
        length: The length in characters, or the range.
        images: How many there were.
        exact: Share read without any error.
        cer: Character error rate.
    """

    length: str
    images: int = Field(ge=1)
    exact: Share
    cer: Rate


class Evaluation(_Record):
    """What the model scored on one data set.

    Attributes:
        data_set: The set, named as the command names it.
        images: How many were read.
        exact: Share read without any error.
        exact_interval: Its 95 % interval.
        cer: Character error rate, edits over reference characters.
        cer_interval: Its 95 % interval.
        by_length: The same by length of the text.
        calibration_error: Expected calibration error of the confidences; None where it was not measured.
        straight_through: Share whose confidence is so high that all of them together are 99.9 % exact; None likewise.
        command: The command that repeats the measurement.
    """

    data_set: str
    images: int = Field(ge=0)
    exact: Share
    exact_interval: tuple[Share, Share]
    cer: Rate
    cer_interval: tuple[Rate, Rate]
    by_length: list[LengthScore] = []
    calibration_error: Share | None = None
    straight_through: Share | None = None
    command: str


class DataSource(_Record):
    """A data set that had a part in the model.

    Attributes:
        name: What it is called.
        licence: Under what terms it may be used.
        use: What it served for: training, validation, testing.
    """

    name: str
    licence: str
    use: str


class Variant(_Record):
    """Other graphs of the same networks, faster and a little less exact, and what was measured before they were taken.

    Attributes:
        graphs: File of each graph that has another; the others are shared.
        images: Strips that both were measured on.
        cer: Character error rate of the variant.
        cer_fp32: Character error rate of the graphs it was made of.
        margin: Greatest rise of the rate that was allowed.
        confidence: The confidence with which it reads the probe's text.
    """

    graphs: dict[str, PlainName] = Field(min_length=1)
    images: int = Field(ge=0)
    cer: Rate
    cer_fp32: Rate
    margin: Rate
    confidence: Share


class LogOdds(_Record):
    """How the log odds that a text is right are made of evidence (a logistic model; Platt 1999).

    Attributes:
        offset: What they are without evidence.
        symbols: Weight of the log odds that all symbols are right, were they to err independently of one another.
        share: Weight of the log odds of the text's share of what the search holds, where the search holds others.
    """

    offset: float
    symbols: float
    share: float = 0.0


class Manifest(_Record):
    """All that is to be known of a bundle besides its weights.

    Attributes:
        schema_version: Of this very record.
        name: The model's name.
        version: Counts up with every release of the model.
        task: What it reads, in a few words.
        head: Which kind of network, hence which graphs and which decoders.
        alphabet: The symbols; the network class of the first is 1.
        image: How images are brought to the form the network reads.
        max_output_length: Longest text, in symbols. Longer readings are cut and flagged.
        decoder: Used where a caller names no decoder.
        pixels_per_frame: Width of one output frame, in pixels of the normalised image.
        width_multiple: The graphs take only widths that are a multiple of it.
        temperature: Log-probabilities are divided by it before confidences are taken from them.
        confidence: How a text's confidence is made of those of its symbols: their geometric `mean`, which does not fall
            with length, the `product`, which is the chance that all are right, or the `min`.
        odds: What takes the place of that where it is given: for `greedy` search, and for a `beam` that knows which
            share of it a text has. Either is fitted on strips held out of training.
        graphs: File of each graph: `network` of a CTC head, `encoder` and `decoder_step` of any other, which may also
            have `decode`, the whole search in one graph.
        variants: Other graphs of the same networks, by the numbers they compute in.
        states: Recurrent state of a step-wise head's decoder, in the order of its graphs' tensors.
        probe: Checked whenever the bundle is loaded.
        training: How the model was made.
        evaluation: What it scored.
        licence: Of the weights; empty where none is stated.
        data: Where the training images came from.
        git_commit: The source tree that made it.
        created: When, in ISO 8601.
        files: sha256 of every other file of the folder; filled in by `write_manifest`.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    name: PlainName
    version: int = Field(ge=1)
    task: str
    head: HeadName
    alphabet: list[str]
    image: ImageSettings = ImageSettings()
    max_output_length: int = Field(ge=1)
    decoder: DecoderDefaults = DecoderDefaults()
    pixels_per_frame: float = Field(gt=0.0)
    width_multiple: int = Field(default=1, ge=1)
    temperature: float = Field(default=1.0, gt=0.0)
    confidence: Aggregate = "mean"
    odds: dict[Search, LogOdds] = {}
    graphs: dict[str, PlainName]
    variants: dict[Literal["int8"], Variant] = {}
    states: list[StateTensor] = []
    probe: Probe
    training: dict[str, JsonValue] = {}
    evaluation: list[Evaluation] = []
    licence: str
    data: list[DataSource] = []
    git_commit: str
    created: str
    files: dict[PlainName, Sha256] = {}

    @model_validator(mode="after")
    def _check_head(self) -> Self:
        expected = _NETWORK if self.head == "ctc" else _STEPS
        optional = set() if self.head == "ctc" else _MAY_HAVE
        if set(self.graphs) - optional != expected:
            raise ValueError(f"a bundle with the head {self.head} has the graphs {sorted(expected)}")
        for name, variant in self.variants.items():
            if unknown := sorted(set(variant.graphs) - expected):
                raise ValueError(f"the variant {name} has the graph {unknown[0]}, which a {self.head} head has not")
        if (self.head != "ctc") != bool(self.states):
            raise ValueError("a head that writes step by step, and no CTC head, lists its recurrent states")
        if self.head != "attention" and any(state.kind == "frames" for state in self.states):
            raise ValueError("a state over frames is of an attention head: no other looks at them")
        if len({state.name for state in self.states}) != len(self.states):
            raise ValueError("two recurrent states have one name")
        return self

    @model_validator(mode="after")
    def _check_alphabet(self) -> Self:
        if len(self.alphabet) < 2:
            raise ValueError(f"the alphabet has {len(self.alphabet)} symbol(s); a recogniser needs at least two")
        try:
            Alphabet(self.alphabet)
        except AlphabetError as error:
            raise ValueError(f"alphabet: {error}") from error
        return self

    @property
    def required_files(self) -> set[str]:
        """Files the bundle cannot do without, the manifest apart."""
        variants = {file for variant in self.variants.values() for file in variant.graphs.values()}
        guides = {self.decoder.language_model} if self.decoder.language_model is not None else set[str]()
        return {*self.graphs.values(), *variants, *guides, self.probe.image, MODEL_CARD_NAME}


def read_manifest(file: Path) -> Manifest:
    """Reads a manifest, and nothing that it names.

    Args:
        file: The `manifest.json`.

    Raises:
        BundleError: If it is missing, malformed or of a newer schema. The message names the file.
    """
    try:
        content = file.read_bytes()
    except FileNotFoundError as error:
        raise BundleError(f"{file}: no such file; a bundle is a folder with a {MANIFEST_NAME}") from error
    except OSError as error:
        raise BundleError(f"{file}: {error.strerror}") from error
    try:
        record: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{file}: not JSON: {error}") from error
    if not isinstance(record, dict):
        raise BundleError(f"{file}: not a JSON object")
    # Before anything else: a newer schema has fields that this one would only call unknown.
    version = record.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise BundleError(
            f"{file}: schema version {version} is newer than this Glyphline reads ({SCHEMA_VERSION}); upgrade Glyphline"
        )
    if "schema_version" not in record:
        raise BundleError(f"{file}: schema_version is missing")
    try:
        return Manifest.model_validate_json(content, strict=True)
    except ValidationError as error:
        raise BundleError(f"{file}: {explain(error)}") from error


def explain(error: ValidationError) -> str:
    """Says in one line which fields of a manifest are wrong and why."""
    problems = []
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        field = ".".join(str(part) for part in detail["loc"])
        problems.append(f"{field}: {detail['msg']}" if field else detail["msg"].removeprefix("Value error, "))
    return "; ".join(problems)
