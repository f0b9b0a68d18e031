from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glyphline.training.datasets.rendered import RenderedStrips, find_fonts
from glyphline.training.errors import DataError


def test_fonts_are_found_in_a_stable_order(data_root: Path, tmp_path: Path) -> None:
    assert [path.name for path in find_fonts(data_root)] == ["DejaVuSans.ttf"]
    with pytest.raises(DataError, match="fetch_fonts"):
        find_fonts(tmp_path)


@pytest.mark.parametrize("cells", [0.0, 1.0])
def test_strips_are_pictures_of_their_text(data_root: Path, cells: float) -> None:
    strips = RenderedStrips(tuple(find_fonts(data_root)), longest=8, cells=cells)
    for seed in range(40):
        sample = strips.draw(np.random.default_rng(seed))
        assert sample.text
        assert sample.pixels.dtype == np.uint8
        assert int(sample.pixels.max()) - int(sample.pixels.min()) > 10, "something is to be seen"


def test_displays_show_their_unlit_segments(data_root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "segment"
    folder.mkdir()
    (folder / "display.ttf").write_bytes((data_root / "fonts" / "DejaVuSans.ttf").read_bytes())
    strips = RenderedStrips(tuple(find_fonts(folder)))
    texts = {strips.draw(np.random.default_rng(seed)).text for seed in range(60)}
    assert all(set(text) <= set("0123456789.:") for text in texts)
