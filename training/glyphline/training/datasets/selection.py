"""Which strips of a data set are taken: by name, by fold, by what they read; and how many."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from glyphline.models.alphabet import Alphabet
from glyphline.training.config import DatasetConfig
from glyphline.training.datasets.readers import LabelledImage, check_files, read_dataset
from glyphline.training.datasets.samples import SkipCounts
from glyphline.training.errors import DataError

EMPTY = "empty label"
UNKNOWN = "unknown character"
"""Why strips are skipped before any is drawn."""


def group_of(name: str, group: str) -> str:
    """Returns what strips have in common that are held out together: the writer, page or device in a name.

    Args:
        name: A strip's name.
        group: Regular expression, as `fold_of` has it; where it is empty or does not match, a name stands for itself.
    """
    match = re.search(group, name) if group else None
    return name if match is None else match.group(1 if match.re.groups else 0) or ""


def fold_of(name: str, folds: int, group: str = "") -> int:
    """Deals a strip into a fold; the same name is in the same fold on every machine, whatever else is in the set.

    Args:
        name: The strip's name.
        folds: Number of folds.
        group: Regular expression; what its first group (or all of it) matches is hashed in place of the name. A name
            that does not match stands for itself.
    """
    key = group_of(name, group)
    return int.from_bytes(hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") % folds


def select(images: Sequence[LabelledImage], config: DatasetConfig) -> list[LabelledImage]:
    """Takes the strips that the configuration chooses by name, fold and number, in their order."""
    chosen = [
        image
        for image in images
        if (not config.only or re.match(config.only, image.source))
        and not (config.without and re.match(config.without, image.source))
        and (not config.folds or (fold_of(image.source, config.folds, config.group) == config.fold) == config.held_out)
    ]
    if config.limit and len(chosen) > config.limit:
        chosen = [chosen[int(index)] for index in np.linspace(0, len(chosen) - 1, config.limit)]
    return chosen


def read_selected(
    config: DatasetConfig,
    root: Path,
    alphabet: Alphabet | None = None,
    skips: SkipCounts | None = None,
    *,
    missing: Literal["refuse", "keep"] = "refuse",
) -> list[LabelledImage]:
    """Reads the labels of a data set and takes those that the configuration chooses.

    Args:
        config: The data set.
        root: Folder below which its path lies.
        alphabet: Where it is given and the configuration skips unknown characters, labels with such are left out.
        skips: Counts what is left out for its label.
        missing: Whether it is refused if pictures that are taken do not exist.

    Raises:
        DataError: If the data set is not as its format wants it, lacks pictures, or nothing is left of it.
    """
    skips = SkipCounts() if skips is None else skips
    path = root / config.path
    images = read_dataset(
        path,
        config.format,
        labels=config.labels,
        image_key=config.image_key,
        text_key=config.text_key,
        cut=config.cut,
        missing="keep",  # of what is not taken nothing need be there
    )
    chosen = select(images, config)
    if not chosen:
        folds = (
            f", fold {config.fold} of {config.folds}{'' if config.held_out else ' held out'}" if config.folds else ""
        )
        raise DataError(
            f"{path}: no file name matches {config.only!r} without {config.without!r}{folds}; there are"
            f" {len(images)}, as {images[0].source!r}"
        )
    if config.drop:
        dropped = dict.fromkeys(map(ord, config.drop))
        chosen = [replace(image, text=" ".join(image.text.translate(dropped).split())) for image in chosen]
    kept = []
    for image in chosen:
        if not image.text and not config.allow_empty:
            skips.add(EMPTY, image.source)
        elif config.unknown_characters == "skip" and alphabet is not None and alphabet.unknown_characters(image.text):
            skips.add(UNKNOWN, image.source)
        else:
            kept.append(image)
    if not kept:
        raise DataError(f"{path}: every one of {len(chosen)} strips is left out: {skips}")
    if missing == "refuse":
        check_files(kept)
    return kept
