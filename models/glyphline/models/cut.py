"""Lines cut from the picture of a page, by their polygon or their box: the same for training and for reading."""

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw

from glyphline.models.errors import ImageError
from glyphline.models.grey import GreyArray
from glyphline.models.image import ImageLimits

__all__ = ["PAGE_LIMITS", "Points", "baseline_box", "cut_polygon", "scaled"]

Points = tuple[tuple[float, float], ...]
"""Corners of a polygon, or points of a line: (x, y) in pixels of the page."""

PAGE_LIMITS = ImageLimits(max_bytes=256 * 2**20, max_pixels=200_000_000)
"""Pages are larger than strips."""


def scaled(polygon: Points, size: tuple[float, float], shape: tuple[int, ...], name: str = "the page") -> Points:
    """Takes a polygon to the resolution of the picture at hand.

    Args:
        polygon: Points on the page as it was when they were drawn.
        size: Width and height of that page; (0, 0) where they are not known.
        shape: Height and width of the picture.
        name: The page, for messages.

    Raises:
        ImageError: If the picture has other proportions, and so can't be the same page.
    """
    width, height = size
    if width <= 0 or height <= 0 or (width, height) == (shape[1], shape[0]):
        return polygon
    across, down = shape[1] / width, shape[0] / height
    if abs(across / down - 1) > 0.02:
        raise ImageError(
            f"{name} is {shape[1]} x {shape[0]}, and its lines were drawn on a page of {width:g} x {height:g},"
            " which is no other resolution of it"
        )
    return tuple((x * across, y * down) for x, y in polygon)


def cut_polygon(page: GreyArray, polygon: Points, name: str = "the page") -> GreyArray:
    """Cuts a polygon from a page.

    Args:
        page: Grey levels `(height, width)`.
        polygon: Corners; with two, the box between them.
        name: The page, for messages.

    Returns:
        The polygon's box, as far as it is on the page, `(height, width)`. What is in the box and not in the polygon has
        the median grey of the polygon, which is the grey of the paper there.

    Raises:
        ImageError: If nothing of the polygon is on the page.
    """
    x = np.array([point[0] for point in polygon])
    y = np.array([point[1] for point in polygon])
    left, right = max(0, int(np.floor(x.min()))), min(page.shape[1], int(np.ceil(x.max())) + 1)
    top, bottom = max(0, int(np.floor(y.min()))), min(page.shape[0], int(np.ceil(y.max())) + 1)
    if left >= right or top >= bottom:
        raise ImageError(f"{name} is {page.shape[1]} x {page.shape[0]}: a line from {polygon[0]} on is not on it")
    box = page[top:bottom, left:right]
    if len(polygon) == 2:
        return box.copy()
    mask = Image.new("L", (right - left, bottom - top))
    ImageDraw.Draw(mask).polygon([(px - left, py - top) for px, py in polygon], fill=1, outline=1)
    inside = np.asarray(mask, np.bool_)
    return np.where(inside, box, np.uint8(np.median(box[inside]))).astype(np.uint8)


def baseline_box(baselines: Sequence[Points], number: int) -> Points | None:
    """Makes a box of a line that has no outline: around its baseline, as high as lines of the page are apart.

    Args:
        baselines: The baselines of all lines of the page.
        number: The line's place among them.

    Returns:
        Two corners: three quarters of the distance above the baseline, one quarter below. None if the page has no
        other line to tell the distance.
    """
    middles = np.array([np.mean([point[1] for point in line]) for line in baselines])
    gaps = np.diff(np.sort(middles))
    gaps = gaps[gaps > 4]
    if gaps.size == 0:
        return None
    pitch = float(np.median(gaps))
    x = [point[0] for point in baselines[number]]
    y = [point[1] for point in baselines[number]]
    return ((min(x), min(y) - 0.75 * pitch), (max(x), max(y) + 0.25 * pitch))
