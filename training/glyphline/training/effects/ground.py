"""What text stands on: textures out of a bank that is made once, light that falls off, edges, frames, blots."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from glyphline.training.datasets.dice import Dice

Field = NDArray[np.float32]
"""Numbers about 0 for each pixel, `(height, width)`."""

PAPERS = 8
"""So many of the textures, the first, are like paper, plaster or cloth: they have nothing that is as strong as ink."""

_HEIGHT, _WIDTH = 192, 1280
_SEED = 20260


@lru_cache(maxsize=1)
def noise_tile() -> Field:
    """Normal noise of deviation 1, `(192, 1280)`, the same in every process."""
    return np.random.default_rng(_SEED).standard_normal((_HEIGHT, _WIDTH), np.float32)


@lru_cache(maxsize=1)
def soft_tile() -> Field:
    """A field in [-1, 1] that changes slowly, over some 40 pixels."""
    return _clouds(np.random.default_rng(_SEED + 1), 48, 48)


def cut_tile(tile: Field, height: int, width: int, dice: Dice) -> Field:
    """Cuts a piece out of a tile anywhere, turned over by chance; a tile that is too small is repeated.

    Args:
        tile: The tile.
        height: Rows of the piece.
        width: Columns of the piece.
        dice: Source of randomness.

    Returns:
        Field `(height, width)`; it may be a view of the tile, and is not to be written to.
    """
    tall, wide = tile.shape
    if height > tall or width > wide:
        tile = np.tile(tile, (-(-height // tall), -(-width // wide)))
        tall, wide = tile.shape
    top, left = dice.whole(0, tall - height + 1), dice.whole(0, wide - width + 1)
    piece = tile[top : top + height, left : left + width]
    turn = dice.unit()
    if turn < 0.25:
        return piece[::-1]
    return piece[:, ::-1] if turn < 0.5 else piece


def _clouds(random: np.random.Generator, across: float, down: float) -> Field:
    """Smooth noise in [-1, 1] whose grains are so many pixels wide and high."""
    small = random.random((max(2, round(_HEIGHT / down)), max(2, round(_WIDTH / across))))
    image = Image.fromarray((small * 255).astype(np.uint8)).resize((_WIDTH, _HEIGHT), Image.Resampling.BICUBIC)
    field: Field = np.asarray(image, np.float32) / np.float32(127.5) - 1
    return field


def _even(field: NDArray[np.float64] | Field) -> Field:
    """Brings a field to a mean of 0 and its greatest values to about 1."""
    centred = field - field.mean()
    return np.asarray(np.clip(centred / max(1e-6, float(np.percentile(np.abs(centred), 98))), -1, 1), np.float32)


@lru_cache(maxsize=1)
def texture_tiles() -> tuple[Field, ...]:
    """The bank of textures: some forty tiles `(192, 1280)` in [-1, 1], the same in every process."""
    random = np.random.default_rng(_SEED + 2)
    y, x = np.mgrid[0:_HEIGHT, 0:_WIDTH].astype(np.float64)
    tiles: list[Field] = []
    for size in (3.0, 6.0, 14.0, 30.0):  # plaster, stone, rust: grains within grains
        rough = sum(_clouds(random, size * 2**n, size * 2**n) * 2**n for n in range(3))
        tiles.append(_even(np.asarray(rough)))
    fibres = random.standard_normal((_HEIGHT, _WIDTH)).astype(np.float32)
    for radius in (0.7, 1.2):  # paper
        image = Image.fromarray(((fibres * 40) + 128).clip(0, 255).astype(np.uint8))
        tiles.append(_even(np.asarray(image.filter(ImageFilter.GaussianBlur(radius)), np.float64)))
    for _ in range(6):  # stripes: cloth, corrugated metal, blinds
        angle, period = random.uniform(0, math.pi), random.uniform(4, 26)
        wave = np.sin((x * math.cos(angle) + y * math.sin(angle)) * 2 * math.pi / period)
        tiles.append(_even(np.sign(wave) if random.random() < 0.4 else wave))
    for across, down in ((120, 4), (80, 6), (5, 90), (60, 3)):  # wood and brushed metal
        tiles.append(_even(_clouds(random, across, down) + 0.4 * _clouds(random, across / 2, down / 2)))
    for size in (10, 20, 40, 70):  # blots with hard edges
        tiles.append(_even(np.sign(_clouds(random, size, size) - 0.2).astype(np.float64)))
    for rows, columns in ((12, 28), (20, 44), (34, 34)):  # bricks and tiles
        shift = (y // rows % 2) * columns / 2
        joint = (y % rows < 1.6) | ((x + shift) % columns < 1.6)
        tiles.append(_even(np.where(joint, -1.0, 0.4) + 0.4 * _clouds(random, 30, 12)))
    for period in (4.0, 7.0):  # halftone
        tiles.append(_even(np.sin(x * 2 * math.pi / period) * np.sin(y * 2 * math.pi / period)))
    for _ in range(10):  # things: leaves, windows, people, other signs
        image = Image.new("L", (_WIDTH, _HEIGHT), int(random.integers(256)))
        pen = ImageDraw.Draw(image)
        for _ in range(int(random.integers(60, 260))):
            left, top = random.uniform(-40, _WIDTH), random.uniform(-40, _HEIGHT)
            wide, tall = random.uniform(3, 160), random.uniform(3, 90)
            grey = int(random.integers(256))
            kind = random.random()
            if kind < 0.4:
                pen.rectangle((left, top, left + wide, top + tall), fill=grey)
            elif kind < 0.7:
                pen.ellipse((left, top, left + wide, top + tall), fill=grey)
            else:
                pen.line((left, top, left + wide, top + tall * random.uniform(-1, 1)), fill=grey, width=3)
        image = image.filter(ImageFilter.GaussianBlur(random.uniform(0.5, 4.0)))
        tiles.append(_even(np.asarray(image, np.float64)))
    return tuple(tiles)


def slope_of_light(height: int, width: int, dice: Dice) -> Field:
    """Light that falls off in one direction, or about a spot: from -1 to 1, `(height, width)`."""
    along = np.linspace(-1, 1, width, dtype=np.float32)[None]
    down = np.linspace(-1, 1, height, dtype=np.float32)[:, None]
    if dice.chance(0.6):
        turn = dice.between(0, 2 * math.pi)
        share = np.float32(math.cos(turn))
        return along * share + down * np.float32(math.copysign(1 - abs(share), math.sin(turn)))
    centre, reach = np.float32(dice.between(-1, 1)), np.float32(dice.between(0.3, 1.2))
    spot = np.clip(1 - np.abs(along - centre) / reach, 0, 1)
    return np.asarray(spot * (1 - 0.5 * np.abs(down)) * 2 - 1, np.float32)


def clutter(height: int, width: int, dice: Dice) -> Field:
    """What is about a sign: the edge of another ground, a frame, a bar, blots; from -1 to 1, `(height, width)`."""
    field = np.zeros((height, width), np.float32)
    kind = dice.unit()
    level = np.float32(dice.pick((-1.0, 1.0)) * dice.between(0.4, 1.0))
    if kind < 0.35:  # the edge of another ground
        along = np.arange(width, dtype=np.float32)[None]
        down = np.arange(height, dtype=np.float32)[:, None]
        lean = np.float32(dice.normal(0.25))
        if dice.chance(0.5):
            place = height * (dice.between(0.0, 0.2) if dice.chance(0.5) else dice.between(0.8, 1.0))
            beyond = down - np.float32(place) + lean * np.float32(0.2) * (along - width / 2) * height / max(width, 1)
        else:
            place = width * (dice.between(0.0, 0.12) if dice.chance(0.5) else dice.between(0.88, 1.0))
            beyond = along - np.float32(place) + lean * (down - height / 2)
        if dice.chance(0.5):
            beyond = -beyond
        field += level * np.clip(beyond + np.float32(0.5), 0, 1)
    elif kind < 0.65:  # a frame, or one side of it
        thick = 1 + dice.whole(0, max(1, height // 12))
        inset = dice.whole(0, max(1, height // 12))
        sides = (dice.chance(0.6), dice.chance(0.6), dice.chance(0.5), dice.chance(0.5))
        if sides[0]:
            field[inset : inset + thick] = level
        if sides[1]:
            field[max(0, height - inset - thick) : height - inset] = level
        if sides[2]:
            field[:, inset : inset + thick] = level
        if sides[3]:
            field[:, max(0, width - inset - thick) : width - inset] = level
    else:  # things beside and behind
        tile = texture_tiles()[-1 - dice.whole(0, 10)]
        field += cut_tile(tile, height, width, dice) * np.float32(dice.between(0.3, 0.8))
    return field
