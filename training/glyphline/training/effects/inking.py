"""What befalls the ink: weight, pressure, dots, faded and rough print."""

from __future__ import annotations

import numpy as np
from PIL import Image

from glyphline.training.datasets.dice import Dice
from glyphline.training.datasets.samples import Ink
from glyphline.training.effects.ground import cut_tile, noise_tile, soft_tile


def reweigh(ink: Ink, dice: Dice) -> Ink:
    """Makes strokes thicker or thinner by up to a pixel."""
    if dice.chance(0.6):
        return _mix(ink, swell(ink, 1), dice.between(0.3, 1.0))
    return _mix(ink, 255 - swell(255 - ink, 1), dice.between(0.1, 0.5))


def press(ink: Ink, dice: Dice) -> Ink:
    """Lets strokes swell and thin along the line, and the ink run dry here and there, as a pen does."""
    height, width = ink.shape
    thick = swell(ink, 1).astype(np.float32)
    field = 0.5 + 0.5 * cut_tile(soft_tile(), height, width, dice)
    swollen = ink + (thick - ink) * field * np.float32(dice.between(0.3, 1.0))
    if dice.chance(0.5):
        swollen *= 1 - np.float32(dice.between(0.1, 0.45)) * (0.5 + 0.5 * cut_tile(soft_tile(), height, width, dice))
    return swollen.astype(np.uint8)


def as_dots(ink: Ink, dice: Dice) -> Ink:
    """Prints a line with the pins of a dot-matrix printer, or shows it on a matrix of lamps: 9 to 16 dots high."""
    height, width = ink.shape
    rows = dice.whole(9, 17)
    columns = max(3, round(width * rows / height * dice.between(0.9, 1.3)))
    grid = np.asarray(Image.fromarray(ink).resize((columns, rows), Image.Resampling.BOX))
    cell = 5 if height < 80 else 6
    reach = np.abs(np.arange(cell) - (cell - 1) / 2)
    radius = dice.between(0.4, 0.7) * cell
    dot = np.clip(radius + 0.5 - np.hypot(reach[:, None], reach[None]), 0, 1)
    on = np.where(grid > dice.between(70, 115), 255.0, 0.0)
    big = np.kron(on, dot).astype(np.uint8)
    return np.asarray(Image.fromarray(big).resize((width, height), Image.Resampling.BILINEAR))


def fade(ink: Ink, dice: Dice) -> Ink:
    """Fades a thermal print: unevenly, with rows or columns of the head that dropped out, and with specks."""
    height, width = ink.shape
    faded = ink * (1 - np.float32(dice.between(0.0, 0.6)) * (0.5 + 0.5 * cut_tile(soft_tile(), height, width, dice)))
    if dice.chance(0.5):  # dots of the head that do not heat leave light rows
        period = dice.whole(2, 9)
        start = dice.whole(0, period)
        faded[start::period] *= np.float32(dice.between(0.3, 0.85))
    if dice.chance(0.25):  # rollers leave light bands across
        start = dice.whole(0, max(1, width))
        faded[:, start : start + max(1, height // 8)] *= np.float32(dice.between(0.3, 0.8))
    if dice.chance(0.5):
        specks = cut_tile(noise_tile(), height, width, dice)
        faded *= np.clip(specks + np.float32(dice.between(0.9, 2.0)), np.float32(0.1), 1)
    return faded.astype(np.uint8)


def roughen(ink: Ink, dice: Dice) -> Ink:
    """Makes edges rough and hard, as copies of copies and coarse scans have them."""
    height, width = ink.shape
    grain = cut_tile(noise_tile(), height, width, dice)
    rough = ink + grain * np.float32(dice.between(15, 60)) * (ink > 8)
    slope = np.float32(dice.between(1.5, 4.0))
    middle = np.float32(dice.between(105, 150))
    return np.asarray(np.clip((rough - middle) * slope + 128, 0, 255), np.uint8)


def swell(ink: Ink, pixels: int) -> Ink:
    """Returns a drawing whose strokes reach so many pixels further, for outlines and blocks.

    The greatest of each pixel's neighbours, row by row and then column by column: much quicker than a rank filter.
    """
    for _ in range(pixels):
        wide = ink.copy()
        np.maximum(wide[:, 1:], ink[:, :-1], out=wide[:, 1:])
        np.maximum(wide[:, :-1], ink[:, 1:], out=wide[:, :-1])
        ink = wide.copy()
        np.maximum(ink[1:], wide[:-1], out=ink[1:])
        np.maximum(ink[:-1], wide[1:], out=ink[:-1])
    return ink


def moved(ink: Ink, right: int, down: int) -> Ink:
    """Returns a drawing moved by some pixels, of the same size; what leaves it is lost."""
    height, width = ink.shape
    result = np.zeros_like(ink)
    result[max(0, down) : height + min(0, down), max(0, right) : width + min(0, right)] = ink[
        max(0, -down) : height + min(0, -down), max(0, -right) : width + min(0, -right)
    ]
    return result


def _mix(first: Ink, second: Ink, share: float) -> Ink:
    mixed = first * np.float32(1 - share)
    mixed += second * np.float32(share)
    return np.asarray(mixed, np.uint8)
