"""All that is wrong with data sets is found, and where."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from glyphline.cli.exit_codes import ExitCode

Command = Callable[..., subprocess.CompletedProcess[str]]


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
