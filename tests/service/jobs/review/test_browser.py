"""The page in a real browser, by real keys and clicks: nothing here reaches into its script."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from glyphline.models.image import ImageLimits
from glyphline.service.jobs.review import Review, render_page
from glyphline.service.jobs.review.selection import Chosen
from glyphline.service.jobs.review.strips import Strip, shown_strip
from glyphline.service.jobs.rows import RowError

MakeRow = Callable[..., dict[str, Any]]
ALT, CTRL = 1, 2
COUNTS = "document.getElementById('counts').textContent"
SHOWN = (
    "[...document.querySelectorAll('article')].filter((each) => !each.hidden)"
    ".map((each) => each.querySelector('.about bdi').textContent)"
)
FOCUSED = "document.activeElement.getAttribute('aria-label')"
HOSTILE = "</script><img src=x onerror=alert(1)>\"'&שלום"


@pytest.fixture(scope="module")
def strip(strips: list[tuple[Path, str]]) -> Strip:
    made = shown_strip(strips[0][0].read_bytes(), ImageLimits())
    assert isinstance(made, Strip)
    return made


@pytest.fixture
def page(tmp_path: Path, row: MakeRow, strip: Strip) -> Path:
    """Six rows: two readings, a disagreement, one without its picture, an error with a picture and one without."""
    tokens = [{"text": character, "confidence": 0.7} for character in HOSTILE]
    lost = RowError("file_not_found", "d.png is no longer there")
    chosen: list[tuple[Chosen, Strip | RowError]] = [
        (Chosen(row("a.png", "12", 0.4), "disagreement", row("a.png", "13", 0.9, decoder="beam 10")), strip),
        (Chosen(row("b.png", HOSTILE, 0.5, tokens=tokens), "confidence"), strip),
        (Chosen(row("c.png", "", 0.6, alternatives=[{"text": "7", "confidence": 0.1}]), "confidence"), strip),
        (Chosen(row("d.png", "9", 0.7), "confidence"), lost),
        (Chosen(row("e.png", None), "error"), strip),
        (Chosen(row("f.png", None), "error"), lost),
    ]
    path = tmp_path / "review.html"
    review = Review(str(tmp_path / "out"), [], [each for each, _ in chosen], [each for _, each in chosen])
    path.write_text(render_page(review, repr), encoding="utf-8")
    return path


def labels_of(browser: Any) -> dict[str, str]:  # noqa: ANN401  (the class is conftest's)
    browser.press("s", CTRL)
    lines = browser.downloaded().read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines)


def test_rows_are_corrected_by_keys_alone(browser: Any, page: Path) -> None:  # noqa: ANN401
    browser.open(page)
    assert browser.value(COUNTS) == "0 of 4 reviewed, 0 corrected"
    assert browser.value(FOCUSED) == "Text of a.png"
    browser.press("1", ALT)
    browser.press("Enter")
    assert browser.value(FOCUSED) == "Text of c.png"
    browser.press("End")
    browser.type(" 8 ")
    assert browser.value(COUNTS) == "2 of 4 reviewed, 1 corrected, 1 edited but not accepted"
    browser.press("Enter")
    assert browser.value(FOCUSED) == "Text of e.png"
    browser.press("Enter")  # nothing is typed, so it is not said to be blank
    assert browser.value(COUNTS) == "3 of 4 reviewed, 2 corrected"
    assert labels_of(browser) == {"a.png": "13", "b.png": HOSTILE, "c.png": "8"}
    assert browser.complaints() == []


def test_what_was_done_can_be_undone(browser: Any, page: Path) -> None:  # noqa: ANN401
    browser.open(page)
    browser.press("ArrowDown")
    browser.press("ArrowUp")
    assert browser.value(FOCUSED) == "Text of a.png"
    browser.press("Backspace")
    browser.type("77")
    assert browser.value("document.activeElement.value") == "177"
    browser.press("Escape")
    assert browser.value("document.activeElement.value") == "12"
    browser.press("Enter")
    browser.press("Enter")
    browser.press("Escape")  # the row at hand is untouched, so the one before is opened again
    assert browser.value(FOCUSED) == "Text of b.png"
    assert labels_of(browser) == {"a.png": "12"}


def test_progress_outlives_the_page(browser: Any, page: Path) -> None:  # noqa: ANN401
    # A page that is left milliseconds after it stored something may take that along when the machine is busy: Chromium
    # passes it on from one process to another. No person is as quick, so it is tried again.
    for _ in range(20):
        browser.open(page)
        if browser.value(COUNTS) == "1 of 4 reviewed, 1 corrected":
            break
        browser.type("99")
        browser.press("Enter")
        assert browser.value(COUNTS) == "1 of 4 reviewed, 1 corrected"
    assert browser.value(COUNTS) == "1 of 4 reviewed, 1 corrected"
    assert browser.value(FOCUSED) == "Text of b.png"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace('"text":"12"', '"text":"21"'), encoding="utf-8")
    browser.open(page)  # the job was done again and reads otherwise: what was said of the old text is not of this
    assert browser.value(COUNTS) == "0 of 4 reviewed, 0 corrected"


def test_rows_are_found_and_clicked(browser: Any, page: Path) -> None:  # noqa: ANN401
    browser.open(page)
    assert browser.value(SHOWN) == ["a.png", "b.png", "c.png", "d.png", "e.png", "f.png"]
    browser.click("[data-reason=confidence]")
    assert browser.value(SHOWN) == ["b.png", "c.png", "d.png"]
    browser.click("article:not([hidden]) .accept")
    browser.click("#open")
    assert browser.value(SHOWN) == ["c.png"]
    browser.click("article:not([hidden]) [data-suggestion]")
    browser.click("[data-reason=all]")
    assert browser.value(SHOWN) == ["a.png", "e.png"]
    browser.click("#open")
    browser.click("#search")
    browser.type("E.PNG")
    assert browser.value(SHOWN) == ["e.png"]
    browser.click("#save")
    lines = browser.downloaded().read_text(encoding="utf-8").splitlines()
    assert lines == [f"b.png\t{HOSTILE}", "c.png\t7"]
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [400, 1200])
def test_it_fits_into_the_window(browser: Any, page: Path, width: int) -> None:  # noqa: ANN401
    browser.show(width, 800)
    browser.open(page)
    assert browser.value("document.documentElement.scrollWidth") <= width
    loaded = "[...document.images].every((each) => each.complete && each.naturalWidth > 0)"
    assert browser.value(loaded)


@pytest.mark.slow
def test_two_thousand_rows(browser: Any, tmp_path: Path, row: MakeRow, strip: Strip) -> None:  # noqa: ANN401
    tokens = [{"text": character, "confidence": 0.7} for character in "0123456789"]
    chosen = [Chosen(row(f"{number}.png", "0123456789", tokens=tokens), "confidence") for number in range(2_000)]
    path = tmp_path / "many.html"
    path.write_text(render_page(Review(str(path), [], chosen, [strip] * 2_000), repr), encoding="utf-8")
    browser.open(path)
    for _ in range(3):
        browser.press("Enter")
    assert browser.value(COUNTS) == "3 of 2000 reviewed, 0 corrected"
    browser.click("article:last-child .accept")
    assert json.loads(browser.value(f"JSON.stringify({SHOWN})"))[-1] == "1999.png"
    assert labels_of(browser).keys() == {"0.png", "1.png", "2.png", "1999.png"}
