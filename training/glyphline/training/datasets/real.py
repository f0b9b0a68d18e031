"""Real strips, read when they are drawn and varied anew each time; and strips without text."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from glyphline.training.augment import Wear, draw_lines, photograph, rephotograph, smooth_field
from glyphline.training.config import FolderSetConfig
from glyphline.training.datasets.readers import LabelledImage
from glyphline.training.datasets.samples import Grey, Sample, UnusableSampleError
from glyphline.training.datasets.selection import read_selected
from glyphline.training.errors import DataError

UNREADABLE = "unreadable"
"""Why a strip is skipped whose picture is missing or damaged."""

TALLEST = 96
"""Pixels: higher pictures are brought to this height before they are varied. What varies them is measured in pixels of
strips that are about as high as a network takes them, and a scan at 600 dpi would hardly be touched by it."""


def read_strips(
    folder: Path, *, only: str = "", without: str = "", labels: str = "", limit: int | None = None
) -> list[Sample]:
    """Reads labelled pictures into memory.

    Args:
        folder: Data set in any format; see `glyphline.training.datasets.readers`.
        only: Regular expression; only files whose names match it (from their beginning) are read.
        without: Regular expression; files whose names match it are left out.
        labels: Name of the label file in `folder`, where it is not the usual one.
        limit: Greatest number of samples: every n-th of them is taken, so that all parts of the folder are seen.

    Returns:
        The samples, in the order of the label file.

    Raises:
        DataError: If nothing is left, or a picture is missing or cannot be read.
    """
    config = FolderSetConfig(
        kind="folder", path=str(folder), only=only, without=without, labels=labels, limit=limit or 0
    )
    return decode_all(read_selected(config, Path()))


def decode_all(images: Sequence[LabelledImage]) -> list[Sample]:
    """Decodes pictures, as for a set that is read again and again.

    Raises:
        DataError: If some are missing or cannot be read; the first few are named.
    """
    samples, faults = [], []
    for image in images:
        try:
            samples.append(Sample(image.load(), image.text, image.source))
        except DataError as error:
            faults.append(str(error))
    if faults:
        raise DataError("; ".join(faults[:5]) + (f"; and {len(faults) - 5:,} more" if len(faults) > 5 else ""))
    return samples


class PixelCache:
    """Keeps the pixels that were used last, up to a number of bytes."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.held = 0
        self._pixels: OrderedDict[int, Grey] = OrderedDict()

    def get(self, key: int) -> Grey | None:
        """Returns what is kept under a key."""
        pixels = self._pixels.get(key)
        if pixels is not None:
            self._pixels.move_to_end(key)
        return pixels

    def put(self, key: int, pixels: Grey) -> None:
        """Keeps pixels, and lets go of those that were not used for longest."""
        self._pixels[key] = pixels
        self.held += pixels.nbytes
        while self.held > self.max_bytes and self._pixels:
            self.held -= self._pixels.popitem(last=False)[1].nbytes


class RealStrips:
    """Real strips, varied anew each time.

    Pictures are decoded when they are drawn. A few are kept, so that a small set is decoded once and a large one does
    not fill the memory.

    Attributes:
        images: The pictures and their texts.
        wear: How much they are varied.
    """

    CACHE_BYTES = 96 * 2**20
    """Kept by each source in each process: some ten thousand strips."""

    def __init__(self, images: Sequence[LabelledImage], wear: Wear | None = None) -> None:
        self.images = images
        self.wear = Wear() if wear is None else wear
        self.cache = PixelCache(self.CACHE_BYTES)

    def draw(self, random: np.random.Generator) -> Sample:
        """Returns one of the strips, varied.

        Raises:
            UnusableSampleError: If its picture is missing or damaged.
        """
        index = int(random.integers(len(self.images)))
        image = self.images[index]
        return Sample(rephotograph(self.pixels(index), random, self.wear), image.text, image.source)

    def pixels(self, index: int) -> Grey:
        """Returns a strip as it is, `(height, width)`, at most `TALLEST` pixels high.

        Raises:
            UnusableSampleError: If its picture is missing or damaged.
        """
        kept = self.cache.get(index)
        if kept is not None:
            return kept
        image = self.images[index]
        try:
            pixels = image.load()
        except DataError as error:
            raise UnusableSampleError(UNREADABLE, image.source, str(error)) from error
        height, width = pixels.shape
        if height > TALLEST:
            size = (max(1, round(width * TALLEST / height)), TALLEST)
            pixels = np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR))
        self.cache.put(index, pixels)
        return pixels


@dataclass(frozen=True)
class BlankStrips:
    """Strips without any text: bare paper, noise, shadows, ruled lines, edges of boxes. Their text is empty.

    Attributes:
        narrowest: Least width, as a share of the height. Training wants slivers too: they are easily taken for a 1.
        wear: How much they are degraded.
        widest: Greatest width, as a share of the height; what is beyond it is cut off.
    """

    narrowest: float = 0.0
    wear: Wear = field(default_factory=lambda: Wear(lines=0.6))
    widest: float = math.inf

    def draw(self, random: np.random.Generator) -> Sample:
        """Makes one strip without text."""
        pixels = self._draw(random)
        width = max(1, int(min(self.widest * pixels.shape[0], pixels.shape[1])))
        return Sample(pixels[:, :width], "", "blank")

    def _draw(self, random: np.random.Generator) -> Grey:
        height = int(random.integers(12, 96))
        width = int(max(2, self.narrowest * height) + 400 * random.random() ** 2)
        if random.random() < 0.15:  # one grey, nothing else
            return np.full((height, width), random.integers(0, 256), np.uint8)
        ink = np.zeros((height, width), np.uint8)
        if random.random() < 0.3:
            ink = np.clip(smooth_field(random, height, width) * random.uniform(0, 255), 0, 255).astype(np.uint8)
        if random.random() < 0.15:
            ink = draw_lines(ink, random)
        return photograph(ink, random, self.wear)
