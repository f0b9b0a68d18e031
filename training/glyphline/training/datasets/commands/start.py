"""`glyphline data init`: a first configuration, written from the data."""

from __future__ import annotations

import json
import logging
import re
import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from glyphline.models.image import ImageSettings
from glyphline.training.datasets.commands.inputs import Progress, silent
from glyphline.training.datasets.commands.validate import normalised_widths, spell
from glyphline.training.datasets.feasibility import available_frames, needed_frames
from glyphline.training.datasets.readers import Format, LabelledImage, read_dataset, recognise
from glyphline.training.datasets.selection import fold_of, group_of
from glyphline.training.errors import DataError

FOLDS = 10

logger = logging.getLogger(__name__)

_RARE = 2
"""A character that occurs no more often than this may be a slip of the pen, and cannot be learnt from so little."""

_RARE_NAMED = 20


@dataclass(frozen=True, slots=True)
class _Found:
    """What the data say."""

    strips: int
    alphabet: str
    width: int
    longest: int
    frames_per_step: int


def write_first_config(
    path: Path,
    *,
    data_root: Path,
    name: str = "",
    format: Format = "auto",
    group: str = "",
    height: int = 40,
    epochs: int = 0,
    progress: Progress = silent,
) -> str:
    """Writes a configuration for a data set: its characters, its widths, one strip in ten held out.

    Args:
        path: Data set.
        data_root: Where the data set lies below it, its path is written relative to it, else absolute.
        name: Name of the recogniser; the data set's name where it is not given.
        format: Format of the data set.
        group: Regular expression on names that tells writers, pages or devices, which are then held out whole.
        height: Height of normalised strips.
        epochs: Number of epochs; chosen by the number of strips where it is 0.
        progress: Is told of every picture.

    Returns:
        TOML.

    Raises:
        DataError: If the data set cannot be read, has no text, or its groups are too few to hold one out.
    """
    try:
        images = read_dataset(path, format)
    except DataError as error:
        raise DataError(f"{error}. {_advice(path)}") from error
    form = recognise(path) if format == "auto" else format
    settings = ImageSettings(height=height)
    characters = Counter(character for image in images for character in image.text)
    if not characters:
        raise DataError(f"{path}: no strip has a text")
    rare = _tell_rare(images, characters)
    if rare:
        logger.warning("%s", rare)
    folds = [fold_of(image.source, FOLDS, group) for image in images]
    fold = _fold_to_hold_out(folds, path, group)
    try:
        sizes = images_sizes(images, progress)
    except DataError as error:
        raise DataError(f"{error}. {_advice(path)}") from error
    found = _look(sizes, [image.text for image in images], settings, characters)
    name = re.sub(r"[^\w-]+", "-", name or path.resolve().name.partition(".")[0]).strip("-").lower() or "mine"
    root = data_root.resolve()
    absolute = path.resolve()
    below = absolute.is_relative_to(root) and absolute != root
    # The commands look below `data` by themselves, and an absolute path is below nothing.
    elsewhere = f" --data-root {shlex.quote(data_root.as_posix())}" if below and data_root != Path("data") else ""
    return _TEMPLATE.format(
        name=_quote(name),
        title=name,
        file=f"{name}.toml",
        root=elsewhere,
        share=_tell_share(images, folds, fold, group),
        alphabet=_quote(found.alphabet),
        symbols=len(found.alphabet),
        rare=f"# {rare}\n" if rare else "",
        height=height,
        width=found.width,
        longest=found.longest,
        frames=found.frames_per_step,
        epochs=epochs or 30,
        strips_per_epoch=int(np.clip(found.strips * 8 // 64 * 64, 2048, 25_600)),
        path=_quote(absolute.relative_to(root).as_posix() if below else str(absolute)),
        format=_quote(form),
        folds=FOLDS,
        fold=fold,
        group=f"\ngroup = {_quote(group)}" if group else "",
    )


def images_sizes(images: list[LabelledImage], progress: Progress) -> list[tuple[int, int]]:
    """Returns the sizes of the pictures that can be read; the others are for `data validate` to name."""
    sizes, failed = [], 0
    for number, image in enumerate(images, 1):
        try:
            sizes.append(image.size())
        except DataError:
            failed += 1
        progress(number, failed)
    if not sizes:
        raise DataError("no picture can be read")
    return sizes


def _advice(path: Path) -> str:
    return f"`glyphline data validate {shlex.quote(str(path))}` names all that is wrong; no configuration was written"


def _fold_to_hold_out(folds: list[int], path: Path, group: str) -> int:
    """The fold whose share is nearest to a tenth: with few groups, folds differ."""
    counts = Counter(folds)
    if len(counts) < 2:
        raise DataError(
            f"{path}: nothing can be held out: all strips are in one fold of {FOLDS}"
            + (f"; {group!r} tells too few groups apart" if group else "; there are too few")
        )
    return min(sorted(counts), key=lambda fold: abs(counts[fold] - len(folds) / FOLDS))


def _tell_share(images: list[LabelledImage], folds: list[int], fold: int, group: str) -> str:
    """Says how much is held out: of strips, and of the groups where there are any."""
    names = [image.source for image in images]
    held_out = [name for name, each in zip(names, folds, strict=True) if each == fold]
    strips = f"{len(held_out):,} of {len(names):,} strips are held out"
    if not group:
        return strips
    groups, kept = ({group_of(name, group) for name in some} for some in (names, held_out))
    alone = sum(re.search(group, name) is None for name in names)
    unmatched = f" ({alone:,} strips match no group and are each one by itself)" if alone else ""
    return f"{strips}: {len(kept):,} of {len(groups):,} groups{unmatched}"


def _tell_rare(images: list[LabelledImage], characters: Counter[str]) -> str:
    """Says which characters occur so seldom that they may be mistakes, each with a line of labels that has it."""
    rare = sorted(character for character, count in characters.items() if count <= _RARE)
    if not rare:
        return ""
    places: dict[str, str] = {}
    for image in images:
        for character in image.text:
            places.setdefault(character, image.place)
    named = ", ".join(f"{spell([character])} in {places[character]}" for character in rare[:_RARE_NAMED])
    more = f", and {len(rare) - _RARE_NAMED:,} more" if len(rare) > _RARE_NAMED else ""
    return f"Only once or twice in all labels, so take them out if they are mistakes: {named}{more}"


def _look(sizes: list[tuple[int, int]], texts: list[str], settings: ImageSettings, characters: Counter[str]) -> _Found:
    widths = normalised_widths(sizes, settings)
    longest = max(map(len, texts))
    # Frames for the densest strips: where two a step do not do, narrow characters want more.
    pairs = list(zip(widths, texts, strict=False)) if len(widths) == len(texts) else []
    frames = 2
    while frames < 4 and any(
        needed_frames([ord(c) for c in text]) > available_frames(width, frames) for width, text in pairs
    ):
        frames += 1
    return _Found(
        strips=len(texts),
        alphabet="".join(sorted(characters)),
        # Room for what augmentation stretches, and for strips that are a little wider than those at hand.
        width=int(np.clip(-(-max(widths) * 3 // 2 // 64) * 64, 256, 8192)),
        longest=max(16, -(-longest * 3 // 2 // 8) * 8),
        frames_per_step=frames,
    )


def _quote(text: str) -> str:
    """A TOML string: JSON's strings are that too, once what TOML takes for controls is escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


_TEMPLATE = """\
# Written by `glyphline data init`. {share}.
# Every line is yours to change; docs/training.md explains each. The commands below call this file {file}: save it
# under that name, or change it in them.
#
#   glyphline data validate {file}{root}
#   glyphline data preview {file}{root} --output preview.png
#   glyphline train {file}{root} --output runs/{title}
#   glyphline export runs/{title} --output models --name {title} --version 1 --head ctc{root}
#   glyphline evaluate {file}:held_out --model models/{title}/1{root} --report report
#   glyphline serve --model-repository models

name = {name}
task = "text like that of {title}"
# licence = "CC BY 4.0"    # of the weights: what you allow others. Until you say so, the model card says "not stated".
# The {symbols} characters of your labels. What is not among them can never be read: add what new strips may have.
{rare}alphabet = {alphabet}
max_output_length = {longest}

[image]
height = {height}
max_width = {width}

[network]
heads = ["ctc"]
channels = [32, 64, 96, 128]
encoder_size = 128
encoder_layers = 2
frames_per_step = {frames}

# An epoch ends with a checkpoint. Your strips are drawn again and again, each time bent, blurred and lit anew.
[loop]
epochs = {epochs}
strips_per_epoch = {strips_per_epoch}
batch_columns = 4096
validate_every = 1

[[sources]]
kind = "real"
path = {path}
format = {format}
folds = {folds}
fold = {fold}{group}
# unknown_characters = "skip"    # leave out labels with characters outside the alphabet, rather than refuse to start
# wear = {{ slant = 0.1, elastic = 0.01, inverted = 0.0 }}    # less variation, for print

# Strips without writing, so that they read as nothing. Leave it out if every strip has text.
[[sources]]
kind = "blank"
weight = 0.03

[validation.held_out]
kind = "folder"
path = {path}
format = {format}
folds = {folds}
fold = {fold}
held_out = true{group}

# For the model card: whose pictures these are, and on what terms.
# [[data]]
# name = "{title}"
# licence = "not stated"
# use = "training, validation"
"""
