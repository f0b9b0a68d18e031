"""The shape of a drawn line: size, slant, slope, perspective and bends, all in one resampling."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image

from glyphline.training.datasets.dice import Dice
from glyphline.training.datasets.samples import Ink
from glyphline.training.effects.look import Look

_ROUND = 0.6  # of the height: width of a piece of a bent line
_MOST_PIECES = 12


def reshape(ink: Ink, scale: float, dice: Dice, look: Look) -> Ink:
    """Scales, stretches, slants, tilts and bends a drawing, and looks at it from aside.

    Args:
        ink: Drawing `(height, width)`.
        scale: Factor of its height.
        dice: Source of randomness.
        look: Greatest amounts.

    Returns:
        The drawing at its new size, with what room shear, slope and bend need.
    """
    height, width = ink.shape
    wear = look.wear
    shear = max(-wear.slant, min(wear.slant, dice.normal(wear.slant / 2)))
    slope = max(-wear.rotation, min(wear.rotation, dice.normal(wear.rotation / 2)))
    most = 0.4 * height / max(width, 1)
    slope = max(-most, min(most, slope))
    stretch = math.exp(dice.normal(look.squeeze))
    bend = 0.0
    waves = 0.0
    if dice.chance(look.curved):
        bend = dice.between(-0.35, 0.35) * height * min(1.0, width / (4 * height))
        waves = dice.pick((0.5, 0.5, 1.0))
    elastic = wear.elastic * height * dice.unit()
    corner = look.perspective * height if dice.chance(0.5) else 0.0

    side = math.ceil(abs(shear) * height / 2 + corner) + 1
    rise = math.ceil(abs(slope) * width / 2 + abs(bend) / 2 + 2 * elastic + corner) + 1
    canvas = np.zeros((height + 2 * rise, width + 2 * side), np.uint8)
    canvas[rise : rise + height, side : side + width] = ink
    tall, wide = canvas.shape
    size = (max(2, round(wide * scale * stretch)), max(4, round(tall * scale)))

    def source(x: float, y: float) -> tuple[float, float]:
        """Where a point of the canvas, given from its centre, is taken from."""
        return x + wide / 2 + shear * y, y + tall / 2 + slope * x

    jitter = [dice.between(-corner, corner) for _ in range(8)] if corner else [0.0] * 8
    image = Image.fromarray(canvas)
    if bend == 0 and elastic < 0.4:
        corners = ((-wide / 2, -tall / 2), (-wide / 2, tall / 2), (wide / 2, tall / 2), (wide / 2, -tall / 2))
        quad = [value for point in corners for value in source(*point)]
        quad = [value + moved for value, moved in zip(quad, jitter, strict=True)]
        if scale < 0.7:  # shrinking by more than bilinear interpolation sees is done beforehand
            image = image.resize((max(2, size[0]), max(4, size[1])), Image.Resampling.BILINEAR)
            factor = (image.width / wide, image.height / tall)
            quad = [value * factor[index % 2] for index, value in enumerate(quad)]
        return np.asarray(image.transform(size, Image.Transform.QUAD, quad, Image.Resampling.BILINEAR))

    pieces = max(2, min(_MOST_PIECES, round(wide / (_ROUND * height))))
    rows = []
    for piece in range(pieces + 1):
        x = wide * (piece / pieces - 0.5)
        phase = piece / pieces
        lift = bend * (
            math.sin(2 * math.pi * waves * phase) - 0.5 if waves < 1 else 0.5 * math.sin(2 * math.pi * phase)
        )
        top, bottom = source(x, -tall / 2), source(x, tall / 2)
        stir = [dice.normal(elastic) for _ in range(4)] if elastic else [0.0] * 4
        rows.append(
            (
                (top[0] + stir[0], top[1] + lift + stir[1]),
                (bottom[0] + stir[2], bottom[1] + lift + stir[3]),
            )
        )
    mesh = []
    for piece in range(pieces):
        box = (size[0] * piece // pieces, 0, size[0] * (piece + 1) // pieces, size[1])
        (left_top, left_bottom), (right_top, right_bottom) = rows[piece], rows[piece + 1]
        mesh.append((box, (*left_top, *left_bottom, *right_bottom, *right_top)))
    return np.asarray(image.transform(size, Image.Transform.MESH, mesh, Image.Resampling.BILINEAR))


def crop(ink: Ink, dice: Dice, look: Look) -> Ink:
    """Cuts a drawing out: tight, loose, or into the text; lines above and below may reach in.

    Args:
        ink: Drawing `(height, width)`.
        dice: Source of randomness.
        look: Probabilities and greatest margins.

    Returns:
        The drawing with its new margins.
    """
    used = ink > 24
    rows = np.flatnonzero(used.any(axis=1))
    columns = np.flatnonzero(used.any(axis=0))
    if rows.size == 0:
        return ink
    cropped = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    tall = cropped.shape[0]
    if dice.chance(look.wear.tight):
        above, below, before, after = (dice.whole(0, 1 + max(2, tall // 10)) for _ in range(4))
    else:
        loose = look.wear.loose * tall
        above, below = (round(loose * dice.unit() ** 2) + 1 for _ in range(2))
        before, after = (round((0.3 + look.wear.loose) * tall * dice.unit() ** 2) + 1 for _ in range(2))
    result = np.zeros((tall + above + below, cropped.shape[1] + before + after), np.uint8)
    result[above : above + tall, before : before + cropped.shape[1]] = cropped
    if dice.chance(look.neighbours):
        _let_neighbours_in(result, cropped, above, below, dice)
    if dice.chance(look.cropped) and tall > 14:
        cut = 1 + tall // 24
        result = result[cut:] if dice.chance(0.5) else result[:-cut]
    return result


def _let_neighbours_in(result: Ink, ink: Ink, above: int, below: int, dice: Dice) -> None:
    """Draws feet of the line above into the top margin, or heads of the line below into the bottom one."""
    tall, wide = ink.shape
    shift = dice.whole(0, max(1, wide))
    other = np.roll(ink, shift, axis=1)
    if dice.chance(0.5):
        other = other[:, ::-1]
    left = dice.whole(0, max(1, result.shape[1] - wide + 1))
    if dice.chance(0.6) and above > 2:
        seen = min(above - 1, dice.whole(1, max(2, tall // 4)))
        area = result[:seen, left : left + wide]
        np.maximum(area, other[tall - seen :, : area.shape[1]], out=area)
    if dice.chance(0.6) and below > 2:
        seen = min(below - 1, dice.whole(1, max(2, tall // 4)))
        area = result[result.shape[0] - seen :, left : left + wide]
        np.maximum(area, other[:seen, : area.shape[1]], out=area)
