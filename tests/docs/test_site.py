"""The documentation's site is built strictly: a link to nothing, or a page without a place, ends the build."""

from __future__ import annotations

import json
import logging
import re
import time
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("mkdocs", reason="needs the extra `docs`")
pytest.importorskip("material", reason="needs the extra `docs`")

from markdown_text import outside_code
from mkdocs.commands.build import build
from mkdocs.config import load_config
from pages import gather

if TYPE_CHECKING:
    from tests.conftest import Browser

PATIENCE_SECONDS = 60
ROOT = Path(__file__).parents[2]
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
MOST_LINES = 620  # of a page: longer ones are two


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, in a folder."""
    folder = tmp_path_factory.mktemp("documentation")
    gather(ROOT, folder / "pages")
    told: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    ear = Ear(logging.WARNING)
    logging.getLogger("mkdocs").addHandler(ear)
    try:
        docs, output = str(folder / "pages"), str(folder / "site")
        build(load_config(str(ROOT / "mkdocs.yml"), docs_dir=docs, site_dir=output))
    finally:
        logging.getLogger("mkdocs").removeHandler(ear)
    assert told == []
    return folder / "site"


class _Page(HTMLParser):
    """Collects headings, and what a browser would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.headings: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "h1":
            self.headings.append(tag)
        if tag in LOADED and values.get("rel") not in ("canonical", "prev", "next"):
            self.loaded.append(values.get(LOADED[tag]) or "")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of the tools that build it
def test_the_site_is_built_strictly_and_needs_no_network(site: Path) -> None:
    pages = {
        path.relative_to(site).as_posix(): _Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")
    }
    assert {"index.html", "api.html", "commands.html", "python.html", "models/digits.html"} <= set(pages)
    outside = {
        name: [url for url in page.loaded if url.startswith(("http:", "https:", "//"))] for name, page in pages.items()
    }
    assert {name: urls for name, urls in outside.items() if urls} == {}
    assert [name for name, page in pages.items() if name != "404.html" and page.headings != ["h1"]] == []

    found = json.loads(
        re.sub(r"^var __index = ", "", (site / "search" / "search_index.js").read_text(encoding="utf-8"))
    )
    titles = {entry["title"] for entry in found["docs"]}
    assert {"Quick start", "Recognize", "glyphline transcribe", "Character error rate"} <= titles
    assert not [entry for entry in found["docs"] if re.match(r"repository/.*\.(py|toml|yaml)\.html", entry["location"])]

    shown = (site / "python.html").read_text(encoding="utf-8")
    assert "DecodingOptions" in shown
    assert "submit_reference" in shown
    assert ":::" not in shown


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_in_a_browser_the_search_finds_and_nothing_is_fetched(site: Path, browser: Browser) -> None:
    browser.open(site / "index.html")
    browser.show(1280, 900)
    browser.click(".md-search__input")
    browser.type("IMAGE_FATAL")
    deadline = time.monotonic() + PATIENCE_SECONDS
    found = "[...document.querySelectorAll('.md-search-result__link')].map(link => link.href)"
    while not any("limits.html" in link for link in browser.value(found)):
        assert time.monotonic() < deadline, "the search found nothing"
        time.sleep(0.05)
    for page in ("index", "concepts", "architecture", "api", "commands", "python", "studies", "models/digits"):
        browser.show(390, 844)
        browser.open(site / f"{page}.html")
        assert browser.complaints() == []
        assert browser.value("document.documentElement.scrollWidth <= innerWidth"), f"{page} is wider than a phone"
        broken = "[...document.images].filter(image => image.complete && !image.naturalWidth).map(image => image.src)"
        assert browser.value(broken) == []


def prose(text: str) -> str:
    """What of a page is not code."""
    said: list[str] = []

    def keep(part: str) -> str:
        said.append(part)
        return part

    outside_code(text, keep)
    return "".join(said)


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_a_page_begins_with_its_title_and_what_it_is_for(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    lines = text.splitlines()
    assert lines[0].startswith("# ")
    assert not lines[2].startswith(("#", "|", "!", "-", "```")), "after the title a page says what it is for"
    assert len(lines) <= MOST_LINES
    levels = [len(mark) for mark in re.findall(r"^(#+) ", prose(text), re.MULTILINE)]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), "a heading skips a level"
    assert not [line for line in lines if line.startswith("```mermaid")], "the site has no mermaid: draw an SVG"
