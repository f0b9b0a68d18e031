"""Lines cut from the picture of a page, by their polygon or their box."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from glyphline.models import cut
from glyphline.models.cut import Points
from glyphline.models.errors import ImageError
from glyphline.models.image import ImageLimits, read_image
from glyphline.training.datasets.readers.item import PICTURE_SUFFIXES, FilePicture, encode_png
from glyphline.training.datasets.samples import Grey
from glyphline.training.errors import DataError

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


def cut_polygon(page: Grey, polygon: Points, name: str = "the page") -> Grey:
    """Cuts a polygon from a page, as `glyphline.models.cut` does for whoever reads it later.

    Raises:
        DataError: If nothing of the polygon is on the page.
    """
    try:
        return cut.cut_polygon(page, polygon, name)
    except ImageError as error:
        raise DataError(str(error)) from error


def _scaled(polygon: Points, size: tuple[float, float], shape: tuple[int, ...], path: Path) -> Points:
    try:
        return cut.scaled(polygon, size, shape, str(path))
    except ImageError as error:
        raise DataError(str(error)) from error


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
    box = cut.baseline_box(baselines, number)
    if box is None:
        raise DataError(f"{name} has neither a polygon nor a box, and how high it is cannot be told from other lines")
    return box
