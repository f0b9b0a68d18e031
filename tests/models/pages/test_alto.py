import pytest

from glyphline.models.cut import Points
from glyphline.models.errors import PageError
from glyphline.models.pages import PageLine, lines_of

BOX = 'HPOS="10" VPOS="20" WIDTH="50" HEIGHT="9"'
CORNERS = ((10.0, 20.0), (60.0, 29.0))
NOWHERE = "a line with neither polygon, box nor baseline: draw one"


def read(lines: str, size: str = "", unit: str = "pixel") -> list[PageLine]:
    return lines_of(
        f"<alto><Description><MeasurementUnit>{unit}</MeasurementUnit><fileName> p.png </fileName></Description>\n"
        f"<Layout><Page {size}>{lines}</Page></Layout></alto>".encode(),
        "p.xml",
    )


def polygon(points: str) -> str:
    return f'<Shape><Polygon POINTS="{points}"/></Shape>'


def test_a_line_is_told_whole() -> None:
    lines = read(
        f'<TextLine ID="a" {BOX}><String CONTENT="e\u0301"/></TextLine>\n<TextLine/>', 'WIDTH="90" HEIGHT="50"'
    )
    assert lines == [
        PageLine("a", 2, "p.png", CORNERS, "", (90.0, 50.0), "é"),
        PageLine("3", 3, "p.png", (), NOWHERE, (90.0, 50.0), None),
    ]


@pytest.mark.parametrize(
    ("attributes", "inner", "outline", "fault"),
    [
        (BOX, polygon("1 1 20 1 20 9"), ((1.0, 1.0), (20.0, 1.0), (20.0, 9.0)), ""),
        ("", polygon("1,1 20,1 20,9"), ((1.0, 1.0), (20.0, 1.0), (20.0, 9.0)), ""),
        (BOX, polygon("1 1 2"), CORNERS, ""),
        ("", polygon("1 1 2"), (), "Polygon has no POINTS 'x y x y …' of three corners or more: '1 1 2'"),
        ('WIDTH="50" HEIGHT="9"', "", (), NOWHERE),
        ('HPOS="1" VPOS="1" WIDTH="0" HEIGHT="9"', "", (), NOWHERE),
        ('HPOS="1" VPOS="1" WIDTH="inf" HEIGHT="9"', "", (), NOWHERE),
        ('BASELINE="40"', "", (), NOWHERE),
        (
            'BASELINE="10 40 90 40"',
            "",
            (),
            "a line with a baseline alone, and no other line to tell how high it is: draw its polygon",
        ),
    ],
    ids=["polygon", "commas", "box", "broken", "placeless", "flat", "endless", "old", "alone"],
)
def test_outlines(attributes: str, inner: str, outline: Points, fault: str) -> None:
    (line,) = read(f"<TextLine {attributes}>{inner}</TextLine>")
    assert (line.outline, line.fault) == (outline, fault)


def test_a_baseline_will_do() -> None:
    lines = read('<TextLine BASELINE="10 30 90 30"/><TextLine BASELINE="10,70 90,70"/>')
    assert [line.outline for line in lines] == [((10.0, 0.0), (90.0, 40.0)), ((10.0, 40.0), (90.0, 80.0))]


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        ('<String CONTENT="Wör"/><String CONTENT="ter"/><HYP CONTENT="-"/>', "Wör ter-"),
        ('<String CONTENT="a"/><SP/><String CONTENT="b"/><SP/><HYP/>', "a b-"),
        ('<SP/><String CONTENT=""/>', None),
        ("", None),
    ],
    ids=["hyphen", "spaces", "blank", "nothing"],
)
def test_texts(inner: str, text: str | None) -> None:
    assert read(f"<TextLine>{inner}</TextLine>")[0].text == text


def test_other_units_need_the_size_of_the_page() -> None:
    assert read("<TextLine/>", 'WIDTH="900" HEIGHT="500"', "mm10")[0].size == (900.0, 500.0)
    with pytest.raises(PageError, match=r"p\.xml measures in mm10 and states no size of the page"):
        read("<TextLine/>", 'WIDTH="900"', "mm10")
