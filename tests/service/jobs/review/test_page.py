"""The page is whole in itself, and nothing of a row can become part of it other than as text."""

import base64
import hashlib
import html.parser
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.models.image import GreyImage, ImageLimits
from glyphline.service.jobs.review import Review, render_page
from glyphline.service.jobs.review.page import script_text
from glyphline.service.jobs.review.selection import Chosen
from glyphline.service.jobs.review.strips import Strip, shown_strip
from glyphline.service.jobs.rows import RowError

MakeRow = Callable[..., dict[str, Any]]
STRIP = Strip("data:image/jpeg;base64,AAAA", 100, 40)


class Elements(html.parser.HTMLParser):
    """Collects the elements of a page, and the content of its scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.starts: list[tuple[str, dict[str, str | None]]] = []
        self.contents: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.starts.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.starts[-1] if self.starts else ("", {})
        if tag in ("script", "style") and data.strip():
            self.contents.append(("data" if "type" in attributes else tag, data))


def rendered(chosen: list[Chosen], output: str = "out.jsonl") -> str:
    strips = [STRIP if each.reason != "error" else RowError("empty_image", "empty") for each in chosen]
    return render_page(Review(output, ["A note <b>."], chosen, strips), repr)


def data_of(page: str) -> Any:  # noqa: ANN401
    return json.loads(next(content for kind, content in Elements(page).contents if kind == "data"))


hostile = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "\"'&<>`$style${x}",
    "שלום 12",
    "\u2028\u2029\x00",
    "\\u003c",
]


@pytest.mark.parametrize("text", hostile)
def test_no_text_becomes_markup(row: MakeRow, text: str) -> None:
    tokens = [{"text": character, "confidence": 0.5} for character in text]
    plain = rendered([Chosen(row("a", "1"), "confidence")])
    page = rendered(
        [
            Chosen(
                row(text, text, tokens=tokens, alternatives=[{"text": text + "1", "confidence": 0.1}]), "confidence"
            ),
            Chosen(row("b", None, error={"code": text, "message": text}), "error", row("b", text)),
        ],
        output=text.replace("\x00", ""),  # no path has it
    )
    assert [tag for tag, _ in Elements(page).starts] == [tag for tag, _ in Elements(plain).starts]
    first, second = data_of(page)["rows"]
    assert (first["id"], first["text"], first["suggestions"][0]["text"]) == (text, text, text + "1")
    assert (second["error"]["message"], second["suggestions"][0]["text"]) == (text, text)


@given(st.text(max_size=20))
def test_data_come_through_a_script_element_unchanged(text: str) -> None:
    written = script_text({"text": text})
    assert not set("<>&\u2028\u2029") & set(written)
    assert json.loads(written) == {"text": text}


def test_a_lone_surrogate_does_not_keep_the_page_from_being_written() -> None:
    assert json.loads(script_text(["\udcff"])) == ["\udcff"]
    assert "Review of a\\udcff" in rendered([], output="a\udcff")


def test_the_page_needs_nothing_and_runs_its_own_script_only(row: MakeRow) -> None:
    page = rendered([Chosen(row("a", "1"), "confidence")])
    elements = Elements(page)
    policy = next(attributes["content"] for _, attributes in elements.starts if "http-equiv" in attributes)
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for kind, content in elements.contents:
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert kind == "data" or f"{kind}-src 'sha256-{digest}'" in policy
    assert not [
        name for _, attributes in elements.starts for name in attributes if name.startswith("on") or name == "style"
    ]
    assert not re.search(r"(src|href)=|https?://|url\(|@import|innerHTML", page)


def test_what_a_row_says(row: MakeRow) -> None:
    other = row("a", "13", 0.75, decoder="beam 10")
    alternatives = [
        {"text": "12", "confidence": 0.5},
        {"text": "13", "confidence": 0.25},
        {"text": "", "confidence": 0.1},
    ]
    chosen = Chosen(row("a", "12", alternatives=alternatives, reference="1 2"), "reference", other)
    (told,) = data_of(rendered([chosen]))["rows"]
    notes = [(each["text"], each["note"]) for each in told["suggestions"]]
    assert notes == [("1 2", "reference"), ("13", "beam 10, 75.0 %"), ("", "10.0 %")]
    assert told["pieces"] == [["1", None, False], ["", None, True], ["2", None, True]]
    second = Chosen(row("a", "12"), "disagreement", row("a", "13", 0.75, model="words", version=2))
    assert data_of(rendered([second]))["rows"][0]["suggestions"][0]["note"] == "words 2, 75.0 %"


def test_pictures_are_made_small_and_keep_their_proportions() -> None:
    strip = shown_strip(GreyImage(np.full((400, 4_000), 200, np.uint8)), ImageLimits())
    assert isinstance(strip, Strip)
    assert (strip.width, strip.height) == (960, 96)
    assert len(strip.uri) < 10_000
    sliver = shown_strip(GreyImage(np.full((2, 30_000), 200, np.uint8)), ImageLimits())
    assert isinstance(sliver, Strip)
    assert (sliver.width, sliver.height) == (6_000, 1)
    refused = shown_strip(b"text", ImageLimits())
    assert isinstance(refused, RowError)
    assert refused.code == "undecodable_image"
