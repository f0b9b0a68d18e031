"""Sheets keep every word of a caption."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from PIL import ImageFont

from glyphline.training.datasets.commands.sheet import WIDTH, Section, Shown, draw_sheet, wrap

FONT = ImageFont.load_default(13)


@given(st.text("abc xyz", max_size=40), st.integers(20, 200))
def test_lines_fit_and_nothing_is_lost(text: str, width: int) -> None:
    lines = wrap(text, FONT, width)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(FONT.getlength(line) <= width for line in lines)


def test_words_are_broken_only_where_they_alone_are_too_wide() -> None:
    assert wrap("one two", FONT, round(FONT.getlength("one tw"))) == ["one", "two"]
    assert len(wrap("oneandtwo", FONT, 20)) > 1
    assert wrap("", FONT, 20) == []


def test_a_long_caption_makes_a_sheet_higher() -> None:
    strip = np.zeros((20, 100), dtype=np.uint8)
    short, long, noted = (
        draw_sheet([Section("a", [Shown(strip, caption)])], note)
        for caption, note in (("17", ""), ("a label of many words " * 3, ""), ("17", "what is shown"))
    )
    assert {sheet.width for sheet in (short, long, noted)} == {WIDTH}
    assert short.height < noted.height < long.height
