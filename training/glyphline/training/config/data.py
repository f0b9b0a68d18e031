"""Configuration of the data: sources of training strips, and sets for validation and evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from glyphline.training.augment import Wear
from glyphline.training.config.base import Section, read_section


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


class _EvaluationSets(Section):
    sets: dict[str, EvaluationSet]


def read_evaluation_sets(path: Path) -> dict[str, EvaluationSet]:
    """Reads named evaluation sets: a TOML file with one table a set.

    Raises:
        TrainingError: If the file is missing, is not TOML, or does not fit.
    """
    return read_section(_EvaluationSets, path).sets
