import json
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from glyphline.cli.exit_codes import ExitCode

Command = Callable[..., subprocess.CompletedProcess[str]]

CONFIG = """
name = "small"
alphabet = "0123456789.,:/-+ "
seed = 3
max_output_length = 16

[image]
height = 16

[network]
heads = ["ctc"]
channels = [8, 8, 16, 16]
encoder_cell = "gru"
encoder_size = 16
encoder_layers = 1

[loop]
epochs = 1
strips_per_epoch = 96
batch_columns = 1024
workers = 0
validate_every = 1
precision = "fp32"

[[sources]]
kind = "real"
path = "strips"

[validation.strips]
kind = "folder"
path = "strips"
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra `train`")
def test_train_export_evaluate_recognize(
    invoke: Command, strips_folder: Path, strips: list[tuple[Path, str]], tmp_path: Path
) -> None:
    (tmp_path / "small.toml").write_text(CONFIG)
    run, models = tmp_path / "run", tmp_path / "models"
    data = ("--data-root", strips_folder.parent)
    trained = invoke("train", tmp_path / "small.toml", *data, "--output", run)
    assert trained.returncode == 0, trained.stderr
    export = ("export", run, "--output", models, "--name", "small", "--version", "3", *data)
    exported = invoke(*export)
    assert exported.returncode == 0, exported.stderr
    assert exported.stdout == f"{models / 'small' / '3'}\n"
    again = invoke(*export)
    assert again.returncode == ExitCode.USAGE
    assert "exists" in again.stderr
    evaluated = invoke("evaluate", strips_folder, "--model", models / "small" / "3", "--json")
    assert json.loads(evaluated.stdout)["images"] == len(strips)
    read = invoke("recognize", strips[0][0], "--model-repository", models, "--json")
    assert (json.loads(read.stdout)["model"], json.loads(read.stdout)["version"]) == ("small", 3)
