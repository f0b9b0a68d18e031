import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from glyphline.cli.exit_codes import ExitCode
from glyphline.cli.models import model_table
from glyphline.models.repository import pretrained_root

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_list(invoke: Command) -> None:
    lines = [line.split("\t") for line in invoke("models").stdout.splitlines()]
    described = [json.loads(line) for line in invoke("models", "--json").stdout.splitlines()]
    assert [(line[0], int(line[1]), line[2]) for line in lines] == [
        (model["name"], model["version"], model["head"]) for model in described
    ]
    assert "digits" in {model["name"] for model in described}
    assert {model["head"] for model in described} == {"ctc", "attention"}
    for model in described:
        assert set("0123456789.,:/-+ ") <= set(model["alphabet"])
        assert model["licence"]
        assert 0 < model["bytes"] < 50e6
        assert Path(model["path"], "manifest.json").exists()
        for evaluation in model["evaluation"]:
            low, high = evaluation["exact_interval"]
            assert low <= evaluation["exact"] <= high


def test_card(invoke: Command) -> None:
    folder = json.loads(invoke("models", "digits", "--json").stdout)["path"]
    done = invoke("models", "digits")
    assert done.stdout == Path(folder, "model_card.md").read_text(encoding="utf-8")


def test_unknown_model_lists_those_there_are(invoke: Command) -> None:
    done = invoke("models", "nonsense")
    assert done.returncode == ExitCode.MODEL
    assert "digits" in done.stderr


def test_a_repository_of_ones_own(shipped_version: int, glyphline: Command, tmp_path: Path) -> None:
    shutil.copytree(pretrained_root() / "digits", tmp_path / "models" / "digits")
    for arguments, variables in (
        (["--model-repository", tmp_path / "models"], {}),
        ([], {"GLYPHLINE_MODEL_REPOSITORY": str(tmp_path / "models")}),
    ):
        done = glyphline("models", "--json", *arguments, **variables)
        assert [json.loads(line)["path"] for line in done.stdout.splitlines()] == [
            str(tmp_path / f"models/digits/{shipped_version}")
        ]


def test_a_damaged_bundle_is_named(invoke: Command, tmp_path: Path) -> None:
    shutil.copytree(pretrained_root() / "digits", tmp_path / "digits")
    graph = next(tmp_path.glob("digits/*/*.onnx"))
    content = bytearray(graph.read_bytes())
    content[-1] ^= 1
    graph.write_bytes(content)
    for command in (["models"], ["models", "digits"], ["recognize", graph], ["transcribe", graph, "-o", "-"]):
        done = invoke(*command, "--model-repository", tmp_path)
        assert done.returncode == ExitCode.MODEL
        assert graph.name in done.stderr
        assert "Traceback" not in done.stderr


def test_one_damaged_bundle_hides_no_other(invoke: Command, tmp_path: Path) -> None:
    shutil.copytree(pretrained_root(), tmp_path / "models")
    (tmp_path / "models" / "bad" / "3").mkdir(parents=True)
    (tmp_path / "models" / "bad" / "3" / "manifest.json").write_text("{}")
    done = invoke("models", "--model-repository", tmp_path / "models")
    assert done.returncode == ExitCode.MODEL
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == [
        "digits",
        "digits-ctc",
        "handwriting",
        "words",
    ]
    assert "glyphline models: bad 3 is damaged: " in done.stderr
    described = [
        json.loads(line)
        for line in invoke("models", "--json", "--model-repository", tmp_path / "models").stdout.splitlines()
    ]
    assert [(each["name"], each["error"] is None) for each in described] == [
        ("digits", True),
        ("digits-ctc", True),
        ("handwriting", True),
        ("words", True),
        ("bad", False),
    ]
    assert described[4]["path"] == str(tmp_path / "models" / "bad" / "3")


@pytest.mark.parametrize("width", [80, 100])
def test_names_are_whole_on_narrow_terminals(width: int) -> None:
    rows = [
        (name, "12", "attention", "12.3 MB", "0123456789.,:/-+␣", "Apache-2.0", "98.4% (mnist-1-8, 4,000)")
        for name in ("digits", "digits-ctc", "handwritten-registers-of-1890")
    ]
    stream = io.StringIO()
    Console(file=stream, width=width).print(model_table(rows))
    table = stream.getvalue()
    assert all(f" {row[0]} " in table and " attention " in table for row in rows)
    assert "…" not in table
    assert {len(line) for line in table.splitlines()} == {width}


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("arguments", "shown"), [([], "Licence"), (["digits"], "digits")])
def test_a_terminal_gets_a_table_or_the_formatted_card(
    environment: dict[str, str], arguments: list[str], shown: str
) -> None:
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        process = subprocess.Popen(
            [sys.executable, "-m", "glyphline", "models", *arguments], stdout=theirs, env=environment
        )
        os.close(theirs)
        text = b""
        try:
            while part := terminal.read(4096):
                text += part
        except OSError:  # how Linux ends a terminal whose other side is closed
            pass
        assert process.wait() == 0
    assert shown in text.decode()


def test_a_version_folder_with_another_name_is_told(invoke: Command, tmp_path: Path) -> None:
    (tmp_path / "digits" / "v2").mkdir(parents=True)
    (tmp_path / "digits" / "v2" / "manifest.json").write_text("{}")
    done = invoke("models", "--model-repository", tmp_path)
    told = f"{tmp_path}/digits/v2 is passed over: a version's folder is called by its number, as {tmp_path}/digits/2"
    assert done.stderr == f"glyphline models: {told}\n"
