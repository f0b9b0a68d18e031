"""What stands in a report as its command is what was typed; options that several commands have mean the same in all."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.main import get_command

from glyphline.cli import app
from glyphline.cli.exit_codes import ExitCode

Command = Callable[..., subprocess.CompletedProcess[str]]

needs_training = pytest.mark.skipif(find_spec("matplotlib") is None, reason="needs the extra `train`")


@pytest.fixture
def place(tmp_path: Path, strips_folder: Path) -> Path:
    """A folder with strips whose path has to be quoted."""
    shutil.copytree(strips_folder, tmp_path / "my strips")
    return tmp_path


@needs_training
def test_a_report_shows_the_command_as_it_was_typed(
    invoke: Command, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "words.txt").write_text("17\n2042\n")
    typed = ["evaluate", "my strips", "--limit", "2", "-m", "digits-ctc", "--lexicon", "words.txt", "--report", "r"]
    monkeypatch.setenv("GLYPHLINE_DATA_ROOT", "else where")
    done = invoke(*typed, cwd=place)
    assert done.returncode == 0, done.stderr
    record = json.loads((place / "r" / "report.json").read_text())
    assert shlex.split(record["command"]) == ["glyphline", "evaluate", "--data-root", "else where", *typed[1:]]
    assert record["models"][0]["decoder"] == "beam search of width 20 with a lexicon"
    monkeypatch.delenv("GLYPHLINE_DATA_ROOT")
    again = shlex.split(record["command"])[1:]
    assert invoke(*again, cwd=place).returncode == 0


def test_figures_with_a_lexicon_are_not_the_models_own(invoke: Command, place: Path) -> None:
    (place / "words.txt").write_text("17\n")
    done = invoke("evaluate", "my strips", "--lexicon", "words.txt", "--record", cwd=place)
    assert done.returncode == ExitCode.USAGE
    assert "--lexicon" in done.stderr


@needs_training
def test_the_data_root_is_the_same_in_all_commands_and_wanted_only_for_what_is_below_it(
    invoke: Command, place: Path
) -> None:
    top = get_command(app).commands  # type: ignore[attr-defined]  # typer's own copy of click has no types
    every = {**top, **top["data"].commands}
    roots = {
        name: parameter.default
        for name, command in every.items()
        for parameter in command.params
        if "--data-root" in parameter.opts and name != "study"  # whose `all` tells by it what to leave out
    }
    assert set(roots.values()) == {Path("data")}
    assert {"train", "export", "evaluate", "quantise", "validate", "init", "preview"} <= set(roots)
    assert invoke("evaluate", "blank", "--limit", "2", cwd=place).returncode == 0, "it is drawn and needs no data"
    assert invoke("evaluate", "my strips", "--limit", "2", cwd=place).returncode == 0
    missing = invoke("evaluate", "meters", cwd=place)
    assert missing.returncode == ExitCode.USAGE
    assert "there is no folder data: --data-root" in missing.stderr


def test_help_tells_whose_default_answers(invoke: Command) -> None:
    text = re.sub(r"\s+", " ", invoke("recognize", "--help").stdout)
    assert "default: digits; with --server, the server's own default" in text


@needs_training
def test_a_preview_that_was_there_is_said_to_be_replaced(invoke: Command, place: Path) -> None:
    first, second = (invoke("data", "preview", "my strips", "--count", "1", cwd=place) for _ in range(2))
    assert first.stdout == second.stdout == "preview.png\n"
    assert first.stderr == ""
    assert "replaced preview.png" in second.stderr


@needs_training
def test_the_commands_of_a_first_configuration_are_commands(invoke: Command, place: Path) -> None:
    written = invoke("data", "init", "my strips", "--group", "^(.)", "--data-root", ".", "--quiet", cwd=place).stdout
    head = written.partition("\nname = ")[0]
    assert re.search(r"(\d+) of 26 strips are held out: (\d+) of \d+ groups", head)
    assert "call this file my-strips.toml" in head
    assert '\n# licence = "' in written
    assert "\n# [[data]]\n" in written
    commands = [shlex.split(line[1:]) for line in head.splitlines() if line.startswith("#   glyphline ")]
    assert [words[1] for words in commands] == ["data", "data", "train", "export", "evaluate", "serve"]
    assert "--report" in commands[4]
    top = get_command(app).commands  # type: ignore[attr-defined]
    for words in commands:
        command, rest = top[words[1]], words[2:]
        if words[1] == "data":
            command, rest = command.commands[words[2]], words[3:]
        assert {word for word in rest if word.startswith("--")} <= {o for each in command.params for o in each.opts}
    (place / "my-strips.toml").write_text(written, encoding="utf-8")
    assert invoke(*commands[0][1:], "--quiet", cwd=place).returncode == 0
    assert invoke(*commands[1][1:], cwd=place).returncode == 0
    uncommented = re.sub(r"(?m)^# (\[\[data\]\]|(?:name|licence|use) = )", r"\1", written)
    (place / "my-strips.toml").write_text(uncommented, encoding="utf-8")
    assert invoke(*commands[0][1:], "--quiet", cwd=place).returncode == 0, "what is commented fits, too"
