"""Lines cut from the picture of a page, by their polygon or their box."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from glyphline.models.cut import PAGE_LIMITS, Points, cut_polygon, scaled
from glyphline.models.image import read_image
from glyphline.training.datasets.readers.item import FilePicture, encode_png
from glyphline.training.datasets.samples import Grey


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
        return cut_polygon(page, scaled(self.polygon, self.size, page.shape, str(self.page)), str(self.page))

    def content(self) -> bytes:
        """Returns the cut line as PNG."""
        return encode_png(self.load())


@lru_cache(maxsize=2)
def _load_page(path: Path) -> Grey:
    """Decodes a page; the last two are kept, as one's lines are mostly asked for in a row."""
    return read_image(FilePicture(path).content(), PAGE_LIMITS).pixels
