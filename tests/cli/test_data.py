import json
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from PIL import Image

from glyphline.cli.data import FormatName, TargetName
from glyphline.cli.exit_codes import ExitCode

Command = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("matplotlib", "lmdb", "pyarrow", "fontTools")),
    reason="needs the extra `train`",
)


@pytest.fixture
def data(tmp_path: Path, strips_folder: Path) -> Path:
    """A data root with a copy of the real strips."""
    shutil.copytree(strips_folder, tmp_path / "strips")
    return tmp_path


def test_the_formats_are_those_of_the_readers() -> None:
    from typing import get_args  # noqa: PLC0415

    from glyphline.training.datasets.readers import FORMATS  # noqa: PLC0415
    from glyphline.training.datasets.writers import Target  # noqa: PLC0415

    assert [each.value for each in FormatName] == ["auto", *FORMATS]
    assert [each.value for each in TargetName] == list(get_args(Target))


def test_validate_finds_all_that_is_wrong_and_names_the_lines(invoke: Command, data: Path) -> None:
    clean = invoke("data", "validate", data / "strips", "--alphabet", "0123456789", "--quiet")
    assert clean.returncode == ExitCode.OK
    assert "0 errors, 0 warnings" in clean.stdout
    labels = data / "strips" / "labels.tsv"
    lines = labels.read_text().splitlines()
    names = [line.split("\t")[0] for line in lines]
    count = len(lines)
    (data / "strips" / "broken.png").write_bytes((data / "strips" / names[0]).read_bytes()[:60])
    Image.new("L", (9000, 20), 255).save(data / "strips" / "wide.png")
    Image.effect_noise((9, 40), 60).save(data / "strips" / "narrow.png")
    shutil.copy(data / "strips" / names[1], data / "strips" / "copy.png")
    shutil.copy(data / "strips" / names[1], data / "strips" / "other.png")
    text = lines[1].split("\t")[1]
    lines += [
        "broken.png\t1",
        "gone.png\t1",
        "gone_too.png\t1",
        "wide.png\t",
        "narrow.png\t11111111",
        f"copy.png\t{text}",
        "other.png\t5é ",
    ]
    labels.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = invoke("data", "validate", data / "strips", "--alphabet", "0123456789", "--json", "--quiet")
    assert found.returncode == ExitCode.FINDINGS
    assert int(ExitCode.FINDINGS) == 1
    report = json.loads(found.stdout)
    kinds = {(each["kind"], each["line"]) for each in report["findings"]}
    assert kinds == {
        ("unreadable", count + 1),
        ("missing", count + 2),
        ("missing", count + 3),
        ("empty label", count + 4),
        ("too wide", count + 4),
        ("too long", count + 5),
        ("duplicate", count + 6),
        ("two texts", count + 7),
        ("unknown character", count + 7),
        ("spaces", count + 7),
    }
    assert report["errors"] == 5
    shown = invoke("data", "validate", data / "strips", "--alphabet", "0123456789", "--show", "1")
    assert f"labels.tsv, line {count + 7}: other.png: 'é' (U+00E9), ' ' (U+0020) in '5é '" in shown.stdout
    assert "… and 1 more" in shown.stdout
    assert (
        "error: missing, 2 times: the picture that a label names is not there: training refuses to start"
        in shown.stdout
    )
    assert "add them to `alphabet`, or" in shown.stdout


def test_validate_finds_what_is_in_two_splits(invoke: Command, data: Path) -> None:
    invoke("data", "convert", data / "strips", data / "again", "--to", "lmdb", "--quiet")
    found = invoke("data", "validate", data / "strips", data / "again", "--quiet")
    assert found.returncode == 1
    assert "in two splits, 26 times" in found.stdout
    broken = invoke("data", "validate", data, "--quiet")
    assert broken.returncode == 1 or "labels.tsv" in broken.stdout
    assert invoke("data", "validate", data / "none").returncode == ExitCode.USAGE


def test_the_way_from_a_folder_to_a_configuration(invoke: Command, data: Path) -> None:
    written = invoke("data", "init", "strips", "--data-root", ".", "--quiet", cwd=data)
    assert written.returncode == 0, written.stderr
    (data / "strips.toml").write_text(written.stdout, encoding="utf-8")
    assert 'alphabet = "0123456789"' in written.stdout
    checked = invoke("data", "validate", "strips.toml", "--data-root", ".", "--json", "--quiet", cwd=data)
    parts = json.loads(checked.stdout)["parts"]
    assert checked.returncode == 0
    assert [part["role"] for part in parts] == ["training", "validation"]
    assert sum(part["strips"] for part in parts) == 26
    assert 0 < parts[1]["strips"] < 8
    shown = invoke("data", "preview", "strips.toml", "--data-root", ".", "--count", "3", cwd=data)
    assert shown.stdout == "preview.png\n"
    with Image.open(data / "preview.png") as sheet:
        assert sheet.width == 1600
    too_few = invoke("data", "init", "strips", "--group", "(.*)", "--data-root", ".", "--quiet", cwd=data)
    assert too_few.returncode == 0, "each name is a group of its own"
    one = invoke("data", "init", "strips", "--group", "()", "--data-root", ".", "--quiet", cwd=data)
    assert one.returncode == ExitCode.USAGE
    assert "tells too few groups apart" in one.stderr


def test_every_line_without_a_tab_is_named(invoke: Command, data: Path) -> None:
    labels = data / "strips" / "labels.tsv"
    lines = labels.read_text(encoding="utf-8").splitlines()
    for index in range(1, 15, 2):
        lines[index] = lines[index].replace("\t", " ")
    labels.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = invoke("data", "validate", data / "strips", "--show", "99", "--quiet")
    assert found.returncode == ExitCode.FINDINGS
    for index in range(1, 15, 2):
        assert f"  {labels}, line {index + 1}: {lines[index]!r}: no tab in this line\n" in found.stdout
    assert "error: no tab, 7 times: " in found.stdout
    refused = invoke("data", "init", data / "strips", "--quiet")
    assert (refused.returncode, refused.stdout) == (ExitCode.USAGE, "")
    assert f"{labels}, line 2: no tab between" in refused.stderr
    assert "; line 10: no tab" in refused.stderr
    assert "and 2 more such lines" in refused.stderr
    assert f"`glyphline data validate {data / 'strips'}` names all that is wrong" in refused.stderr


def test_a_first_configuration_is_refused_with_where_to_look(invoke: Command, data: Path) -> None:
    with (data / "strips" / "labels.tsv").open("a", encoding="utf-8") as labels:
        labels.write("gone.png\t1\n")
    refused = invoke("data", "init", data / "strips", "--quiet")
    assert (refused.returncode, refused.stdout) == (ExitCode.USAGE, "")
    assert "gone.png (" in refused.stderr
    assert f"`glyphline data validate {data / 'strips'}` names all that is wrong" in refused.stderr


def test_a_character_that_occurs_once_is_named(glyphline: Command, data: Path) -> None:
    labels = data / "strips" / "labels.tsv"
    lines = labels.read_text(encoding="utf-8").splitlines()
    lines[4] += "\x7f"
    labels.write_text("\n".join(lines) + "\n", encoding="utf-8")
    written = glyphline("data", "init", data / "strips")
    warning = "Only once or twice in all labels, so take them out if they are mistakes: "
    warning += f"'\\x7f' (U+007F) in {labels}, line 5"
    assert written.returncode == ExitCode.OK
    assert written.stderr == f"{warning}\n"
    assert f"\n# {warning}\nalphabet = " in written.stdout
    assert tomllib.loads(written.stdout)["alphabet"] == "0123456789\x7f"


@pytest.mark.parametrize("group", ["([", "a{99999999999}"])
def test_a_group_that_is_no_regular_expression_is_explained(invoke: Command, data: Path, group: str) -> None:
    done = invoke("data", "init", data / "strips", "--group", group)
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")
    assert f"glyphline data: --group {group!r}: no regular expression: " in done.stderr


def test_stats(invoke: Command, data: Path) -> None:
    done = invoke("data", "stats", data / "strips", "--plot", data / "plots" / "stats.png", "--json", "--quiet")
    [stats] = json.loads(done.stdout)
    assert (stats["strips"], stats["unreadable"], stats["characters"]["1"]) == (26, 0, 16)
    with Image.open(data / "plots" / "stats.png") as plot:
        assert plot.width > 1000
    assert "1\t16" in invoke("data", "stats", data / "strips", "--quiet").stdout


def test_conversion_keeps_bytes_and_counts_what_is_damaged(invoke: Command, data: Path) -> None:
    source = data / "strips"
    for target in ("lmdb", "webdataset", "parquet", "folder"):
        assert invoke("data", "convert", source, data / target, "--to", target, "--quiet").returncode == 0
        source = data / target
    line = (data / "strips" / "labels.tsv").read_text().splitlines()[3]
    name, text = line.split("\t")
    copies = [
        path for path in (data / "folder").rglob("*.*") if path.read_bytes() == (data / "strips" / name).read_bytes()
    ]
    assert len(copies) == 1
    assert invoke("data", "convert", data / "strips", data / "lmdb").returncode == ExitCode.USAGE
    (data / "strips" / name).write_bytes(b"\x89PNG")
    refused = invoke("data", "convert", data / "strips", data / "a", "--quiet")
    assert refused.returncode == ExitCode.USAGE
    assert "--skip-damaged" in refused.stderr
    skipped = invoke("data", "convert", data / "strips", data / "b", "--skip-damaged", "--quiet")
    assert "25 strips; 1 skipped, unreadable" in skipped.stdout
    assert text


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
