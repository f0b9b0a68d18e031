"""Batches of equal-width strips, drawn from weighted sources; every batch is a pure function of seed and position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from glyphline.models.alphabet import Alphabet
from glyphline.models.errors import ImageTooWideError
from glyphline.models.image import GreyImage, ImageSettings, normalise
from glyphline.training.datasets.samples import Sample, SampleSource, SkipCounts, UnusableSampleError

TOO_WIDE = "too wide"
"""Why a strip is skipped that is wider than `image.max_width` when it is as high as the recogniser takes it."""


@dataclass(frozen=True, slots=True)
class EncodedStrip:
    """A strip as the network takes it.

    Attributes:
        pixels: Normalised strip `(height, width)`, uint8, ink bright.
        symbols: Its label.
        source: Where it comes from, for reports.
    """

    pixels: NDArray[np.uint8]
    symbols: list[int]
    source: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Strips padded to one width.

    Attributes:
        images: `(batch, 1, height, width)`, uint8, zero beyond each strip's own width.
        widths: Own widths `(batch,)`.
        labels: Symbols `(batch, longest)`, zero beyond each label.
        label_lengths: `(batch,)`.
    """

    images: NDArray[np.uint8]
    widths: NDArray[np.int64]
    labels: NDArray[np.int64]
    label_lengths: NDArray[np.int64]


def encode_sample(sample: Sample, alphabet: Alphabet, settings: ImageSettings) -> EncodedStrip | None:
    """Normalises a picture and encodes its text; None where the strip is wider than the recogniser takes."""
    try:
        pixels = normalise(GreyImage(sample.pixels), settings)
    except ImageTooWideError:
        return None
    return EncodedStrip(pixels, alphabet.encode(sample.text), sample.source)


def collate(strips: Sequence[EncodedStrip], width: int | None = None) -> Batch:
    """Pads strips to one width.

    Args:
        strips: At least one strip; all of one height.
        width: Padded width; where it is not given, the widest strip's, rounded up to 32.
    """
    if width is None:
        width = -(-max(strip.pixels.shape[1] for strip in strips) // 32) * 32
    longest = max([1, *(len(strip.symbols) for strip in strips)])
    images = np.zeros((len(strips), 1, strips[0].pixels.shape[0], width), np.uint8)
    labels = np.zeros((len(strips), longest), np.int64)
    for row, strip in enumerate(strips):
        images[row, 0, :, : strip.pixels.shape[1]] = strip.pixels
        labels[row, : len(strip.symbols)] = strip.symbols
    widths = np.array([strip.pixels.shape[1] for strip in strips], np.int64)
    return Batch(images, widths, labels, np.array([len(strip.symbols) for strip in strips], np.int64))


def draw_pool(
    sources: Sequence[SampleSource],
    weights: NDArray[np.float64],
    alphabet: Alphabet,
    settings: ImageSettings,
    seed: tuple[int, int],
    size: int,
    skips: SkipCounts | None = None,
) -> list[EncodedStrip]:
    """Draws strips from the sources. Those that cannot be used are skipped, so that there may be fewer than asked for.

    One strip in twelve has its normalised pixels inverted: what decides polarity may err on real pictures, and the
    network must then read the strip all the same.

    Args:
        sources: Sources.
        weights: Their probabilities.
        alphabet: Encodes the texts.
        settings: Normalises the pictures.
        seed: The run's seed and the pool's number.
        size: Number of strips.
        skips: Counts the strips that are skipped, by reason: a damaged picture, or one that is too wide.
    """
    skips = SkipCounts() if skips is None else skips
    random = np.random.default_rng(seed)
    pool = []
    for choice in random.choice(len(sources), size, p=weights):
        try:
            sample = sources[int(choice)].draw(random)
        except UnusableSampleError as error:
            skips.add(error.reason, error.source)
            continue
        strip = encode_sample(sample, alphabet, settings)
        if strip is None:
            skips.add(TOO_WIDE, sample.source)
            continue
        if random.random() < 1 / 12:
            strip = replace(strip, pixels=255 - strip.pixels)
        pool.append(strip)
    return pool


WIDTHS = (64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 1024, 1280, 1536, 2048, 4096, 8192)
"""Padded widths of training batches. With the sizes that follow from them they are a closed set of shapes: kernels are
compiled once for each shape, and compiling one takes longer than a hundred uses of it."""


def batch_size(width: int, batch_columns: int) -> int:
    """Returns the number of strips in a batch of this padded width: at most 160, a multiple of four, at least four."""
    return max(4, min(160, batch_columns // width) // 4 * 4)


def split_pool(pool: list[EncodedStrip], batch_columns: int, random: np.random.Generator) -> Iterator[Batch]:
    """Cuts a pool into batches of strips of about one width, in random order.

    The widest strips come first, and each batch is filled with the next narrower ones; the last is filled up with
    strips that it already has.

    Args:
        pool: Strips.
        batch_columns: Padded columns in a batch, about.
        random: Orders the batches.
    """
    pool = sorted(pool, key=lambda strip: -strip.pixels.shape[1])
    groups: list[tuple[int, list[EncodedStrip]]] = []
    start = 0
    while start < len(pool):
        width = next(width for width in WIDTHS if width >= pool[start].pixels.shape[1])
        size = batch_size(width, batch_columns)
        group = pool[start : start + size]
        groups.append((width, [group[row % len(group)] for row in range(size)]))
        start += size
    for index in random.permutation(len(groups)):
        width, group = groups[int(index)]
        yield collate(group, width)
