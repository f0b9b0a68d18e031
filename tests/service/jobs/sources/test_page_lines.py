from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from glyphline.models.cut import cut_polygon
from glyphline.models.image import GreyImage, ImageLimits
from glyphline.service.jobs import RowError, picture_of
from glyphline.service.jobs.pictures import CutPicture, FilePicture, fetch
from glyphline.service.jobs.sources.found import items_of

LIMITS = ImageLimits()
PAGE = """<?xml version="1.0" encoding="UTF-8"?>
<!-- kept -->
<PcGts xmlns="http://schema.primaresearch.org/PAGE/gts/pagecontent/2019-07-15">
  <Page imageFilename="C:\\scans\\p1.png" imageWidth="100" imageHeight="80"><TextRegion id="r">
    <TextLine id="l0"><Coords points="10,10 60,10 60,29 10,29"/><Baseline points="10,25 60,25"/></TextLine>
    <TextLine id="l1"><Coords points="10,40 80,40 80,59 10,59"/><Word id="w"><Coords points="1,1 2,2 3,3"/>
      <TextEquiv><Unicode>old</Unicode></TextEquiv></Word><TextEquiv><Unicode>old &amp; worn</Unicode></TextEquiv>
      <TextStyle fontSize="3"/></TextLine>
    <TextLine id="l2"/>
  </TextRegion></Page>
</PcGts>
"""
ALTO = """<?xml version="1.0"?>
<a:alto xmlns:a="http://www.loc.gov/standards/alto/ns-v4#"><a:Description><a:MeasurementUnit>pixel</a:MeasurementUnit>
<a:sourceImageInformation><a:fileName>p1.png</a:fileName></a:sourceImageInformation></a:Description>
<a:Layout><a:Page WIDTH="100" HEIGHT="80"><a:PrintSpace>
<a:TextLine ID="l0" HPOS="10" VPOS="10" WIDTH="50" HEIGHT="19"><a:String CONTENT="old"/><a:SP/><a:String
 CONTENT="worn"/><a:HYP/></a:TextLine>
<a:TextLine ID="l1" HPOS="10" VPOS="40" WIDTH="70" HEIGHT="19">
<a:Shape><a:Polygon POINTS="10 40 80 40 80 59"/></a:Shape>
</a:TextLine>
<a:TextLine ID="l2" HPOS="1" VPOS="1" WIDTH="0" HEIGHT="0"/>
</a:PrintSpace></a:Page></a:Layout></a:alto>
"""


@pytest.fixture
def page(tmp_path: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    pixels = np.random.default_rng(1).integers(0, 256, (80, 100), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "p1.png")
    return pixels


@pytest.mark.parametrize(("content", "texts"), [(PAGE, [None, "old & worn", None]), (ALTO, ["old worn-", None, None])])
def test_lines_are_cut_from_their_page(
    tmp_path: Path, page: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], content: str, texts: list[str | None]
) -> None:
    path = tmp_path / "p1.xml"
    path.write_text(content)
    items = list(items_of([str(path)]))
    assert [item.id for item in items] == [f"{path}#l0", f"{path}#l1", f"{path}#l2"]
    assert [item.reference for item in items] == texts
    assert [(item.page, item.line) for item in items] == [(str(path), number) for number in range(3)]
    for item in items[:2]:
        assert isinstance(item.picture, CutPicture)
        cut = fetch(item.picture, LIMITS)
        assert isinstance(cut, GreyImage)
        assert np.array_equal(cut.pixels, cut_polygon(page, item.picture.points))
        row = {"source": item.picture.source, "place": item.picture.place(), "crop": item.picture.crop()}
        assert picture_of(row) == item.picture
    nowhere = fetch(items[2].picture, LIMITS)
    assert isinstance(nowhere, RowError)
    assert nowhere.code == "image"
    number = next(number for number, line in enumerate(content.splitlines(), 1) if '"l2"' in line)
    assert f"p1.xml, line {number}: a line with neither polygon" in nowhere.message


def test_a_page_that_is_not_there_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "p9.xml").write_text(PAGE)
    for item in items_of([str(tmp_path / "p9.xml")]):
        content = fetch(item.picture, LIMITS)
        assert isinstance(content, RowError)
        assert content.code == "file_not_found"


def test_boxes_are_cut_from_pages_at_another_resolution(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((160, 200), np.uint8)).save(tmp_path / "p1.png")
    picture = CutPicture(FilePicture(str(tmp_path / "p1.png")), ((10.0, 10.0), (59.0, 29.0)), (100.0, 80.0))
    cut = fetch(picture, LIMITS)
    assert isinstance(cut, GreyImage)
    assert (cut.width, cut.height) == (99, 39)
    off = fetch(CutPicture(FilePicture(str(tmp_path / "p1.png")), ((500.0, 1.0), (600.0, 9.0))), LIMITS)
    assert isinstance(off, RowError)
    broken = fetch(CutPicture(FilePicture(str(tmp_path / "lost.png")), ((1.0, 1.0), (6.0, 9.0))), LIMITS)
    assert isinstance(broken, RowError)
    assert broken.code == "file_not_found"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("<html/>", "neither PAGE nor ALTO"),
        (PAGE[:-20], "is not XML"),
        ("", "is not XML"),
        ('<PcGts><Page><TextLine><Coords points="1;2"/></TextLine></Page></PcGts>', "line 1: Coords has no points"),
    ],
    ids=["other", "cut short", "empty", "points"],
)
def test_what_is_no_page_is_one_row_and_stops_no_other(
    tmp_path: Path, page: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], content: str, reason: str
) -> None:
    del page
    (tmp_path / "x.xml").write_text(content)
    (tmp_path / "y.xml").write_text(PAGE)
    (tmp_path / "z.xml").symlink_to(tmp_path / "nothing")
    broken, *lines, lost = items_of([str(tmp_path / "*.xml")])
    assert len(lines) == 3
    assert (broken.id, broken.page, broken.picture.source) == (str(tmp_path / "x.xml"), None, broken.id)
    error = fetch(broken.picture, LIMITS)
    assert isinstance(error, RowError)
    assert error.code == "undecodable_page"
    assert re.search(rf"x\.xml.*{reason}", error.message)
    assert fetch(lost.picture, LIMITS) == RowError("file_not_found", "is a link to nothing")
