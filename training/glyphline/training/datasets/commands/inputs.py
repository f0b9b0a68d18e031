"""What a data command is given: data sets by path, or all real strips of a configuration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from glyphline.models.alphabet import Alphabet
from glyphline.models.errors import LabelsError
from glyphline.models.image import ImageSettings
from glyphline.training.config import DatasetConfig, DrawnSetConfig, Source, TrainingConfig, read_config
from glyphline.training.datasets.build import build_source
from glyphline.training.datasets.readers import Format, LabelledImage, read_dataset
from glyphline.training.datasets.selection import select
from glyphline.training.errors import DataError

Progress = Callable[[int, int], None]
"""Is told after each picture how many were done and how many failed."""


def silent(done: int, failed: int) -> None:
    """Shows nothing."""


@dataclass(frozen=True, slots=True)
class Part:
    """Strips that are looked at together.

    Attributes:
        name: Name for reports.
        role: `training` or `validation` where a configuration says so, else `data`.
        images: The strips.
        fault: Why there are none, where the data set cannot be read at all.
        bad_labels: The lines of its label file that are why, where they are.
        skips_unknown: Whether labels with characters outside the alphabet are left out, as the configuration says.
    """

    name: str
    role: Literal["data", "training", "validation"]
    images: Sequence[LabelledImage]
    fault: str = ""
    bad_labels: LabelsError | None = None
    skips_unknown: bool = False


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a command looks at.

    Attributes:
        parts: The strips.
        image: How strips are normalised.
        frames_per_step: CTC frames for each frame of the encoder.
        has_ctc: Whether a CTC head is trained, for which a label may be too long.
        alphabet: What may be read; None where nothing says so.
    """

    parts: tuple[Part, ...]
    image: ImageSettings
    frames_per_step: int = 2
    has_ctc: bool = True
    alphabet: Alphabet | None = None


def is_config(path: Path) -> bool:
    """Tells whether a path is a configuration, by its ending."""
    return path.suffix.lower() == ".toml"


def open_inputs(
    paths: Sequence[Path],
    *,
    data_root: Path,
    format: Format = "auto",
    alphabet: str | None = None,
    config: Path | None = None,
    missing: Literal["refuse", "keep"] = "keep",
    drawn: bool = False,
) -> Inputs:
    """Reads the labels of data sets.

    Args:
        paths: Data sets, or configurations, which stand for their real sources and validation sets.
        data_root: Folder below which the paths of configurations lie.
        format: Format of the data sets.
        alphabet: What may be read, where it is not the configuration's.
        config: Configuration that says how strips are normalised and what may be read, for data sets given by path.
        missing: Whether a data set is refused that lacks pictures.
        drawn: Whether sources that draw their strips are tried, too; one that cannot is a part with its fault.

    Raises:
        TrainingError: If a configuration does not fit.
    """
    parts: list[Part] = []
    configs = [read_config(config)] if config is not None else []
    for path in paths:
        if is_config(path):
            configs.append(read_config(path))
            parts += _config_parts(configs[-1], data_root, missing)
            parts += _drawn_faults(configs[-1], data_root) if drawn else []
        else:
            parts.append(_part(str(path), "data", partial(read_dataset, path, format, missing=missing)))
    first = configs[0] if configs else None
    known = Alphabet(tuple(dict.fromkeys(alphabet))) if alphabet else (known_alphabet(first) if first else None)
    if first is None:
        return Inputs(tuple(parts), ImageSettings(), alphabet=known)
    return Inputs(
        tuple(parts), first.image, first.network.frames_per_step, "ctc" in first.network.heads, alphabet=known
    )


def known_alphabet(config: TrainingConfig) -> Alphabet | None:
    """Returns a configuration's alphabet; None where it is learnt from the labels, which then fit by themselves."""
    return config.make_alphabet() if config.alphabet else None


def _config_parts(config: TrainingConfig, root: Path, missing: Literal["refuse", "keep"]) -> list[Part]:
    parts = []
    for number, source in enumerate(config.sources, 1):
        if isinstance(source, DatasetConfig):
            name = f"source {number} ({source.path})"
            part = _part(name, "training", partial(_selected, source, root, missing))
            parts.append(replace(part, skips_unknown=source.unknown_characters == "skip"))
    for name, settings in config.validation.items():
        real = settings.source if isinstance(settings, DrawnSetConfig) else settings
        if isinstance(real, DatasetConfig):
            part = _part(f"validation {name}", "validation", partial(_selected, real, root, missing))
            parts.append(replace(part, skips_unknown=real.unknown_characters == "skip"))
    return parts


def _drawn_faults(config: TrainingConfig, root: Path) -> list[Part]:
    """Draws a strip from each source that draws its own, of training and of validation; returns those that cannot."""
    alphabet = known_alphabet(config)
    named: list[tuple[str, Literal["training", "validation"], Source]] = [
        (f"source {number} ({source.kind})", "training", source)
        for number, source in enumerate(config.sources, 1)
        if not isinstance(source, DatasetConfig)
    ]
    for name, settings in config.validation.items():
        if isinstance(settings, DrawnSetConfig) and not isinstance(settings.source, DatasetConfig):
            named.append((f"validation {name}", "validation", settings.source))
    parts = []
    for name, role, source in named:
        try:
            build_source(source, root, alphabet).draw(np.random.default_rng(1))
        except (DataError, OSError) as error:
            parts.append(Part(name, role, (), str(error)))
    return parts


def _selected(config: DatasetConfig, root: Path, missing: Literal["refuse", "keep"]) -> list[LabelledImage]:
    images = read_dataset(
        root / config.path,
        config.format,
        labels=config.labels,
        image_key=config.image_key,
        text_key=config.text_key,
        cut=config.cut,
        missing=missing,
    )
    chosen = select(images, config)
    if not chosen:
        raise DataError(f"{root / config.path}: of {len(images)} strips none is chosen (only, without, folds)")
    return chosen


def _part(name: str, role: Literal["data", "training", "validation"], read: Callable[[], list[LabelledImage]]) -> Part:
    try:
        return Part(name, role, read())
    except DataError as error:
        cause = error.__cause__
        return Part(name, role, (), str(error), cause if isinstance(cause, LabelsError) and cause.lines else None)


def readable(inputs: Inputs) -> Inputs:
    """Returns the inputs where every part could be read.

    Raises:
        DataError: If one could not, or there is none.
    """
    faults = [part.fault for part in inputs.parts if part.fault]
    if faults:
        raise DataError("; ".join(faults))
    if not inputs.parts:
        raise DataError("the configuration has no real strips, in neither its sources nor its validation sets")
    return inputs
