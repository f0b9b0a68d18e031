"""Fetching fonts: what is unpacked, and what is left out."""

import importlib.util
import io
import json
import sys
import tarfile
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("fontTools", reason="needs the train extra")

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTFont

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    specification = importlib.util.spec_from_file_location("fetch_fonts", SCRIPTS / "fetch_fonts.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["fetch_fonts"] = module
    specification.loader.exec_module(module)
    return module


def make_font(path: Path, drawn: str, blank: str = "") -> Path:
    """Writes a font that draws a square for every character of `drawn` and nothing for those of `blank`."""
    pen = TTGlyphPen(None)
    for number, point in enumerate([(50, 0), (50, 600), (450, 600), (450, 0)]):
        (pen.lineTo if number else pen.moveTo)(point)
    pen.closePath()
    square, empty = pen.glyph(), TTGlyphPen(None).glyph()
    names = {ord(character): f"g{ord(character)}" for character in drawn + blank}
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", *names.values()])
    builder.setupCharacterMap(names)
    glyphs = {f"g{ord(character)}": square for character in drawn} | {f"g{ord(one)}": empty for one in blank}
    builder.setupGlyf({".notdef": empty, **glyphs})
    builder.setupHorizontalMetrics(dict.fromkeys([".notdef", *names.values()], (500, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": "Squares", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    if path.suffix == ".woff2":
        builder.font.flavor = "woff2"
    builder.save(path)
    return path


def test_a_complete_font_misses_nothing(script: ModuleType, tmp_path: Path) -> None:
    assert script.missing_characters(make_font(tmp_path / "a.ttf", "0123456789.:-"), "0123456789.:-") == ""


def test_characters_without_glyph_or_ink_are_missing(script: ModuleType, tmp_path: Path) -> None:
    assert script.missing_characters(make_font(tmp_path / "a.ttf", "012", blank="-"), "012-+") == "-+"


def test_web_fonts_are_unwrapped(script: ModuleType, tmp_path: Path) -> None:
    source = make_font(tmp_path / "squares.woff2", "01")
    candidate = script.Candidate(source, "printed", "npm:squares", "1.0.0", "OFL-1.1")
    kept = script.keep(candidate, tmp_path / "fonts", ["OFL-1.1"], "01")
    assert kept == tmp_path / "fonts" / "printed" / "squares.ttf"
    assert TTFont(kept).flavor is None


def test_a_licence_that_is_not_listed_is_left_out(script: ModuleType, tmp_path: Path) -> None:
    source = make_font(tmp_path / "squares.ttf", "01")
    candidate = script.Candidate(source, "printed", "npm:squares", "1.0.0", "unstated")
    assert script.keep(candidate, tmp_path / "fonts", ["OFL-1.1"], "01") is None
    assert not (tmp_path / "fonts").exists()


def test_a_damaged_font_is_left_out(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "squares.woff2").write_bytes(b"")
    candidate = script.Candidate(tmp_path / "squares.woff2", "printed", "npm:squares", "1.0.0", "OFL-1.1")
    assert script.keep(candidate, tmp_path / "fonts", ["OFL-1.1"], "01") is None


def test_an_incomplete_font_leaves_no_file(script: ModuleType, tmp_path: Path) -> None:
    source = make_font(tmp_path / "squares.ttf", "01")
    candidate = script.Candidate(source, "printed", "npm:squares", "1.0.0", "OFL-1.1")
    assert script.keep(candidate, tmp_path / "fonts", ["OFL-1.1"], "012") is None
    assert not list((tmp_path / "fonts").rglob("*.ttf"))


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        (["latin-400-normal", "latin-700-normal", "latin-900-normal", "latin-400-italic"], [400, 700]),
        (["latin-300-normal", "latin-ext-400-normal", "cyrillic-400-normal"], [300]),
        (["latin-ext-400-normal"], []),
    ],
)
def test_the_upright_latin_weights_are_taken(
    script: ModuleType, tmp_path: Path, files: list[str], wanted: list[int]
) -> None:
    tarball = tmp_path / "squares.tgz"
    with tarfile.open(tarball, "w:gz") as archive:
        members = {f"package/files/squares-{name}.woff2": b"" for name in files}
        members["package/package.json"] = json.dumps({"version": "5.3.0", "license": "OFL-1.1"}).encode()
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    found = list(script.unpack_fontsource(tarball, "printed", "squares", tmp_path))
    assert [one.path.name for one in found] == [f"squares-latin-{weight}-normal.woff2" for weight in wanted]
    assert all((one.version, one.licence) == ("5.3.0", "OFL-1.1") for one in found)


def test_the_list_of_fonts_is_sound() -> None:
    settings = tomllib.loads((SCRIPTS / "fonts.toml").read_text())
    folders = set(settings["required"])
    assert set(settings["fontsource"]) == folders
    names = [name for members in settings["fontsource"].values() for name in members]
    assert len(names) == len(set(names))
    for entry in settings["debian"]:
        assert set(entry) == {"package", "folder", "licence", "files"}
        assert entry["folder"] in folders
        assert entry["licence"] in settings["licences"]
