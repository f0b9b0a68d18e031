import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from glyphline.cli.exit_codes import ExitCode
from glyphline.models.repository import pretrained_root

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_figures_agree_with_those_of_a_transcription(glyphline: Command, strips_folder: Path, tmp_path: Path) -> None:
    evaluated = glyphline("evaluate", strips_folder, "--json", "--report", tmp_path / "report")
    assert evaluated.returncode == 0, evaluated.stderr
    result = json.loads(evaluated.stdout)
    transcribed = glyphline(
        "transcribe", strips_folder, "-o", tmp_path / "o", "--references", strips_folder / "labels.tsv", "--json"
    )
    figures = json.loads(transcribed.stdout)["evaluation"]
    assert result["images"] == figures["images"]
    for rate in ("exact", "cer"):
        assert round(result[rate], 6) == figures[rate]
        low, high = result[f"{rate}_interval"]
        assert low <= result[rate] <= high
    assert json.loads((tmp_path / "report" / "report.json").read_text())["results"] == [result]
    assert str(tmp_path / "report" / "report.html") in evaluated.stderr
    assert "<html" in (tmp_path / "report" / "report.html").read_text()


def test_plain_columns_and_a_limit(shipped_version: int, invoke: Command, strips_folder: Path) -> None:
    done = invoke("evaluate", strips_folder, "--limit", "3", "--decoder", "beam")
    assert done.returncode == 0, done.stderr
    headings, figures = (line.split("\t") for line in done.stdout.splitlines())
    assert headings[:5] == ["Data set", "Model", "Images", "Exact", "CER"]
    assert figures[:3] == [str(strips_folder), f"digits {shipped_version}", "3"]
    assert len(headings) == len(figures)


def test_two_models_have_a_line_each(shipped_version: int, invoke: Command, strips_folder: Path) -> None:
    models = ("--model", "digits", "--model", "digits-ctc", *2 * ("--model-version", str(shipped_version)))
    done = invoke("evaluate", strips_folder, "--limit", "2", *models)
    assert done.returncode == 0, done.stderr
    assert [line.split("\t")[1] for line in done.stdout.splitlines()] == [
        "Model",
        f"digits {shipped_version}",
        f"digits-ctc {shipped_version}",
    ]


def test_figures_can_be_recorded_in_the_bundle(invoke: Command, strips_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(pretrained_root(), tmp_path / "models")
    repository = ("--model-repository", tmp_path / "models")
    done = invoke("evaluate", strips_folder, *repository, "--record", "--json")
    assert done.returncode == 0, done.stderr
    (described,) = (
        model
        for model in map(json.loads, invoke("models", "--json", *repository).stdout.splitlines())
        if model["name"] == "digits"
    )
    recorded = {each["data_set"]: each for each in described["evaluation"]}[f"DATA/{strips_folder.name}"]
    assert recorded["images"] == json.loads(done.stdout)["images"]
    assert f"| DATA/{strips_folder.name} |" in invoke("models", "digits", *repository).stdout


def test_mistakes_are_explained(invoke: Command, strips_folder: Path) -> None:
    for arguments, code, reason in (
        (["nowhere"], ExitCode.USAGE, "nowhere is neither a folder"),
        (["meters", "--data-root", "nowhere"], ExitCode.USAGE, "--data-root"),
        ([strips_folder, "--model", "nonsense"], ExitCode.MODEL, "there is digits"),
        (
            [strips_folder, "-m", "digits", "-m", "digits-ctc", "--model-version", "2"],
            ExitCode.USAGE,
            "for each or for none",
        ),
        ([strips_folder, "--beam-width", "999"], ExitCode.USAGE, "--beam-width"),
    ):
        done = invoke("evaluate", *arguments)
        assert done.returncode == code, done.stderr
        assert reason in done.stderr
        assert "Traceback" not in done.stderr
