from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from glyphline.models.image import GreyImage, ImageLimits
from glyphline.service.jobs import RowError, picture_of
from glyphline.service.jobs.pictures import fetch
from glyphline.service.jobs.sources.found import items_of
from glyphline.service.jobs.sources.tiff import pages_of

LIMITS = ImageLimits()


def pages(*levels: int) -> list[Image.Image]:
    return [Image.fromarray(np.full((10, 20 + level), level, np.uint8)) for level in levels]


@pytest.mark.parametrize("big", [False, True])
def test_each_page_is_a_picture(tmp_path: Path, big: bool) -> None:
    path = tmp_path / "a.tif"
    first, *others = pages(10, 20, 30)
    first.save(path, save_all=True, append_images=others, big_tiff=big)
    items = list(items_of([str(tmp_path)]))
    assert [item.id for item in items] == [f"{path}#1", f"{path}#2", f"{path}#3"]
    for item, level in zip(items, (10, 20, 30), strict=True):
        content = fetch(item.picture, LIMITS)
        assert isinstance(content, GreyImage)
        assert content.width == 20 + level
        assert (content.pixels == level).all()
        assert picture_of({"source": str(path), "place": item.picture.place()}) == item.picture
    refused = fetch(items[2].picture, ImageLimits(max_pixels=100))
    assert isinstance(refused, RowError)
    assert refused.code == "image_too_large"


def test_a_page_alone_is_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    pages(10)[0].save(path)
    (item,) = items_of([str(path)])
    assert (item.id, item.picture.place()) == (str(path), {})


def test_smaller_copies_are_no_pages(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    first, second, third = pages(10, 20, 30)
    second.encoderinfo = {"tiffinfo": {254: 1}}
    first.save(path, save_all=True, append_images=[second, third])
    assert pages_of(str(path)) == [1, 3]


def test_damaged_files_are_left_to_whoever_reads_them(tmp_path: Path) -> None:
    for content in (b"", b"II", b"II*\0\x08\0\0\0", b"II*\0\x08\0\0\0\x05\0abc", b"no TIFF at all"):
        path = tmp_path / "a.tif"
        path.write_bytes(content)
        assert pages_of(str(path)) == [1]
    first, *others = pages(10, 20)
    first.save(path, save_all=True, append_images=others)
    whole = path.read_bytes()
    items = list(items_of([str(path)]))
    path.write_bytes(whole[: len(whole) // 2])
    assert isinstance(fetch(items[1].picture, LIMITS), RowError)


def test_a_chain_that_leads_in_circles_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    path.write_bytes(b"II*\0\x08\0\0\0" + b"\0\0" + b"\x08\0\0\0")
    assert pages_of(str(path)) == [1]
