"""`glyphline data texts`: what a configuration's sources have strips say, for a language model of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from glyphline.training.config import ComposedConfig, RealConfig, RenderedConfig, Source, TrainingConfig
from glyphline.training.datasets.commands.inputs import known_alphabet
from glyphline.training.datasets.dice import Dice
from glyphline.training.datasets.selection import read_selected
from glyphline.training.datasets.texts import build_texts
from glyphline.training.errors import DataError

Draw = Callable[[Dice], str]


def draw_texts(
    config: TrainingConfig, data_root: Path, count: int, seed: int = 1, sources: Sequence[int] = ()
) -> Iterator[str]:
    """Draws texts as the sources that have any do, each by its weight; no picture is made or read.

    Left out is what teaches a network every character but is no language: babble and strings of characters. Of real
    strips come the labels that training has, never those held out.

    Args:
        config: The configuration.
        data_root: Folder below which its word lists and data sets lie.
        count: How many.
        seed: The same seed draws the same texts.
        sources: Numbers of the sources that are taken, from 1; none means all.

    Yields:
        Texts, none of them empty.

    Raises:
        DataError: If no source has texts, or word lists or labels cannot be read.
    """
    if absent := [number for number in sources if number > len(config.sources)]:
        raise DataError(f"there is no source {absent[0]}: the configuration has {len(config.sources)}")
    taken = [config.sources[number - 1] for number in sources] or config.sources
    found = [(source.weight, _drawer(source, config, data_root)) for source in taken]
    drawers = [(weight, draw) for weight, draw in found if draw is not None]
    if not drawers:
        raise DataError("no source has texts: they come from [sources.texts] and from the labels of real strips")
    random = np.random.default_rng(seed)
    dice = Dice(random)
    weights = np.array([weight for weight, _ in drawers])
    for chosen in random.choice(len(drawers), count, p=weights / weights.sum()).tolist():
        yield drawers[chosen][1](dice)


def _drawer(source: Source, config: TrainingConfig, root: Path) -> Draw | None:
    """Returns what draws a source's texts, None if it has none."""
    alphabet = known_alphabet(config)
    if isinstance(source, RealConfig):
        labels = [image.text for image in read_selected(source, root, alphabet, missing="keep") if image.text]
        return (lambda dice: dice.pick(labels)) if labels else None
    if isinstance(source, ComposedConfig | RenderedConfig) and source.texts is not None:
        language = source.texts.model_copy(update={"babble": 0.0, "characters": 0.0})
        if language.shares():
            return build_texts(language, source.longest, root, alphabet).draw
    return None
