"""The page: whole in itself, with every mistake's picture; and what is drawn over the pictures."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.decoding.readings import Token
from glyphline.models.error_rate import edit_counts
from glyphline.models.recognizer import Recognizer, load_recognizer
from glyphline.training.datasets.real import read_strips
from glyphline.training.datasets.samples import Sample
from glyphline.training.report.measure import Line, measure
from glyphline.training.report.pictures import choose_worst, draw_line, token_kinds
from glyphline.training.report.write import compare_models, describe_model, write_report


@pytest.fixture(scope="module")
def recognizers() -> list[Recognizer]:
    return [load_recognizer("digits"), load_recognizer("digits-ctc")]


class Page(HTMLParser):
    """Collects what a page refers to, and checks that its elements nest."""

    VOID = frozenset({"meta", "br", "hr", "img", "link", "wbr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []
        self.ids: set[str] = set()
        self.elements: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.notice(tag, attrs)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.notice(tag, attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def notice(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        for name, value in attrs:
            if name in ("href", "src", "xlink:href"):
                self.references.append(value or "")
            if name == "id":
                self.ids.add(value or "")


@pytest.fixture(scope="module")
def report(recognizers: list[Recognizer], strips_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    samples = read_strips(strips_folder)[:8]
    samples[1] = replace(samples[1], text="<b>&", source='"><script>alert(1)</script>')
    measured = [
        [measure(each, samples, "strips & <strips>", compare_confidences=True), measure(each, samples[:1], "one")]
        for each in recognizers
    ]
    folder = tmp_path_factory.mktemp("report")
    models = [
        describe_model(row[0].figures.model, each, DecodingOptions())
        for each, row in zip(recognizers, measured, strict=True)
    ]
    write_report(folder, models, measured, "glyphline evaluate strips")
    return folder


def test_the_page_needs_nothing_else(report: Path) -> None:
    text = (report / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    links = {reference[1:] for reference in page.references if reference.startswith("#")}
    assert links <= page.ids
    assert {reference[:15] for reference in page.references if not reference.startswith("#")} == {"data:image/png;"}
    assert not {"script", "link", "iframe", "object"} & set(page.elements)
    assert not re.search(r"url\((?!#)|@import", text)


def test_labels_and_names_stay_text(report: Path) -> None:
    text = (report / "report.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in text
    assert "strips &amp; &lt;strips&gt;" in text


def test_plots_take_the_colours_of_the_page(report: Path) -> None:
    text = (report / "report.html").read_text(encoding="utf-8")
    assert "var(--series-2)" in text
    assert not re.search(r"#0a0b0\d|#010203|#040506", text)


def test_the_record_has_every_figure(report: Path, recognizers: list[Recognizer]) -> None:
    record = json.loads((report / "report.json").read_text(encoding="utf-8"))
    assert [model["head"] for model in record["models"]] == ["attention", "ctc"]
    assert [model["version"] for model in record["models"]] == [each.bundle.manifest.version for each in recognizers]
    assert [(row["model"], row["data_set"]) for row in record["results"]] == [
        (model["label"], name) for model in record["models"] for name in ("strips & <strips>", "one")
    ]
    assert [row["data_set"] for row in record["comparisons"]] == ["strips & <strips>", "one"]
    assert record["comparisons"][0]["second"] == record["models"][1]["label"]


def test_every_further_model_is_compared_with_the_first(recognizers: list[Recognizer], strips_folder: Path) -> None:
    samples = read_strips(strips_folder)[:4]
    rows = [
        [measure(each, samples, "strips", model=str(number))]
        for number, each in enumerate([*recognizers, *recognizers[:1]])
    ]
    assert [(each.first, each.second) for each in compare_models(rows)] == [("0", "1"), ("0", "2")]
    assert compare_models(rows)[1].difference.rates.exact == 0
    assert compare_models(rows[:1]) == []


@pytest.mark.parametrize(
    ("head", "bands", "says"),
    [("ctc", False, "There are none where it read nothing"), ("flatten", True, "does not tell where it read what")],
)
def test_what_is_said_of_places_follows_from_the_head(
    recognizers: list[Recognizer], strips_folder: Path, tmp_path: Path, head: str, bands: bool, says: str
) -> None:
    sample = replace(read_strips(strips_folder)[0], pixels=np.full((40, 60), 255, dtype=np.uint8))  # reads as nothing
    measured = measure(recognizers[1], [sample], "one")
    note = describe_model(measured.figures.model, recognizers[1], DecodingOptions())
    assert note.places
    write_report(tmp_path, [replace(note, head=head, places=not bands)], [[measured]], "glyphline evaluate strips")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert says in page
    assert ("does not tell where" in page) == bands
    assert ("Coloured bands" in page) != bands


def test_texts_wrap_between_words(recognizers: list[Recognizer], strips_folder: Path, tmp_path: Path) -> None:
    sample = replace(read_strips(strips_folder)[0], text="9 9")
    measured = measure(recognizers[1], [sample], "one")
    write_report(tmp_path, [describe_model("m", recognizers[1], DecodingOptions())], [[measured]], "")
    assert "</i><wbr>" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.fixture
def make_line() -> Callable[..., Line]:
    def make(truth: str, tokens: list[tuple[str, tuple[float, float] | None]], compare: str = "all") -> Line:
        text = "".join(symbol for symbol, _ in tokens)
        read = "".join(filter(str.isdigit, text)) if compare == "digits" else text
        sample = Sample(np.full((128, 256), 200, dtype=np.uint8), truth, "a.png")
        marks = tuple(Token(symbol, 0.9, span) for symbol, span in tokens)
        return Line(sample, truth, read, text, 0.8, marks, edit_counts(truth, read), False, "")

    return make


class TestPictures:
    def test_marks_lie_where_the_model_looked(self, make_line: Callable[..., Line]) -> None:
        picture = draw_line(make_line("17", [("1", (0, 64)), ("2", (64, 256))]), "all")
        assert (picture.width, picture.height) == (128, 64)  # brought to a modest height, and the marks with it
        assert [(mark.left, mark.right, mark.kind) for mark in picture.marks] == [(0, 32, "right"), (32, 128, "wrong")]
        assert picture.pairs == (("1", "1"), ("7", "2"))
        assert picture.text == ""

    def test_a_model_that_does_not_tell_has_no_marks(self, make_line: Callable[..., Line]) -> None:
        picture = draw_line(make_line("1", [("1", None), ("2", None)]), "all")
        assert picture.marks == ()
        assert picture.rows == 1

    def test_symbols_that_crowd_stand_in_two_rows(self, make_line: Callable[..., Line]) -> None:
        spans = [("1", (0.0, 20.0)), ("2", (4.0, 24.0)), ("3", (40.0, 60.0))]
        picture = draw_line(make_line("123", spans), "all")
        assert [mark.row for mark in picture.marks] == [0, 1, 0]
        assert picture.rows == 2

    def test_what_is_not_compared_is_neither_right_nor_wrong(self, make_line: Callable[..., Line]) -> None:
        line = make_line("125", [("1", None), (" ", None), ("2", None), (",", None), ("6", None)], "digits")
        assert token_kinds(line, "digits") == ["right", "ignored", "right", "ignored", "wrong"]
        picture = draw_line(line, "digits")
        assert picture.text == "1 2,6"

    def test_a_symbol_of_several_characters_is_right_if_all_are(self, make_line: Callable[..., Line]) -> None:
        line = make_line("the cat", [("the", None), (" car", None)])
        assert token_kinds(line, "all") == ["right", "wrong"]

    def test_the_worst_are_the_surest_and_the_furthest(self, make_line: Callable[..., Line]) -> None:
        near, far, right = make_line("123", [("1", None), ("2", None)]), make_line("123", []), make_line("", [])
        lines = [replace(near, confidence=0.9), right, replace(near, confidence=0.2), replace(far, confidence=0.1)]
        surest, furthest = choose_worst(lines, 1)
        assert surest == [lines[0]]
        assert furthest == []
        surest, furthest = choose_worst([*lines, replace(near, confidence=0.95)], 2)
        assert [line.confidence for line in surest] == [0.95, 0.9]
        assert furthest == [lines[3]]
