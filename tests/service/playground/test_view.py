import base64
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from glyphline.models.decoding import Alternative, Reading, Token
from glyphline.models.image import GreyImage
from glyphline.models.manifest import DecoderDefaults
from glyphline.service.playground import Model, Problem, Shown
from glyphline.service.playground.view import WAITING, render

HOSTILE = "<script>alert(1)</script>\"'&"


class Elements(HTMLParser):
    """Gathers elements and text."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(content)
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(*texts: str, truncated: bool = False) -> Shown:
    alternatives = tuple(
        Alternative(text, 0.75, -1.0, tuple(Token(each, 0.9, (3.0, 9.0)) for each in text), truncated) for text in texts
    )
    reading = Reading(texts[0], 0.75, alternatives, truncated)
    model = Model("digits", 3, "digits", DecoderDefaults())
    return Shown(GreyImage(np.full((20, 60), 200, np.uint8)), reading, model, "greedy", "here", 0.0123)


def test_all_of_a_reading_is_shown() -> None:
    page = render(shown("1 7", "1"))
    elements = Elements(page)
    assert elements.text.startswith("1 775.0 % suredigits 3 · greedy · 12 ms here")
    assert elements.names.count("li") == 3
    assert "190 %␣90 %790 %" in elements.text
    assert "Alternatives" in elements.text
    drawing = re.search(r'src="data:image/png;base64,([^"]+)" width="(\d+)"', page)
    assert drawing is not None
    with Image.open(io.BytesIO(base64.b64decode(drawing[1]))) as image:
        assert image.width == int(drawing[2])


def test_one_reading_has_no_alternatives() -> None:
    assert "table" not in Elements(render(shown("17"))).names


def test_texts_are_no_markup() -> None:
    elements = Elements(render(shown(HOSTILE, HOSTILE)))
    assert "script" not in elements.names
    assert elements.text.count(HOSTILE) == 3
    assert Elements(render(Problem(HOSTILE))).text == HOSTILE


def test_no_text_is_said_to_be_none() -> None:
    assert Elements(render(shown(""))).text.startswith("no text")


def test_a_text_that_was_cut_is_said_to_be() -> None:
    assert "cut at the longest text" in render(shown("17", truncated=True))


@pytest.mark.parametrize("content", [WAITING, render(Problem("no")), render(shown("1"))])
def test_what_is_read_aloud_comes_first(content: str) -> None:
    assert content.startswith('<div class="summary" role="status">')
