"""Configuration of a training run: the one TOML file, validated whole before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from glyphline.models.alphabet import Alphabet
from glyphline.models.image import ImageSettings
from glyphline.models.manifest import DataSource
from glyphline.training.config.base import Section, read_section
from glyphline.training.config.data import EvaluationSet, Source
from glyphline.training.config.loop import LoopConfig
from glyphline.training.config.network import NetworkConfig
from glyphline.training.config.vocabulary import VocabularyConfig
from glyphline.training.errors import TrainingError


class TrainingConfig(Section):
    """A training run.

    Attributes:
        name: Name of the recogniser.
        task: What it reads, for its card.
        seed: Seed of everything random.
        alphabet: Every character that may be read, in the order of the outputs; or a list of symbols, each of one or
            more characters.
        vocabulary: What is learnt from the labels in place of an alphabet.
        image: Normalisation of strips.
        max_output_length: Greatest number of symbols that the exported recogniser emits.
        network: The network.
        loop: The training loop.
        sources: Where strips come from.
        validation: Named sets; the run's error rate is the mean over them.
        licence: Licence of the weights, for the card; empty where none is stated.
        data: Data sets with their licences, for the card.
    """

    name: str
    task: str = "digits"
    seed: int = 1
    alphabet: str | tuple[str, ...] = ""
    vocabulary: VocabularyConfig | None = None
    image: ImageSettings = ImageSettings()
    max_output_length: int = Field(default=64, ge=1)
    network: NetworkConfig = NetworkConfig()
    loop: LoopConfig = LoopConfig()
    sources: tuple[Source, ...] = Field(min_length=1)
    validation: dict[str, EvaluationSet] = Field(min_length=1)
    licence: str = ""
    data: tuple[DataSource, ...] = ()

    @model_validator(mode="after")
    def _check_fit(self) -> Self:
        if bool(self.alphabet) == (self.vocabulary is not None):
            raise ValueError(
                'give the symbols as alphabet = "…", or have them learnt from the labels by a table [vocabulary]: '
                f"{'one of them, not both' if self.alphabet else 'neither is there'}"
            )
        canvas = self.network.canvas_width
        if canvas and self.image.max_width > canvas:
            raise ValueError(
                f"image.max_width is {self.image.max_width}, the canvas of the flatten head {canvas} wide: set "
                f"image.max_width = {canvas}, so that wider strips are refused and not cut"
            )
        if self.loop.restarts and self.network.decoder_head != "attention":
            raise ValueError(
                "loop.restarts is of the attention head alone, which knows its place by where it looked: leave it out"
            )
        return self

    def make_alphabet(self) -> Alphabet:
        """Returns the alphabet.

        Raises:
            TrainingError: If it is yet to be learnt; see `glyphline.training.vocabulary.run_alphabet`.
        """
        if not self.alphabet:
            raise TrainingError("the vocabulary of this configuration is not learnt yet")
        return Alphabet(tuple(self.alphabet))

    def with_alphabet(self, alphabet: Alphabet) -> Self:
        """Returns the same configuration with the symbols that its vocabulary came to be."""
        return self if self.vocabulary is None else self.model_copy(update={"alphabet": alphabet.symbols})


def read_config(path: Path) -> TrainingConfig:
    """Reads a training configuration.

    Raises:
        TrainingError: If the file is missing, is not TOML, or does not fit; every wrong key is named.
    """
    return read_section(TrainingConfig, path)
