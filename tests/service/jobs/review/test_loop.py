"""From a job to a better model: read, correct in a browser, train on what was corrected."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

CTRL = 2
CONFIG = """
name = "small"
alphabet = "0123456789.,:/-+ "
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
strips_per_epoch = 64
batch_columns = 1024
workers = 0
validate_every = 1
precision = "fp32"

[[sources]]
kind = "real"
path = "corrected"

[validation.corrected]
kind = "folder"
path = "corrected"
"""


def run(folder: Path, *arguments: str | Path) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GLYPHLINE_")}
    done = subprocess.run(
        [sys.executable, "-m", "glyphline", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        cwd=folder,
        env=kept | {"PYTHONUTF8": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra `train`")
def test_corrected_rows_train_a_model(browser: Any, strips_folder: Path, tmp_path: Path) -> None:  # noqa: ANN401
    shutil.copytree(strips_folder, tmp_path / "scans", ignore=shutil.ignore_patterns("labels.tsv"))
    run(tmp_path, "transcribe", "scans", "-o", "texts.jsonl", "--tokens", "--workers", "1", "--quiet")
    run(tmp_path, "review", "texts.jsonl")
    browser.open(tmp_path / "review.html")
    browser.type("/7")
    for _ in range(16):
        browser.press("Enter")
    browser.press("s", CTRL)
    labels = browser.downloaded()
    assert browser.complaints() == []
    told = run(tmp_path, "review", "texts.jsonl", "--labels", labels, "--dataset", "data/corrected")
    assert "16 pictures, 1 of them corrected" in told
    lines = (tmp_path / "data" / "corrected" / "labels.tsv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 16
    assert [line for line in lines if "/" in line.partition("\t")[2]] == [lines[0]]
    assert lines[0].endswith("/7")
    (tmp_path / "small.toml").write_text(CONFIG)
    run(tmp_path, "train", "small.toml", "--output", "run")
    assert list((tmp_path / "run" / "checkpoints").iterdir())
