"""Two strips of one source set side by side: longer texts than the source has by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from glyphline.models.alphabet import Alphabet
from glyphline.training.datasets.samples import Grey, Sample, SampleSource

_LEAST_SPAN = 24.0  # grey levels: a strip with less between its ground and its ink is not stretched to match another


@dataclass(frozen=True)
class JoinedStrips:
    """A source some of whose strips are two of another source's, side by side.

    Attributes:
        source: Draws the strips.
        share: Share of strips that are two, from 0 to 1.
        alphabet: What the recogniser reads. Where it has letters and a space, a space joins two texts, and as much room
            is between the strips; where it has not, as for digits alone, texts are joined directly and so are the
            strips. Where it is not known, a space joins.
    """

    source: SampleSource
    share: float
    alphabet: Alphabet | None = None

    def draw(self, random: np.random.Generator) -> Sample:
        """Returns one strip of the source, or two of them as one.

        Raises:
            UnusableSampleError: If one that was drawn cannot be used.
        """
        first = self.source.draw(random)
        if random.random() >= self.share:
            return first
        second = self.source.draw(random)
        joint = " " if first.text and second.text and self._spaced else ""
        least, most = (0.25, 0.8) if joint else (0.02, 0.25)
        gap = max(1, round(random.uniform(least, most) * first.pixels.shape[0]))
        pixels = set_side_by_side(first.pixels, second.pixels, gap, random)
        return Sample(pixels, first.text + joint + second.text, f"{first.source} + {second.source}")

    @property
    def _spaced(self) -> bool:
        if self.alphabet is None:
            return True
        return " " in self.alphabet.symbols and any(c.isalpha() for symbol in self.alphabet.symbols for c in symbol)


def set_side_by_side(first: Grey, second: Grey, gap: int, random: np.random.Generator) -> Grey:
    """Sets two pictures side by side as if they were one: of one height, one polarity and about one grey of paper.

    Args:
        first: Grey picture `(height, width)`; the result is as high.
        second: Grey picture; it is brought to that height, and to the grey levels of the first.
        gap: Columns between them, in which the paper of one turns into that of the other.
        random: Source of randomness.

    Returns:
        Grey picture `(height, width)`.
    """
    height = first.shape[0]
    if second.shape[0] != height:
        size = (max(1, round(second.shape[1] * height / second.shape[0])), height)
        second = np.asarray(Image.fromarray(second).resize(size, Image.Resampling.BILINEAR))
    ground, span = ground_and_span(first)
    other_ground, other_span = ground_and_span(second)
    scale = span / other_span
    # Not to the last grey level: two pieces of one page differ a little, too.
    stretch = np.sign(scale) * np.clip(abs(scale), 0.5, 2.0) * random.uniform(0.85, 1.15)
    target = ground + random.normal(0, 0.04) * abs(span)
    matched = np.clip((second - np.float32(other_ground)) * stretch + target, 0, 255)
    bridge = _bridge(first, matched, gap, random)
    return np.concatenate([first, bridge, matched.astype(np.uint8)], axis=1)


def ground_and_span(pixels: Grey) -> tuple[float, float]:
    """Estimates the grey level of a picture's paper, and how far its ink is from it: negative where ink is dark.

    Ink is the minority, so that the median is paper; its side of the median reaches further in the mean of cubes.
    """
    levels = np.sort(pixels.ravel()[:: max(1, pixels.size // 1500)]).astype(np.float32)
    last = len(levels) - 1
    ground = float(levels[last // 2])
    apart = levels - levels.mean()
    light = float((apart * apart * apart).sum()) > 0
    span = float(levels[round(last * (0.97 if light else 0.03))]) - ground
    if abs(span) < _LEAST_SPAN:
        span = _LEAST_SPAN if light else -_LEAST_SPAN
    return ground, span


def _bridge(first: Grey, second: NDArray[np.float32], gap: int, random: np.random.Generator) -> Grey:
    """Paper between two pictures, `(height, gap)`: ruled lines go on, ink at the edges does not."""
    ground, span = ground_and_span(first)

    def edge(columns: NDArray[np.float32]) -> NDArray[np.float32]:
        levels = np.median(columns, axis=1)
        return np.where(abs(levels - ground) < 0.5 * abs(span), levels, ground).astype(np.float32)

    left = edge(first[:, -4:].astype(np.float32))[:, None]
    right = edge(second[:, :4])[:, None]
    share = np.linspace(0, 1, gap + 2, dtype=np.float32)[None, 1:-1]
    paper = left + (right - left) * share
    grain = min(6.0, float(np.std(first[:2].astype(np.float32))))
    noise = random.standard_normal((first.shape[0], gap), np.float32) * np.float32(0.7 * grain)
    return np.asarray(np.clip(paper + noise, 0, 255), np.uint8)
