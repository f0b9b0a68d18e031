"""Strips are drawn as fonts and configurations say."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from glyphline.cli.exit_codes import ExitCode

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_rendering_refuses_what_a_font_cannot_write(invoke: Command, tmp_path: Path) -> None:
    import matplotlib as mpl  # noqa: PLC0415

    font = Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    (tmp_path / "words.txt").write_text("Straße\nслово\nλόγος\n", encoding="utf-8")
    render = ("data", "render", tmp_path / "out", "--fonts", font, "--words", tmp_path / "words.txt", "--quiet")
    done = invoke(*render, "--count", "8", "--per-strip", "2")
    assert done.returncode == 0, done.stderr
    assert "8 strips in 1 fonts" in done.stdout
    texts = {line.split("\t")[1] for line in (tmp_path / "out" / "labels.tsv").read_text(encoding="utf-8").splitlines()}
    assert {word for text in texts for word in text.split()} <= {"Straße", "слово", "λόγος"}
    (tmp_path / "words.txt").write_text("漢字\nslovo\n", encoding="utf-8")
    shutil.rmtree(tmp_path / "out")
    refused = invoke(*render)
    assert refused.returncode == ExitCode.USAGE
    assert "DejaVuSans.ttf lacks '漢' (U+6F22), '字' (U+5B57)" in refused.stderr
    assert invoke(*render, "--skip-missing", "--count", "3", "--clean").returncode == 0
    labels = (tmp_path / "out" / "labels.tsv").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[1] for line in labels] == ["slovo"] * 3
    code = invoke(
        "data",
        "render",
        tmp_path / "codes",
        "--fonts",
        font,
        "--alphabet",
        "AB",
        "--longest",
        "3",
        "--count",
        "5",
        "-q",
    )
    assert code.returncode == 0
    assert invoke("data", "render", tmp_path / "x", "--fonts", font).returncode == ExitCode.USAGE


def test_a_configuration_is_drawn_into_shards(invoke: Command, tmp_path: Path) -> None:
    mpl = pytest.importorskip("matplotlib")
    fonts = tmp_path / "fonts"
    fonts.mkdir()
    font = Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    (fonts / "face.ttf").write_bytes(font.read_bytes())
    (tmp_path / "words.txt").write_text("apple\npear\nplum\n", encoding="utf-8")
    config = """name = "fruit"
alphabet = "abcdefghijklmnopqrstuvwxyz "
[[sources]]
kind = "rendered"
fonts = "fonts"
style = "scene"
longest = 12
joined = 0.5
[sources.texts]
lists = ["words.txt"]
words = 1.0
[[sources]]
kind = "blank"
[validation.some]
kind = "drawn"
count = 5
source = { kind = "blank" }
"""
    (tmp_path / "fruit.toml").write_text(config, encoding="utf-8")
    shards = tmp_path / "shards"
    render = ("data", "render", shards, "--config", tmp_path / "fruit.toml", "--data-root", tmp_path, "--quiet")
    done = invoke(*render, "--source", "1", "--count", "30", "--to", "webdataset")
    assert done.returncode == 0, done.stderr
    assert "30 strips" in done.stdout
    alphabet = ("--alphabet", "abcdefghijklmnopqrstuvwxyz ")
    assert invoke("data", "validate", shards, *alphabet, "--quiet").returncode == 0
    assert invoke("data", "validate", tmp_path / "fruit.toml", "--data-root", tmp_path, "-q").returncode == 0
    sheet = tmp_path / "sheet.png"
    shown = invoke("data", "preview", tmp_path / "fruit.toml", "--data-root", tmp_path, "--output", sheet)
    assert shown.returncode == 0, shown.stderr
    assert sheet.exists()
    texts = ("data", "texts", tmp_path / "fruit.toml", "--data-root", tmp_path, "--count", "50", "--quiet")
    for name in ("one.txt", "two.txt"):
        written = invoke(*texts, "--output", tmp_path / name)
        assert written.returncode == 0, written.stderr
    lines = (tmp_path / "one.txt").read_text("utf-8").splitlines()
    assert len(lines) == 50
    assert {word for line in lines for word in line.lower().split()} >= {"apple", "pear", "plum"}
    assert (tmp_path / "two.txt").read_text("utf-8").splitlines() == lines
    assert invoke(*texts, "--output", tmp_path / "one.txt").returncode == ExitCode.USAGE
    for number, message in ((2, "no source has texts"), (9, "no source 9")):
        refused = invoke(*texts, "--output", tmp_path / "other.txt", "--source", number)
        assert refused.returncode == ExitCode.USAGE
        assert message in refused.stderr
        assert not (tmp_path / "other.txt").exists()
    (tmp_path / "words.txt").unlink()
    broken = invoke("data", "validate", tmp_path / "fruit.toml", "--data-root", tmp_path, "-q")
    assert broken.returncode == ExitCode.FINDINGS
    assert "words.txt is missing" in broken.stdout
    assert invoke(*render, "--source", "9").returncode == ExitCode.USAGE
    assert invoke(*render, "--words", tmp_path / "fruit.toml").returncode == ExitCode.USAGE
