"""What a camera, a scanner or a copier makes of a picture, and whether its text can still be seen."""

from __future__ import annotations

import io
import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from glyphline.training.datasets.dice import Dice
from glyphline.training.datasets.samples import Grey, Ink
from glyphline.training.effects.ground import cut_tile, noise_tile

LEAST_CONTRAST = 18.0
"""Grey levels between ink and the ground about it, below which a text is taken for invisible."""

LEAST_CLEARNESS = 1.0
"""The same difference in standard deviations of the ground."""


def shrink(ink: Ink, rows: int) -> Ink:
    """Brings a drawing to so many rows, each pixel the mean of what it covers."""
    height, width = ink.shape
    size = (max(2, round(width * rows / height)), rows)
    return np.asarray(Image.fromarray(ink).resize(size, Image.Resampling.BILINEAR))


def enlarge(pixels: Grey, rows: int, dice: Dice) -> Grey:
    """Brings a picture to more rows, as a viewer or a scanner does: smooth, or in squares now and then."""
    height, width = pixels.shape
    manner = dice.pick(
        (Image.Resampling.BILINEAR, Image.Resampling.BICUBIC, Image.Resampling.BICUBIC, Image.Resampling.NEAREST)
    )
    return np.asarray(Image.fromarray(pixels).resize((max(2, round(width * rows / height)), rows), manner))


def defocus(pixels: Grey, far_out: float, dice: Dice) -> Grey:
    """Blurs a picture, the more the higher it is, at most to what can be read.

    Args:
        pixels: The picture.
        far_out: Probability that letters are left with their bulk alone, and not with all of their strokes.
        dice: Source of randomness.
    """
    most = max(0.5, (0.055 if dice.chance(far_out) else 0.03) * pixels.shape[0])
    blur = ImageFilter.BoxBlur if dice.chance(0.6) else ImageFilter.GaussianBlur
    return np.asarray(Image.fromarray(pixels).filter(blur(dice.between(0.3, most))))


def shake(pixels: Grey, dice: Dice) -> Grey:
    """Moves the camera while the picture is taken: the mean of copies moved along a short line."""
    reach = dice.between(1.5, max(2.0, 0.1 * pixels.shape[0]))
    turn = dice.between(0, math.pi)
    steps = max(2, math.ceil(reach))
    total = np.zeros(pixels.shape, np.float32)
    for step in range(steps):
        along = reach * (step / (steps - 1) - 0.5)
        right, down = round(along * math.cos(turn)), round(along * math.sin(turn) * 0.6)
        total += _shifted(pixels, right, down)
    return (total / np.float32(steps)).astype(np.uint8)


def _shifted(pixels: Grey, right: int, down: int) -> Grey:
    """A picture moved by a few pixels; its edges go on."""
    height, width = pixels.shape
    rows = np.clip(np.arange(height) - down, 0, height - 1)
    columns = np.clip(np.arange(width) - right, 0, width - 1)
    return pixels[rows[:, None], columns[None]]


def grain(height: int, width: int, amount: float, dice: Dice) -> NDArray[np.float32]:
    """Noise of so many grey levels, `(height, width)`."""
    return cut_tile(noise_tile(), height, width, dice) * np.float32(amount)


def as_jpeg(pixels: Grey, quality: int) -> Grey:
    """Encodes and decodes a picture as JPEG."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=quality)
    return np.asarray(Image.open(buffer))


def is_visible(pixels: Grey, ink: Ink) -> bool:
    """Tells whether a text can be seen: in every stretch of it, ink is apart from the ground about it.

    A stretch is as wide as the picture is high, about two letters.

    Args:
        pixels: The picture `(height, width)`.
        ink: Where its text was drawn, of the same size.
    """
    height, width = pixels.shape
    starts = np.arange(0, max(1, width - height // 2), height)
    step = max(1, height // 20)  # every n-th row tells as much
    pixels, ink = pixels[::step], ink[::step]
    least = 0.01 * height * height / step
    inside = ink > 140
    outside = ink < 40
    levels = pixels.astype(np.float32)

    def sums(values: NDArray[np.float32] | NDArray[np.bool_]) -> NDArray[np.float32]:
        return np.add.reduceat(values.sum(axis=0, dtype=np.float32), starts)

    inked, bare = sums(inside), sums(outside)
    if float(inked.sum()) < 4:  # strokes thinner than a pixel: what there is of them counts
        inside = ink > 50
        inked = sums(inside)
    some = (inked >= max(3.0, least)) & (bare >= 3)
    if not some.any():
        return bool(float(inked.sum()) > 0)
    on = sums(levels * inside)[some] / inked[some]
    off = sums(levels * outside)[some] / bare[some]
    spread = np.sqrt(np.maximum(sums(levels * levels * outside)[some] / bare[some] - off * off, 0))
    apart = on - off
    if not (np.abs(apart) >= LEAST_CONTRAST).all() or not (np.abs(apart) >= LEAST_CLEARNESS * spread).all():
        return False
    return bool((apart > 0).all() or (apart < 0).all())  # ink that is lighter here and darker there is lost between
