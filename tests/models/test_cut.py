import numpy as np
import pytest

from glyphline.models.cut import baseline_box, cut_polygon, scaled
from glyphline.models.errors import ImageError


def test_what_is_outside_the_polygon_is_paper() -> None:
    page = np.full((40, 60), 200, np.uint8)
    page[10:20, 10:50] = 20  # the line's ink
    page[0:5] = 0  # the line above
    cut = cut_polygon(page, ((5.0, 39.0), (5.0, 8.0), (30.0, 6.0), (55.0, 0.0), (55.0, 39.0)))
    assert cut.shape == (40, 51)
    assert (cut[0, :40] == 200).all(), "of the line above nothing shows outside of the polygon"
    assert cut[12, 10] == 20
    assert cut_polygon(page, ((-9.0, -9.0), (9.0, 9.0))).shape == (10, 10), "as far as it is on the page"
    with pytest.raises(ImageError, match="not on it"):
        cut_polygon(page, ((70.0, 0.0), (90.0, 9.0)))


def test_points_follow_the_resolution_of_the_page() -> None:
    line = ((10.0, 20.0), (30.0, 40.0))
    assert scaled(line, (100.0, 80.0), (160, 200)) == ((20.0, 40.0), (60.0, 80.0))
    assert scaled(line, (100.0, 80.0), (80, 100)) == line
    assert scaled(line, (0.0, 0.0), (7, 9)) == line, "on a page of unknown size they are taken as they are"
    with pytest.raises(ImageError, match=r"p\.png is 200 x 80"):
        scaled(line, (100.0, 80.0), (80, 200), "p.png")


def test_lines_are_as_high_as_baselines_are_apart() -> None:
    baselines = [((10.0, y), (90.0, y + 2)) for y in (20.0, 40.0, 60.0)]
    assert baseline_box(baselines, 1) == ((10.0, 25.0), (90.0, 47.0))
    assert baseline_box(baselines[:1], 0) is None
