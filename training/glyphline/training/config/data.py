"""Configuration of the data: sources of training strips, and sets for validation and evaluation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from glyphline.training.augment import Wear
from glyphline.training.config.base import Section, read_section
from glyphline.training.config.look import EffectsConfig
from glyphline.training.config.texts import TextsConfig
from glyphline.training.datasets.readers import Cut, Format
from glyphline.training.effects.look import Style


class WearConfig(Section):
    """How much strips are degraded; see `glyphline.training.augment.Wear`. What is not given keeps its default."""

    slant: float | None = None
    rotation: float | None = None
    stretch: float | None = None
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
        joined: Share of its strips that are two strips of the source side by side, their texts joined: by a space where
            the alphabet has letters and a space, else directly.
    """

    weight: float = Field(default=1.0, gt=0)
    joined: float = Field(default=0.0, ge=0, le=1)
    wear: WearConfig = WearConfig()


class CharactersConfig(Section):
    """Single-character images.

    Attributes:
        reader: `mnist` (IDX files), `npz` (`images.npz` with `labels.tsv`) or `folder` (pictures with `labels.tsv`).
        path: Folder, below the data root.
        part: Part of MNIST, `train` or `t10k`.
        folds: Where above 0, writers are dealt into so many folds by their number; images, where no writers are known.
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
    """Handwritten strips composed of single characters.

    Attributes:
        characters: The single characters: one set, or several that are mixed.
        longest: Greatest number of characters.
        marks: Share of strips of digits that carry marks, which are drawn with a pen.
        touching: Share of strips whose characters touch or overlap.
        distortion: How far each character by itself is slanted, tilted and bent.
        texts: What is written; digits and their marks where it is not given.
        effects: What befalls strips of `texts`, other than the style of the pen says.
    """

    kind: Literal["composed"]
    characters: CharactersConfig | tuple[CharactersConfig, ...]
    longest: int = Field(default=20, ge=1)
    marks: float = Field(default=0.15, ge=0, le=1)
    touching: float = Field(default=0.4, ge=0, le=1)
    distortion: float = Field(default=0.0, ge=0, le=1)
    texts: TextsConfig | None = None
    effects: EffectsConfig = EffectsConfig()


class ReadingsConfig(SourceConfig):
    """Meter readings composed of pictures of single wheels or display cells."""

    kind: Literal["readings"]
    characters: CharactersConfig
    longest: int = Field(default=9, ge=1)


class RenderedConfig(SourceConfig):
    """Strips rendered with the fonts below one folder or several (relative to the data root, or absolute).

    Attributes:
        fonts: The folders.
        longest: Greatest number of characters.
        marks: Share of strips of digits that carry marks.
        cells: Share of strips of digits that are drawn as counter wheels or display cells.
        texts: What is written; digits and their marks where it is not given.
        style: How strips of `texts` look.
        effects: What is changed of that style.
    """

    kind: Literal["rendered"]
    fonts: str | tuple[str, ...]
    longest: int = Field(default=20, ge=1)
    marks: float = Field(default=0.5, ge=0, le=1)
    cells: float = Field(default=0.0, ge=0, le=1)
    texts: TextsConfig | None = None
    style: Style = "print"
    effects: EffectsConfig = EffectsConfig()

    @model_validator(mode="after")
    def _draws_digits_or_texts(self) -> Self:
        if self.texts is None and (self.style != "print" or self.effects != EffectsConfig()):
            raise ValueError("style and effects are of strips with [sources.texts]; strips of digits have wear alone")
        if self.texts is not None and self.cells:
            raise ValueError("cells are of strips of digits: leave texts out, or cells")
        return self


class DatasetConfig(Section):
    """Labelled strips in one of the formats of `glyphline.training.datasets.readers`, and which of them are taken.

    Attributes:
        path: Folder or file, below the data root, or absolute.
        format: Its format; `auto` recognises it.
        labels: Name of the label file in the folder, where it is not the usual one.
        image_key: Column or key of the pictures, where it has none of the usual names (CSV, JSON Lines, Parquet).
        text_key: Column or key of the texts, where it has none of the usual names.
        cut: How lines are cut from pages (PAGE, ALTO): by their `polygon`, or by the `box` around it.
        only: Regular expression; only strips whose names match it (from their beginning) are taken.
        without: Regular expression; strips whose names match it are left out.
        folds: Where above 0, strips are dealt into so many folds by a hash of their names.
        fold: The fold that is held out.
        held_out: Whether the held-out fold is taken, or all the others.
        group: Regular expression on names; what its first group (or all of it) matches is hashed in place of the name,
            so that strips of one writer, page or device stay together.
        limit: Greatest number of strips, 0 for all; every n-th is taken, so that all parts of the set are seen.
        allow_empty: Whether strips without text are taken. Where not, they are skipped and counted.
        unknown_characters: What becomes of a label with characters outside the alphabet: `refuse` stops before
            training and names them all, `skip` leaves such strips out and counts them.
        drop: Characters that are taken out of the labels first: marks of a transcriber's that are not in the pictures.
    """

    path: str
    format: Format = "auto"
    labels: str = ""
    image_key: str = ""
    text_key: str = ""
    cut: Cut = "polygon"
    only: str = ""
    without: str = ""
    folds: int = Field(default=0, ge=0)
    fold: int = Field(default=0, ge=0)
    held_out: bool = False
    group: str = ""
    limit: int = Field(default=0, ge=0)
    allow_empty: bool = True
    unknown_characters: Literal["refuse", "skip"] = "refuse"
    drop: str = ""

    @field_validator("only", "without", "group")
    @classmethod
    def _is_regular_expression(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"{value!r} is no regular expression: {error}") from error
        return value

    @model_validator(mode="after")
    def _is_one_of_the_folds(self) -> Self:
        if self.folds == 1 or (self.folds and self.fold >= self.folds):
            raise ValueError(f"folds = {self.folds}, fold = {self.fold}: folds are two or more, counted from 0")
        if (self.held_out or self.group) and not self.folds:
            raise ValueError("held_out and group choose among folds: say how many by folds")
        return self


class RealConfig(SourceConfig, DatasetConfig):
    """Real strips, varied anew each time."""

    kind: Literal["real"]


class BlankConfig(SourceConfig):
    """Strips without text, of any width or at least `narrowest` times their height."""

    kind: Literal["blank"]
    narrowest: float = Field(default=0.0, ge=0)


Source = Annotated[
    ComposedConfig | ReadingsConfig | RenderedConfig | RealConfig | BlankConfig, Field(discriminator="kind")
]


class ShownSet(Section):
    """What all evaluation sets have.

    Attributes:
        shown: Whether pictures of it may be shown in a model card: their licence allows that they are given away.
        compare: `all` characters, `letters-and-digits` without regard to case, or `digits` alone: both texts lose all
            else before they are compared.
    """

    shown: bool = False
    compare: Literal["all", "letters-and-digits", "digits"] = "all"


class FolderSetConfig(DatasetConfig, ShownSet):
    """An evaluation set of real strips."""

    kind: Literal["folder"]


class StripSetConfig(ShownSet):
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


class DrawnSetConfig(ShownSet):
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
