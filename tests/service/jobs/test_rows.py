import json
import os
from pathlib import Path

import pytest

from glyphline.models.decoding import Alternative, Reading, Token
from glyphline.models.errors import (
    EmptyImageError,
    GlyphlineError,
    ImageTooLargeError,
    ImageTooWideError,
    UndecodableImageError,
)
from glyphline.service.jobs.rows import Row, RowError, one_cell, printable, unprinted

BEST = Alternative("12", 0.98765432, -0.25, (Token("1", 0.99, (0.123456, 9.0)), Token("2", 0.98, None)), False)
OTHER = Alternative("72", 0.01, -4.5, (), False)
READING = Reading("12", 0.98765432, (BEST, OTHER), False)


def test_a_reading() -> None:
    assert Row("a.png", READING, "digits", 1).as_json() == {
        "source": "a.png",
        "text": "12",
        "confidence": 0.987654,
        "truncated": False,
        "error": None,
        "model": "digits",
        "version": 1,
    }


def test_alternatives_tokens_and_reference_are_extra() -> None:
    row = Row("a.png", READING, "digits", 1, "13").as_json(alternatives=True, tokens=True)
    assert row["reference"] == "13"
    assert row["tokens"] == [
        {"text": "1", "confidence": 0.99, "span": [0.12, 9.0]},
        {"text": "2", "confidence": 0.98, "span": None},
    ]
    assert [each["text"] for each in row["alternatives"]] == ["12", "72"]
    assert row["alternatives"][1] == {"text": "72", "confidence": 0.01, "log_probability": -4.5, "tokens": []}


def test_an_error_has_no_text_where_a_blank_image_has_an_empty_one() -> None:
    failed = Row("a.png", RowError("empty_image", "no bytes"), "digits", 1).as_json(alternatives=True, tokens=True)
    blank = Row("a.png", Reading("", 1.0, (Alternative("", 1.0, 0.0),)), "digits", 1).as_json()
    assert failed["text"] is None
    assert failed["error"] == {"code": "empty_image", "message": "no bytes"}
    assert blank["text"] == ""
    assert blank["error"] is None
    assert list(failed) == list(blank)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EmptyImageError("x"), "empty_image"),
        (UndecodableImageError("x"), "undecodable_image"),
        (ImageTooLargeError("x"), "image_too_large"),
        (ImageTooWideError("x"), "image_too_wide"),
        (FileNotFoundError(2, "No such file"), "file_not_found"),
        (PermissionError(13, "Permission denied"), "permission_denied"),
        (IsADirectoryError(21, "Is a directory"), "unreadable_file"),
    ],
)
def test_error_codes(error: GlyphlineError | OSError, code: str) -> None:
    assert RowError.of(error).code == code


def test_names_that_are_not_utf8_can_be_written() -> None:
    row = Row("\udcff.png", RowError("file_not_found", "\udcff.png"), "digits", 1).as_json()
    assert json.dumps(row, ensure_ascii=False).encode()
    assert row["source"] == "\\xff.png"


def test_names_that_are_not_utf8_are_found_again(tmp_path: Path) -> None:
    name = os.fsdecode("café ".encode() + b"\xe9\xff.png")
    assert printable(name) == "café \\xe9\\xff.png"
    assert unprinted(printable(name)) == name
    assert unprinted("a\\x20\\n.png") == "a\\x20\\n.png"
    (tmp_path / "a\\xff.png").touch()
    assert unprinted(str(tmp_path / "a\\xff.png")) == str(tmp_path / "a\\xff.png"), "a file of the written name itself"


def test_a_cell_stays_on_one_line_and_in_one_column() -> None:
    assert one_cell("scans/a b.tar#1.png") == "scans/a b.tar#1.png"
    assert one_cell("a\tb\nc\r") == "a%09b%0Ac%0D"
