from __future__ import annotations

import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphline.models.errors import PageError
from glyphline.models.pages import Element, encoding_of, read_markup

NAMES = st.sampled_from(["Page", "a:TextLine", "ä"])
TEXTS = st.sampled_from(["", "x", "&amp;", "\r\n ", "é", "<!-- <b> -->", "<?p >?>", "<![CDATA[</a>]]>"])
ATTRIBUTES = st.sampled_from(["", " id='a>b'", ' x:id="/>"', " k='é'\n"])
ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252"])
FIRST = st.sampled_from(["", "<!-- c -->", "\n<!DOCTYPE a>\n"])


@st.composite
def elements(draw: st.DrawFn, depth: int = 3) -> str:
    name, attributes = draw(NAMES), draw(ATTRIBUTES)
    count = draw(st.integers(0, 3)) if depth else 0
    inner = draw(TEXTS) + "".join(draw(elements(depth - 1)) + draw(TEXTS) for _ in range(count))
    if not inner and draw(st.booleans()):
        return f"<{name}{attributes}/>"
    return f"<{name}{attributes}>{inner}</{name} >"


@settings(max_examples=60)
@given(elements(), FIRST, TEXTS.filter(lambda text: text not in ("x", "é", "&amp;") and "CDATA" not in text), ENCODINGS)
def test_elements_know_their_bytes(element: str, first: str, after: str, encoding: str) -> None:
    declared = "UTF-8" if encoding == "utf-8-sig" else encoding.removesuffix("-le").removesuffix("-be")
    content = f'<?xml version="1.0" encoding="{declared}"?>{first}{element}{after}'.encode(encoding)
    root = read_markup(content, "x")
    assert content[root.start : root.end].decode(_plain(content, encoding)) == element

    def check(each: Element) -> None:
        part = content[each.start : each.end].decode(_plain(content, encoding))
        tag = content[each.start : each.inside].decode(_plain(content, encoding))
        last = content[each.last : each.end].decode(_plain(content, encoding))
        assert tag.startswith(f"<{each.name}")
        assert tag.endswith(">")
        assert last == "/>" if each.inside == each.end else last == f"</{each.name} >"
        assert part.startswith(tag)
        assert part.endswith(last)
        position = each.inside
        for child in each.children:
            assert position <= child.start < child.end <= each.last
            position = child.end
            check(child)

    check(root)


def _plain(content: bytes, encoding: str) -> str:
    """The encoding of a part of the file, which begins with no mark of the byte order."""
    wide = encoding_of(content)
    return wide if wide != "ascii" else encoding.removesuffix("-sig")


@given(st.binary(max_size=60) | st.text("<>/a=\"' &;![CDATA]-?\0", max_size=60).map(str.encode))
def test_whatever_the_bytes_it_is_a_tree_or_an_error(content: bytes) -> None:
    try:
        root = read_markup(content, "x.xml")
    except PageError as error:
        assert str(error).startswith("x.xml")
    else:
        assert 0 <= root.start < root.inside <= root.end <= len(content)


def test_names_attributes_and_texts() -> None:
    root = read_markup(b'<p:a xmlns:p="u" xmlns:id="v"\n p:id="1">t&lt;<p:b/>u<![CDATA[<]]>\n<c>v</c></p:a>', "x")
    assert (root.tag, root.prefix, root.attributes, root.text, root.line) == ("a", "p:", {"id": "1"}, "t<u<\n", 1)
    assert [(each.tag, each.prefix, each.text, each.line) for each in root.children] == [
        ("b", "p:", "", 2),
        ("c", "", "v", 3),
    ]
    assert [each.tag for each in root.all("b", "c")] == ["b", "c"]
    assert root.own("a") == []


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        (codecs.BOM_UTF16_LE + "<a/>".encode("utf-16-le"), "utf-16-le"),
        ("<a/>".encode("utf-16-be"), "utf-16-be"),
        (codecs.BOM_UTF8 + b"<a/>", "ascii"),
        (b"", "ascii"),
    ],
    ids=["marked", "unmarked", "utf-8", "empty"],
)
def test_the_encoding_of_marks(content: bytes, encoding: str) -> None:
    assert encoding_of(content) == encoding


@pytest.mark.parametrize(
    "attack",
    [
        '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><PcGts>&b;</PcGts>',
        '<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]><PcGts>&a;</PcGts>',
        '<!DOCTYPE a [<!ENTITY % a SYSTEM "http://localhost/x.dtd"> %a;]><PcGts/>',
    ],
    ids=["laughs", "file", "address"],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused(attack: str, encoding: str) -> None:
    with pytest.raises(PageError, match=r"p\.xml, line 1: XML that defines entities"):
        read_markup(attack.encode(encoding), "p.xml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<PcGts>\n<Page>", r"p\.xml is not XML: .*line 2"),
        (b"", r"p\.xml is not XML"),
        (b"<a>" * 300, r"p\.xml, line 1: elements are nested more than 200 deep"),
        (b'<?xml version="1.0" encoding="nonsense"?><a/>', r"p\.xml is in an encoding that is not read: unknown"),
        (b'<?xml version="1.0" encoding="shift_jis"?><a/>', r"p\.xml is in an encoding that is not read: multi-byte"),
    ],
    ids=["open", "empty", "deep", "encoding", "bytes"],
)
def test_faults_are_named(content: bytes, message: str) -> None:
    with pytest.raises(PageError, match=message):
        read_markup(content, "p.xml")
