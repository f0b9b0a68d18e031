"""The one configuration file of a training run: TOML, validated whole before anything starts."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from glyphline.models.alphabet import Alphabet
from glyphline.models.bundle import DataSource
from glyphline.models.image import ImageSettings
from glyphline.training.augment import Wear
from glyphline.training.errors import TrainingError


class Section(BaseModel):
    """Base of all sections: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Model = TypeVar("Model", bound=Section)


class NetworkConfig(Section):
    """Sizes and kinds of the network.

    Attributes:
        heads: `ctc`, `attention`, or both trained together on one encoder.
        channels: Channels of the four convolutional blocks.
        encoder_cell: Recurrent cell of the encoder.
        encoder_size: Its state size in each direction.
        encoder_layers: Number of its layers.
        frames_per_step: CTC output frames for each encoder frame of four columns.
        decoder_cell: Recurrent cell of the attention decoder.
        decoder_size: Its state size.
        attention_size: Inner size of the attention.
        embedding_size: Size of the decoder's symbol embedding.
        dropout: Share of features zeroed while training.
        gate_bias: Initial bias of forget and update gates.
    """

    heads: tuple[Literal["ctc", "attention"], ...] = ("ctc", "attention")
    channels: tuple[int, int, int, int] = (32, 64, 128, 192)
    encoder_cell: Literal["rnn", "gru", "lstm"] = "lstm"
    encoder_size: int = Field(default=128, ge=1)
    encoder_layers: int = Field(default=2, ge=1)
    frames_per_step: int = Field(default=2, ge=1, le=4)
    decoder_cell: Literal["gru", "lstm"] = "gru"
    decoder_size: int = Field(default=192, ge=1)
    attention_size: int = Field(default=96, ge=1)
    embedding_size: int = Field(default=32, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    gate_bias: float = 1.0


class LoopConfig(Section):
    """How long and how the network is trained.

    Attributes:
        epochs: Number of epochs; the learning rate's schedule spans them all.
        strips_per_epoch: Strips drawn for an epoch, between two checkpoints.
        batch_columns: Columns of pixels in a batch, over all of its strips; short strips make large batches.
        learning_rate: Peak learning rate of AdamW.
        warm_up: Share of the run over which the rate rises.
        decay: Share of the run, at its end, over which the rate falls to a hundredth.
        weight_decay: Weight decay of matrices; norms and biases have none.
        clip: Greatest norm of the gradient.
        ctc_weight: Weight of the CTC loss when both heads are trained, in [0, 1]; the attention head has the rest.
        label_smoothing: Label smoothing of the attention head.
        input_masking: Share of the decoder's input symbols replaced by random ones, against exposure bias.
        average_decay: Decay of the running average of the weights, which is what is validated and exported.
        patience: Validations without a better error rate before the run stops; 0 never stops early.
        validate_every: Epochs between validations.
        workers: Processes that make strips.
        precision: `bf16` where the processor has it, else `fp32`; `auto` decides.
    """

    epochs: int = Field(default=20, ge=1)
    strips_per_epoch: int = Field(default=51_200, ge=64)
    batch_columns: int = Field(default=12_288, ge=256)
    learning_rate: float = Field(default=1e-3, gt=0)
    warm_up: float = Field(default=0.03, ge=0, lt=1)
    decay: float = Field(default=0.4, ge=0, le=1)
    weight_decay: float = Field(default=1e-2, ge=0)
    clip: float = Field(default=2.0, gt=0)
    ctc_weight: float = Field(default=0.5, ge=0, le=1)
    label_smoothing: float = Field(default=0.02, ge=0, lt=1)
    input_masking: float = Field(default=0.05, ge=0, lt=1)
    average_decay: float = Field(default=0.999, ge=0, lt=1)
    patience: int = Field(default=0, ge=0)
    validate_every: int = Field(default=2, ge=1)
    workers: int = Field(default=1, ge=0)
    precision: Literal["auto", "bf16", "fp32"] = "auto"


class WearConfig(Section):
    """How much strips are degraded; see `glyphline.training.augment.Wear`. What is not given keeps its default."""

    slant: float | None = None
    rotation: float | None = None
    elastic: float | None = None
    lines: float | None = None
    inverted: float | None = None
    tight: float | None = None
    loose: float | None = None
    grime: float | None = None

    def apply(self, default: Wear) -> Wear:
        """Returns `default` with what is given here in its place."""
        given = self.model_dump(exclude_none=True)
        return Wear(**{name: given.get(name, getattr(default, name)) for name in Wear.__dataclass_fields__})


class SourceConfig(Section):
    """What all sources of training strips have.

    Attributes:
        weight: Share of the strips, relative to the other sources.
        wear: How much the strips are degraded.
    """

    weight: float = Field(default=1.0, gt=0)
    wear: WearConfig = WearConfig()


class CharactersConfig(Section):
    """Single-character images.

    Attributes:
        reader: `mnist` (IDX files), `npz` (`images.npz` with `labels.tsv`) or `folder` (pictures with `labels.tsv`).
        path: Folder, below the data root.
        part: Part of MNIST, `train` or `t10k`.
        folds: Where above 0, writers are dealt into so many folds by their number.
        fold: The fold that is held out.
        held_out: Whether the held-out fold is taken, or all the others.
        without: Regular expression; files whose names match are left out (reader `folder`).
    """

    reader: Literal["mnist", "npz", "folder"]
    path: str
    part: Literal["train", "t10k"] = "train"
    folds: int = Field(default=0, ge=0)
    fold: int = Field(default=0, ge=0)
    held_out: bool = False
    without: str = ""


class ComposedConfig(SourceConfig):
    """Handwritten strips composed of single characters."""

    kind: Literal["composed"]
    characters: CharactersConfig
    longest: int = Field(default=20, ge=1)
    marks: float = Field(default=0.15, ge=0, le=1)
    touching: float = Field(default=0.4, ge=0, le=1)


class ReadingsConfig(SourceConfig):
    """Meter readings composed of pictures of single wheels or display cells."""

    kind: Literal["readings"]
    characters: CharactersConfig
    longest: int = Field(default=9, ge=1)


class RenderedConfig(SourceConfig):
    """Strips rendered with the fonts below a folder (relative to the data root, or absolute)."""

    kind: Literal["rendered"]
    fonts: str
    longest: int = Field(default=20, ge=1)
    marks: float = Field(default=0.5, ge=0, le=1)
    cells: float = Field(default=0.0, ge=0, le=1)


class RealConfig(SourceConfig):
    """Real strips from a folder with `labels.tsv`, chosen by regular expressions on the file name."""

    kind: Literal["real"]
    path: str
    only: str = ""
    without: str = ""


class BlankConfig(SourceConfig):
    """Strips without text, of any width or at least `narrowest` times their height."""

    kind: Literal["blank"]
    narrowest: float = Field(default=0.0, ge=0)


Source = Annotated[
    ComposedConfig | ReadingsConfig | RenderedConfig | RealConfig | BlankConfig, Field(discriminator="kind")
]


class FolderSetConfig(Section):
    """An evaluation set of real strips: a folder of pictures with `labels.tsv`.

    Attributes:
        path: Folder, below the data root.
        only: Regular expression on file names.
        without: Regular expression on file names.
        labels: Label file in the folder.
        compare: `all` characters, or `digits` alone (both texts lose all else before they are compared).
        limit: Greatest number of strips, 0 for all.
    """

    kind: Literal["folder"]
    path: str
    only: str = ""
    without: str = ""
    labels: str = "labels.tsv"
    compare: Literal["all", "digits"] = "all"
    limit: int = Field(default=0, ge=0)


class StripSetConfig(Section):
    """An evaluation set of strips composed of single characters, the same for the same seed.

    Attributes:
        characters: The single characters.
        shortest: Least number of digits.
        longest: Greatest number of digits.
        count: Number of strips.
        seed: Seed of the composition.
    """

    kind: Literal["strips"]
    characters: CharactersConfig
    shortest: int = Field(default=1, ge=1)
    longest: int = Field(default=8, ge=1)
    count: int = Field(default=2000, ge=1)
    seed: int = 1


class DrawnSetConfig(Section):
    """An evaluation set drawn from a training kind of source (rendered, readings or blank strips), with a seed."""

    kind: Literal["drawn"]
    source: Source
    count: int = Field(default=500, ge=1)
    seed: int = 1


EvaluationSet = Annotated[FolderSetConfig | StripSetConfig | DrawnSetConfig, Field(discriminator="kind")]


class TrainingConfig(Section):
    """A training run.

    Attributes:
        name: Name of the recogniser.
        task: What it reads, for its card.
        seed: Seed of everything random.
        alphabet: Every character that may be read, in the order of the outputs.
        image: Normalisation of strips.
        max_output_length: Greatest number of characters that the exported recogniser emits.
        network: The network.
        loop: The training loop.
        sources: Where strips come from.
        validation: Named sets; the run's error rate is the mean over them.
        licence: Licence of the weights, for the card.
        data: Data sets with their licences, for the card.
    """

    name: str
    task: str = "digits"
    seed: int = 1
    alphabet: str
    image: ImageSettings = ImageSettings()
    max_output_length: int = Field(default=64, ge=1)
    network: NetworkConfig = NetworkConfig()
    loop: LoopConfig = LoopConfig()
    sources: tuple[Source, ...] = Field(min_length=1)
    validation: dict[str, EvaluationSet] = Field(min_length=1)
    licence: str = "Apache-2.0"
    data: tuple[DataSource, ...] = ()

    def make_alphabet(self) -> Alphabet:
        """Returns the alphabet; each character is one symbol."""
        return Alphabet(tuple(self.alphabet))


def read_config(path: Path) -> TrainingConfig:
    """Reads a training configuration.

    Raises:
        TrainingError: If the file is missing, is not TOML, or does not fit; every wrong key is named.
    """
    return _validate(TrainingConfig, path)


def read_evaluation_sets(path: Path) -> dict[str, EvaluationSet]:
    """Reads named evaluation sets: a TOML file with one table a set.

    Raises:
        TrainingError: If the file is missing, is not TOML, or does not fit.
    """
    return _validate(_EvaluationSets, path).sets


class _EvaluationSets(Section):
    sets: dict[str, EvaluationSet]


def _read_toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise TrainingError(f"{path} does not exist") from None
    except UnicodeDecodeError as error:
        raise TrainingError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from None
    except tomllib.TOMLDecodeError as error:
        raise TrainingError(f"{path} is not TOML: {error}") from None


def _validate(model: type[Model], path: Path) -> Model:
    try:
        return model.model_validate(_read_toml(path))
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise TrainingError(f"{path}: {wrong}") from None
