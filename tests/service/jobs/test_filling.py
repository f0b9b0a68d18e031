from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from glyphline.models.errors import PageError
from glyphline.models.pages import lines_of
from glyphline.service.jobs.filling import Filling, fill_in

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


def texts_of(content: bytes) -> list[str | None]:
    ET.fromstring(content)
    return [line.text for line in lines_of(content, "x")]


@pytest.mark.parametrize("content", [PAGE, ALTO])
def test_texts_are_filled_in_and_all_else_stays(content: str) -> None:
    texts = {0: Filling('5 < 6 & "é"', 0.5), 1: Filling("", 1.0), 2: Filling("x", 0.25)}
    filled = fill_in(content.encode(), "x", texts)
    assert texts_of(filled) == ['5 < 6 & "é"', None, "x"]
    assert b"old" not in filled
    again = fill_in(filled, "x", texts)
    assert again == filled, "filled in twice, it is the same"
    untouched = [line for line in content.splitlines() if "TextLine" not in line and "TextEquiv" not in line]
    for line in untouched:
        assert line.strip() in filled.decode() or "CONTENT" in line
    assert fill_in(content.encode(), "x", {}) == content.encode()


def test_a_text_stands_where_the_schema_has_it() -> None:
    filled = fill_in(PAGE.encode(), "x", {1: Filling("new", 0.5)})
    line = ET.fromstring(filled).findall(".//{*}TextLine")[1]
    assert [child.tag.rpartition("}")[2] for child in line] == ["Coords", "TextEquiv", "TextStyle"]
    filled = fill_in(ALTO.encode(), "x", {0: Filling("new", 0.5)})
    line = ET.fromstring(filled).findall(".//{*}TextLine")[0]
    assert [child.attrib for child in line] == [
        {"CONTENT": "new", "HPOS": "10", "VPOS": "10", "WIDTH": "50", "HEIGHT": "19", "WC": "0.5000"}
    ]


def test_other_encodings_and_quotes() -> None:
    content = PAGE.replace("UTF-8", "ISO-8859-1").replace("old &amp; worn", "größer").encode("latin-1")
    content = content.replace(b'id="l1"', b"custom='a > b \"c\"' id='l1'")
    assert texts_of(content)[1] == "größer"
    filled = fill_in(content, "x", {0: Filling("naïve 支票", 0.5)})
    assert texts_of(filled) == ["naïve 支票", "größer", None]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
@pytest.mark.parametrize("content", [PAGE.replace("UTF-8", "UTF-16"), ALTO], ids=["page", "alto"])
def test_files_in_utf_16(content: str, encoding: str) -> None:
    texts = {0: Filling("naïve 支票", 0.5), 2: Filling("x", 0.25)}
    filled = fill_in(content.encode(encoding), "x", texts)
    plain = fill_in(content.replace("UTF-16", "UTF-8").encode(), "x", texts)
    assert filled.decode(encoding).replace("UTF-16", "UTF-8") == plain.decode()


def test_what_is_no_xml_is_told() -> None:
    with pytest.raises(PageError, match=r"x\.xml is not XML"):
        fill_in(b"<PcGts>", "x.xml", {})
