import pytest

from glyphline.models.errors import PageError
from glyphline.models.pages import PageLine, lines_of

COORDINATES = '<Coords points="1,1 20,1 20,9 1,9"/>'
DECOMPOSED = "e\u0301 "
CORNERS = ((1.0, 1.0), (20.0, 1.0), (20.0, 9.0), (1.0, 9.0))


def read(lines: str, attributes: str = "") -> list[PageLine]:
    return lines_of(f"<PcGts><Page {attributes}>\n{lines}</Page></PcGts>".encode(), "p.xml")


def equivalent(text: str, attributes: str = "") -> str:
    return f"<TextEquiv{attributes}><Unicode>{text}</Unicode></TextEquiv>"


def test_a_line_is_told_whole() -> None:
    lines = read(
        f'<TextLine id="a">{COORDINATES}{equivalent(DECOMPOSED)}</TextLine>\n<TextLine/>',
        'imageFilename="p.png" imageWidth="50" imageHeight="30"',
    )
    nowhere = "a line with neither polygon nor baseline: draw one"
    assert lines == [
        PageLine("a", 2, "p.png", CORNERS, "", (50.0, 30.0), "é"),
        PageLine("3", 3, "p.png", (), nowhere, (50.0, 30.0), None),
    ]


def test_points_as_they_were_before_2013() -> None:
    points = "".join(f'<Point x="{x:g}" y="{y:g}"/>' for x, y in CORNERS)
    assert read(f"<TextLine><Coords>{points}</Coords></TextLine>")[0].outline == CORNERS


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        (f"<Word>{equivalent('ab')}</Word><Word/><Word>{equivalent('cd')}</Word>", "ab cd"),
        (f"<Word>{equivalent('ab')}</Word>{equivalent('own')}", "own"),
        (f"<Word>{equivalent('ab')}</Word>{equivalent('')}", None),
        (equivalent("second", ' index="1"') + equivalent("first", ' index="0"'), "first"),
        (equivalent("two\nlines"), "two lines"),
        ("<TextEquiv/>", None),
    ],
    ids=["words", "own", "emptied", "index", "breaks", "void"],
)
def test_texts(inner: str, text: str | None) -> None:
    assert read(f"<TextLine>{inner}</TextLine>")[0].text == text


def test_a_baseline_will_do() -> None:
    lines = read(
        '<TextLine><Baseline points="10,30 90,30"/></TextLine>'
        '<TextLine><Coords points="1,1 2,2"/><Baseline points="10,70 90,70"/></TextLine>'
    )
    assert [line.outline for line in lines] == [((10.0, 0.0), (90.0, 40.0)), ((10.0, 40.0), (90.0, 80.0))]
    (alone,) = read('<TextLine><Baseline points="10,30 90,30"/></TextLine>')
    assert (alone.outline, alone.fault[:28]) == ((), "a line with a baseline alone")


@pytest.mark.parametrize("points", ["1;2", "1,1 2", "1,nan", "x,y", "1,inf"])
def test_points_that_are_none_are_told(points: str) -> None:
    with pytest.raises(PageError, match=r"p\.xml, line 2: Coords has no points 'x,y x,y …': "):
        read(f'<TextLine><Coords points="{points}"/></TextLine>')
