"""Where two texts differ."""

from hypothesis import given
from hypothesis import strategies as st

from glyphline.service.jobs.review.texts import marked, pieces_of

texts = st.text("abא \u0301", max_size=8)


@given(texts, texts)
def test_the_pieces_are_the_text(text: str, other: str) -> None:
    pieces = marked(text, other)
    assert "".join(part for part, _, _ in pieces) == text
    assert any(differs for _, _, differs in pieces) == (text != other)
    shown = pieces_of(text, None, [other])
    assert "".join(part for part, _, _ in shown) == text
    assert any(differs for _, _, differs in shown) == (text != other)
    common = "".join(part for part, _, differs in shown if not differs)
    assert common == "".join(part for part, _, differs in marked(other, text) if not differs)


def test_characters_have_their_confidence() -> None:
    tokens = [{"text": "1", "confidence": 0.9}, {"text": "2", "confidence": 0.4}]
    assert pieces_of("12", tokens, []) == [("1", 0.9, False), ("2", 0.4, False)]
    assert pieces_of("12", tokens, ["17"]) == [("1", 0.9, False), ("2", 0.4, True)]
    assert pieces_of("12", tokens, ["123"]) == [("1", 0.9, False), ("2", 0.4, False), ("", None, True)]
    assert pieces_of("12", tokens[:1], ["2"]) == [("1", None, True), ("2", None, False)]
    assert pieces_of("12", None, []) == []
