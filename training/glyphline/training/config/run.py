"""Configuration of a training run: the one TOML file, validated whole before anything starts."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from glyphline.models.alphabet import Alphabet
from glyphline.models.bundle import DataSource
from glyphline.models.image import ImageSettings
from glyphline.training.config.base import Section, read_section
from glyphline.training.config.data import EvaluationSet, Source
from glyphline.training.config.loop import LoopConfig
from glyphline.training.config.network import NetworkConfig


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
    return read_section(TrainingConfig, path)
