import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphline.models.errors import PageError
from glyphline.models.pages import line_elements, lines_of, read_markup


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<html/>", "x.xml: neither PAGE nor ALTO XML: its root is 'html'"),
        (b"<PcGts/>", "x.xml is not PAGE XML: .* no 'Page'"),
        (b"<PcGts>", "x.xml is not XML"),
    ],
    ids=["other", "pageless", "open"],
)
def test_what_is_no_page_is_told(content: bytes, reason: str) -> None:
    with pytest.raises(PageError, match=reason):
        lines_of(content, "x.xml")


NUMBERS = st.sampled_from(["", "0", "5", "-3", "1.5", "nan", "1e999", "x", "5,5", "5 5", "1,1 9,1 9,9", "1 1 9 1 9 9"])
PARTS = st.one_of(
    st.builds('<Coords points="{}"/>'.format, NUMBERS),
    st.builds('<Baseline points="{}"/>'.format, NUMBERS),
    st.builds('<Shape><Polygon POINTS="{}"/></Shape>'.format, NUMBERS),
    st.builds('<TextEquiv index="{}"><Unicode>{}</Unicode></TextEquiv>'.format, NUMBERS, NUMBERS),
    st.builds('<String CONTENT="{}"/>'.format, NUMBERS),
    st.sampled_from(["<HYP/>", "<SP/>", "<Word/>", "<TextEquiv/>", "<Coords/>", "<TextLine/>"]),
)
LINES = st.builds(
    '<TextLine BASELINE="{}" HPOS="{}" VPOS="1" WIDTH="{}" HEIGHT="9">{}</TextLine>'.format,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    st.lists(PARTS, max_size=4).map("".join),
)


@settings(max_examples=60)
@given(
    st.sampled_from(["PcGts", "alto"]),
    st.lists(LINES, max_size=4).map("".join),
    NUMBERS,
    st.sampled_from(["", "<TextLine/>", "<MeasurementUnit>mm10</MeasurementUnit>"]),
)
def test_every_line_has_an_outline_or_a_fault(root: str, lines: str, size: str, other: str) -> None:
    page = f'<Page imageWidth="{size}" imageHeight="9" WIDTH="{size}" HEIGHT="9">{lines}</Page>'
    content = f"<{root}>{other}{page}</{root}>".encode()
    try:
        found = lines_of(content, "x.xml")
    except PageError as error:
        assert str(error).startswith("x.xml")
        return
    assert [line.line for line in found] == [element.line for element in line_elements(read_markup(content, "x"))]
    for line in found:
        assert bool(line.outline) != bool(line.fault)
        assert all(abs(value) < 1e9 for point in (*line.outline, line.size) for value in point)
        assert line.text is None or line.text == line.text.strip() != ""
