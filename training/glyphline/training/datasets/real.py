"""Real strips: folders of pictures with `labels.tsv`, split by what their names begin with; and strips without text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from glyphline.training.augment import Wear, draw_lines, photograph, rephotograph, smooth_field
from glyphline.training.datasets.labels import read_labels, read_picture
from glyphline.training.datasets.samples import Sample
from glyphline.training.errors import DataError


def read_strips(
    folder: Path, *, only: str = "", without: str = "", labels: str = "labels.tsv", limit: int | None = None
) -> list[Sample]:
    """Reads labelled pictures into memory.

    Args:
        folder: Folder of pictures.
        only: Regular expression; only files whose names match it (from their beginning) are read.
        without: Regular expression; files whose names match it are left out.
        labels: Name of the label file in `folder`.
        limit: Greatest number of samples: every n-th of them is taken, so that all parts of the folder are seen.

    Returns:
        The samples, in the order of the label file.

    Raises:
        DataError: If nothing is left, or a picture is missing or cannot be read.
    """
    rows = [
        (label.name, label.text)
        for label in read_labels(folder / labels)
        if (not only or re.match(only, label.name)) and not (without and re.match(without, label.name))
    ]
    if not rows:
        raise DataError(f"{folder / labels}: no file name matches {only!r} without {without!r}")
    if limit is not None and len(rows) > limit:
        rows = [rows[int(index)] for index in np.linspace(0, len(rows) - 1, limit)]
    samples = []
    for name, text in rows:
        samples.append(Sample(read_picture(folder / name), text, name))
    return samples


@dataclass(frozen=True)
class RealStrips:
    """Real strips, varied anew each time.

    Attributes:
        samples: The pictures and their texts.
        wear: How much they are varied.
    """

    samples: list[Sample]
    wear: Wear = field(default_factory=Wear)

    def draw(self, random: np.random.Generator) -> Sample:
        """Returns one of the strips, varied."""
        sample = self.samples[int(random.integers(len(self.samples)))]
        return Sample(rephotograph(sample.pixels, random, self.wear), sample.text, sample.source)


@dataclass(frozen=True)
class BlankStrips:
    """Strips without any text: bare paper, noise, shadows, ruled lines, edges of boxes. Their text is empty.

    Attributes:
        narrowest: Least width, as a share of the height. Training wants slivers too: they are easily taken for a 1.
        wear: How much they are degraded.
    """

    narrowest: float = 0.0
    wear: Wear = field(default_factory=lambda: Wear(lines=0.6))

    def draw(self, random: np.random.Generator) -> Sample:
        """Makes one strip without text."""
        height = int(random.integers(12, 96))
        width = int(max(2, self.narrowest * height) + 400 * random.random() ** 2)
        if random.random() < 0.15:  # one grey, nothing else
            return Sample(np.full((height, width), random.integers(0, 256), np.uint8), "", "blank")
        ink = np.zeros((height, width), np.uint8)
        if random.random() < 0.3:
            ink = np.clip(smooth_field(random, height, width) * random.uniform(0, 255), 0, 255).astype(np.uint8)
        if random.random() < 0.15:
            ink = draw_lines(ink, random)
        return Sample(photograph(ink, random, self.wear), "", "blank")
