"""Lines cut from the picture of a page, by their polygon or their box."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from glyphline.models.image import ImageLimits, read_image
from glyphline.training.datasets.readers.item import PICTURE_SUFFIXES, FilePicture, encode_png
from glyphline.training.datasets.samples import Grey
from glyphline.training.errors import DataError

Points = tuple[tuple[float, float], ...]
"""Corners of a polygon, or points of a line: (x, y) in pixels of the page."""

PAGE_LIMITS = ImageLimits(max_bytes=256 * 2**20, max_pixels=200_000_000)
"""Pages are larger than strips."""


@dataclass(frozen=True, slots=True)
class PagePicture:
    """A line of a page.

    Attributes:
        page: The page's picture.
        polygon: The line's outline; with two corners, the box between them.
        size: Width and height of the page that the outline was drawn on; (0, 0) where it is not stated. A picture of
            the same shape but another size is taken for the page at another resolution.
    """

    page: Path
    polygon: Points
    size: tuple[float, float] = (0.0, 0.0)

    def load(self) -> Grey:
        """Cuts the line from the page; what its box has outside of the polygon becomes paper."""
        page = _load_page(self.page)
        return cut_polygon(page, _scaled(self.polygon, self.size, page.shape, self.page), str(self.page))

    def content(self) -> bytes:
        """Returns the cut line as PNG."""
        return encode_png(self.load())


@lru_cache(maxsize=2)
def _load_page(path: Path) -> Grey:
    """Decodes a page; the last two are kept, as one's lines are mostly asked for in a row."""
    return read_image(FilePicture(path).content(), PAGE_LIMITS).pixels


def _scaled(polygon: Points, size: tuple[float, float], shape: tuple[int, ...], path: Path) -> Points:
    width, height = size
    if width <= 0 or height <= 0 or (width, height) == (shape[1], shape[0]):
        return polygon
    across, down = shape[1] / width, shape[0] / height
    if abs(across / down - 1) > 0.02:
        raise DataError(
            f"{path} is {shape[1]} x {shape[0]}, and its lines were drawn on a page of {width:g} x {height:g},"
            " which is no other resolution of it"
        )
    return tuple((x * across, y * down) for x, y in polygon)


def cut_polygon(page: Grey, polygon: Points, name: str = "the page") -> Grey:
    """Cuts a polygon from a page.

    Args:
        page: Grey levels `(height, width)`.
        polygon: Corners; with two, the box between them.
        name: The page, for messages.

    Returns:
        The polygon's box, as far as it is on the page, `(height, width)`. What is in the box and not in the polygon has
        the median grey of the polygon, which is the grey of the paper there.

    Raises:
        DataError: If nothing of the polygon is on the page.
    """
    x = np.array([point[0] for point in polygon])
    y = np.array([point[1] for point in polygon])
    left, right = max(0, int(np.floor(x.min()))), min(page.shape[1], int(np.ceil(x.max())) + 1)
    top, bottom = max(0, int(np.floor(y.min()))), min(page.shape[0], int(np.ceil(y.max())) + 1)
    if left >= right or top >= bottom:
        raise DataError(f"{name} is {page.shape[1]} x {page.shape[0]}: a line from {polygon[0]} on is not on it")
    box = page[top:bottom, left:right]
    if len(polygon) == 2:
        return box.copy()
    mask = Image.new("L", (right - left, bottom - top))
    ImageDraw.Draw(mask).polygon([(px - left, py - top) for px, py in polygon], fill=1, outline=1)
    inside = np.asarray(mask, np.bool_)
    return np.where(inside, box, np.uint8(np.median(box[inside]))).astype(np.uint8)


def find_page(xml: Path, stated: str) -> Path:
    """Finds the picture of a page: the one that its XML names, or the one with the XML's own name.

    Args:
        xml: The XML file.
        stated: What it says of the picture: a name, a path of another machine, or an address.

    Raises:
        DataError: If none is there.
    """
    name = stated.replace("\\", "/").rpartition("/")[2]
    stem = xml.name.partition(".")[0]
    bases = dict.fromkeys((Path(name).stem if name else xml.stem, xml.stem, stem))
    names = ([name] if name else []) + [f"{base}{suffix}" for base in bases for suffix in PICTURE_SUFFIXES]
    for folder in (xml.parent, xml.parent.parent):  # Transkribus puts the XML into a folder `page` beside the pictures
        for path in (folder / each for each in names):
            if path.is_file():
                return path
    raise DataError(f"{xml}: the picture of its page, {stated!r}, is not beside it, and no {xml.stem}.png or .jpg is")


def baseline_boxes(baselines: list[Points], number: int, name: str) -> Points:
    """Makes a box of a line that has no outline: around its baseline, as high as lines of the page are apart.

    Args:
        baselines: The baselines of all lines of the page.
        number: The line's place among them.
        name: The line, for messages.

    Returns:
        Two corners: three quarters of the distance above the baseline, one quarter below.

    Raises:
        DataError: If the page has no other line to tell the distance.
    """
    middles = np.array([np.mean([point[1] for point in line]) for line in baselines])
    gaps = np.diff(np.sort(middles))
    gaps = gaps[gaps > 4]
    if gaps.size == 0:
        raise DataError(f"{name} has neither a polygon nor a box, and how high it is cannot be told from other lines")
    pitch = float(np.median(gaps))
    x = [point[0] for point in baselines[number]]
    y = [point[1] for point in baselines[number]]
    return ((min(x), min(y) - 0.75 * pitch), (max(x), max(y) + 0.25 * pitch))
