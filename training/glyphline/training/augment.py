"""From a clean drawing to a picture that a camera or a scanner might have taken of it.

Every function is pure but for the random generator that it is given. A drawing (`Ink`) has no background; `warp` bends
it, `thicken` changes the pen, `photograph` puts it on paper and degrades the picture.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from glyphline.training.datasets.samples import Grey, Ink, ink_box


@dataclass(frozen=True, slots=True)
class Wear:
    """How much a strip is degraded; every number is a probability or a greatest amount.

    Attributes:
        slant: Greatest shear, in pixels of shift a pixel of height.
        rotation: Greatest slope of the line, in radians.
        stretch: Standard deviation of the logarithm by which a real strip is widened; about half of it heightens it.
        elastic: Standard deviation of the local displacement, as a share of the height.
        lines: Probability of ruled lines, box edges or bars.
        inverted: Probability of light ink on dark ground.
        tight: Probability that the margins are cropped to the ink.
        loose: Greatest margin above and below, as a share of the ink's height.
        grime: Factor of the probabilities of fading, shadow, blur, noise, compression and low resolution.
    """

    slant: float = 0.45
    rotation: float = 0.05
    stretch: float = 0.13
    elastic: float = 0.03
    lines: float = 0.3
    inverted: float = 0.3
    tight: float = 0.2
    loose: float = 0.8
    grime: float = 1.0


def warp(pixels: Grey, random: np.random.Generator, wear: Wear, ground: int = 0) -> Grey:
    """Shears, rotates and bends a drawing or picture in one resampling, through a mesh whose corners are moved.

    Args:
        pixels: Drawing or picture `(height, width)`.
        random: Source of randomness.
        wear: Greatest amounts.
        ground: What shows beyond its edges.

    Returns:
        The same, wider and higher by what shear and slope need.
    """
    height, width = pixels.shape
    shear = float(np.clip(random.normal(0, wear.slant / 2), -wear.slant, wear.slant))
    slope = float(np.clip(random.normal(0, wear.rotation / 2), -wear.rotation, wear.rotation))
    slope = float(np.clip(slope, -0.5 * height / max(width, 1), 0.5 * height / max(width, 1)))
    side = int(np.ceil(abs(shear) * height / 2)) + 2
    rise = int(np.ceil(abs(slope) * width / 2)) + 2
    canvas = np.pad(pixels, ((rise, rise), (side, side)), constant_values=ground)
    tall, wide = canvas.shape
    columns = max(1, round(wide / (0.6 * height)))
    rows = 2
    x = np.linspace(0, wide, columns + 1)
    y = np.linspace(0, tall, rows + 1)
    grid_x, grid_y = np.meshgrid(x, y)
    bend = wear.elastic * height * random.random()
    from_x = grid_x + shear * (grid_y - tall / 2) + random.normal(0, 1, grid_x.shape) * bend
    from_y = grid_y + slope * (grid_x - wide / 2) + random.normal(0, 1, grid_y.shape) * bend
    mesh = []
    for row in range(rows):
        for column in range(columns):
            box = (round(x[column]), round(y[row]), round(x[column + 1]), round(y[row + 1]))
            corners = ((row, column), (row + 1, column), (row + 1, column + 1), (row, column + 1))
            mesh.append((box, tuple(value for corner in corners for value in (from_x[corner], from_y[corner]))))
    size = (wide, tall)
    image = Image.fromarray(canvas)
    return np.asarray(image.transform(size, Image.Transform.MESH, mesh, Image.Resampling.BILINEAR, fillcolor=ground))


def thicken(ink: Ink, random: np.random.Generator) -> Ink:
    """Changes the width of the strokes by up to a pixel or so, thinner or thicker."""
    choice = random.random()
    if choice < 0.5:
        return ink
    image = Image.fromarray(ink)
    other = np.asarray(
        image.filter(ImageFilter.MaxFilter(3) if choice < 0.75 else ImageFilter.MinFilter(3)), np.float32
    )
    share = random.uniform(0.2, 1.0) if choice < 0.75 else random.uniform(0.1, 0.6)
    return (share * other + (1 - share) * ink).astype(np.uint8)


def with_margins(ink: Ink, random: np.random.Generator, wear: Wear) -> Ink:
    """Crops a drawing to its ink and gives it new margins, from none to loose, with the text anywhere in them."""
    top, bottom, left, right = ink_box(ink)
    cropped = ink[top:bottom, left:right]
    tall = cropped.shape[0]
    if random.random() < wear.tight:
        above, below, before, after = (int(value) for value in random.integers(0, 3, 4))
    else:
        above, below = (int(value) for value in random.random(2) ** 2 * wear.loose * tall + 1)
        before, after = (int(value) for value in random.random(2) ** 2 * 1.2 * tall + 1)
    return np.pad(cropped, ((above, below), (before, after)))


def draw_lines(ink: Ink, random: np.random.Generator) -> Ink:
    """Adds what stands around text on forms and in registers: ruled lines, box edges, column rules, bars."""
    height, width = ink.shape
    ink = ink.copy()
    strength = int(random.integers(60, 256))

    def stroke(rows: slice, columns: slice) -> None:
        ink[rows, columns] = np.maximum(ink[rows, columns], strength)

    if random.random() < 0.5:  # ruled lines
        gap = int(random.integers(height // 3 + 1, height + 1))
        thick = 1 + int(random.random() < 0.2)
        for y in range(int(random.integers(0, gap)), height, gap):
            stroke(slice(y, y + thick), slice(None))
    if random.random() < 0.35:  # box edges and column rules, at the ends of the strip
        thick = int(random.integers(1, 4))
        if random.random() < 0.6:
            x = int(random.integers(0, max(1, min(width // 8, height // 4))))
            stroke(slice(None), slice(x, x + thick))
        if random.random() < 0.6:
            x = width - 1 - int(random.integers(0, max(1, min(width // 8, height // 4))))
            stroke(slice(None), slice(max(0, x - thick), x))
    if random.random() < 0.2:  # top and bottom edge of a box
        thick = int(random.integers(1, 3))
        stroke(slice(0, thick), slice(None))
        stroke(slice(height - thick, height), slice(None))
    if random.random() < 0.15:  # the dark edge of a page or of a window
        wide = int(random.integers(2, max(3, height // 4)))
        columns = slice(0, wide) if random.random() < 0.5 else slice(width - wide, width)
        ink[:, columns] = 255
    return ink


def with_neighbours(ink: Ink, random: np.random.Generator) -> Ink:
    """Lets the feet or heads of the lines above and below show at the edges, as a crop of a page does."""
    height, width = ink.shape
    visible = int(random.integers(1, max(2, height // 7)))
    top, bottom, left, right = ink_box(ink)
    other = ink[top:bottom, left:right]
    if other.shape[0] <= visible:
        return ink
    shift = int(random.integers(0, width))
    ink = ink.copy()
    columns = min(other.shape[1], width - shift)
    if random.random() < 0.5:
        ink[:visible, shift : shift + columns] = np.maximum(
            ink[:visible, shift : shift + columns], other[-visible:, :columns]
        )
    else:
        ink[-visible:, shift : shift + columns] = np.maximum(
            ink[-visible:, shift : shift + columns], other[:visible, :columns]
        )
    return ink


def smooth_field(random: np.random.Generator, height: int, width: int) -> NDArray[np.float32]:
    """Returns a slowly varying field in [-1, 1], `(height, width)`: shadow, stains, uneven light."""
    rows, columns = 2, int(random.integers(2, 6))
    small = Image.fromarray((random.random((rows, columns)) * 255).astype(np.uint8))
    field = np.asarray(small.resize((width, height), Image.Resampling.BICUBIC), np.float32)
    return field / np.float32(127.5) - 1


def glare(height: int, width: int, random: np.random.Generator) -> NDArray[np.float32]:
    """Returns light or shade that falls on every cell of a counter alike: a reflection, a lamp, the edge of the window.

    Args:
        height: Height of a cell.
        width: Width of a cell.
        random: Source of randomness.

    Returns:
        What is added to each cell's grey `(height, width)`, mostly at its top or bottom; up to 180 either way.
    """
    rows = np.linspace(0, 1, height, dtype=np.float32)[:, None]
    band = np.clip(1 - rows / random.uniform(0.1, 0.45), 0, 1)  # strongest at the top
    if random.random() < 0.6:
        band = band[::-1]
    spots = np.clip(smooth_field(random, height, width) + random.uniform(0, 0.8), 0, 1)
    strength = random.uniform(30, 180) * (1 if random.random() < 0.7 else -1)
    return np.asarray(strength * band * spots, np.float32)


def photograph(ink: Ink, random: np.random.Generator, wear: Wear) -> Grey:
    """Puts a drawing on paper (or a display, or a wheel) and takes its picture.

    Args:
        ink: Drawing `(height, width)`.
        random: Source of randomness.
        wear: Probabilities and greatest amounts.

    Returns:
        Grey picture of the same size.
    """
    height, width = ink.shape
    if random.random() < wear.lines:
        ink = draw_lines(ink, random)
    coverage = ink.astype(np.float32) / 255
    paper = random.uniform(120, 255) if random.random() < 0.7 else random.uniform(60, 160)
    contrast = random.uniform(0.25, 1.0) if random.random() < 0.3 * wear.grime else random.uniform(0.6, 1.0)
    pen = paper * (1 - contrast)
    if random.random() < 0.25 * wear.grime:  # ink that runs dry, or fades
        coverage *= 1 - 0.5 * random.random() * np.clip(smooth_field(random, height, width), 0, 1)
    grey = paper + (pen - paper) * coverage
    if random.random() < 0.6 * wear.grime:
        grey += smooth_field(random, height, width) * random.uniform(0, 0.25) * (paper - pen)
    if random.random() < 0.35 * wear.grime:
        blurred = Image.fromarray(np.clip(grey, 0, 255).astype(np.uint8))
        grey = np.asarray(
            blurred.filter(ImageFilter.GaussianBlur(random.uniform(0.3, max(0.4, 0.03 * height)))), np.float32
        )
    if random.random() < 0.6 * wear.grime:
        grey = grey + random.normal(0, random.uniform(0.5, 0.12 * (paper - pen) + 1), grey.shape).astype(np.float32)
    if random.random() < wear.inverted:
        grey = 255 - grey
    pixels = np.clip(grey, 0, 255).astype(np.uint8)
    if random.random() < 0.15 * wear.grime:
        pixels = as_jpeg(pixels, int(random.integers(25, 90)))
    if random.random() < 0.1 * wear.grime:
        pixels = as_low_resolution(pixels, random.uniform(0.45, 0.9))
    if random.random() < 0.04 * wear.grime:
        pixels = np.where(pixels >= (int(pixels.min()) + int(pixels.max())) // 2, 255, 0).astype(np.uint8)
    return pixels


def as_jpeg(pixels: Grey, quality: int) -> Grey:
    """Encodes and decodes a picture as JPEG."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=quality)
    return np.asarray(Image.open(buffer))


def as_low_resolution(pixels: Grey, share: float) -> Grey:
    """Shrinks a picture to `share` of its size and brings it back."""
    image = Image.fromarray(pixels)
    small = image.resize((max(4, round(image.width * share)), max(8, round(image.height * share))))
    return np.asarray(small.resize(image.size, Image.Resampling.BILINEAR))


def rephotograph(pixels: Grey, random: np.random.Generator, wear: Wear) -> Grey:
    """Varies a real picture as far as its text stays true: geometry, light, contrast, blur, noise, polarity.

    Args:
        pixels: Grey picture `(height, width)`.
        random: Source of randomness.
        wear: Probabilities and greatest amounts.

    Returns:
        Grey picture, of about the same size.
    """
    edge = int(np.median(np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])))
    height, width = pixels.shape
    image = Image.fromarray(pixels)
    if random.random() < 0.8:
        stretch_x, stretch_y = np.exp(random.normal(0, wear.stretch)), np.exp(random.normal(0, wear.stretch * 6 / 13))
        size = (max(8, round(width * stretch_x)), max(8, round(height * stretch_y)))
        stretched = np.asarray(image.resize(size, Image.Resampling.BILINEAR))
        image = Image.fromarray(warp(stretched, random, wear, ground=edge))
    if random.random() < 0.3 * wear.grime:
        choice = random.random()
        if choice < 0.4:
            image = image.filter(ImageFilter.GaussianBlur(random.uniform(0.3, 1.3)))
        elif choice < 0.7:
            image = Image.blend(image, image.filter(ImageFilter.MinFilter(3)), random.uniform(0.2, 0.8))
        else:
            image = Image.blend(image, image.filter(ImageFilter.MaxFilter(3)), random.uniform(0.1, 0.4))
    grey: NDArray[np.float32] = np.asarray(image, np.float32)
    if random.random() < 0.5 * wear.grime:
        grey = grey + smooth_field(random, image.height, image.width) * random.uniform(0, 25)
    if random.random() < 0.5 * wear.grime:
        middle = float(grey.mean())
        grey = (grey - middle) * np.float32(random.uniform(0.6, 1.2)) + np.float32(middle + random.uniform(-25, 25))
    if random.random() < 0.5 * wear.grime:
        grey = grey + random.normal(0, random.uniform(0.5, 8), grey.shape).astype(np.float32)
    if random.random() < wear.inverted:
        grey = 255 - grey
    pixels = np.clip(grey, 0, 255).astype(np.uint8)
    return as_jpeg(pixels, int(random.integers(25, 90))) if random.random() < 0.1 * wear.grime else pixels
