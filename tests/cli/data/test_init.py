"""The way from a folder of strips to a configuration."""

import json
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from glyphline.cli.exit_codes import ExitCode

Command = Callable[..., subprocess.CompletedProcess[str]]


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
