"""The script for machines with a GPU: it says so where there is none, and in small it runs on the CPU."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="needs the cpu extra")

import onnxruntime
from gpu import NO_DEVICE, PARTS, parse
from gpu_figures import FULL, Check
from gpu_reading import SEARCHES, compare, strip_of_width

from glyphline.models.decoding import Alternative, Reading
from glyphline.models.errors import EmptyImageError
from glyphline.models.image import normalise
from glyphline.models.recognizer import Recognizer, load_recognizer


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "benchmarks/gpu.py", *arguments]
    return subprocess.run(command, cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def recognizer() -> Recognizer:
    return load_recognizer("digits-ctc")


def reading(text: str, confidence: float = 0.9, score: float = -1.0) -> Reading:
    return Reading(text, confidence, (Alternative(text, confidence, score, (), False),), False)


@pytest.mark.parametrize(
    ("ours", "theirs", "passed"),
    [
        (reading("12"), reading("12"), True),
        (reading("12"), reading("12", 0.903, -1.005), True),
        (reading("12"), reading("12", 0.91), False),
        (reading("12"), reading("12", score=-1.1), False),
        (reading("12"), reading("13"), True),  # a tie
        (reading("12"), reading("13", score=-1.1), False),
        (reading("12"), EmptyImageError("empty"), False),
        (EmptyImageError("empty"), EmptyImageError("empty"), True),
    ],
)
def test_readings_are_alike_up_to_rounding(
    ours: Reading | EmptyImageError, theirs: Reading | EmptyImageError, passed: bool
) -> None:
    assert compare("it", [reading("1"), ours], [reading("1"), theirs]).passed is passed


def test_a_strip_is_as_wide_as_it_should_be(recognizer: Recognizer, strips: list[tuple[Path, str]]) -> None:
    settings = recognizer.bundle.manifest.image
    for width in (*FULL.widths, 300):
        image = strip_of_width(recognizer.bundle, width, strips[0][0].read_bytes())
        assert normalise(image, settings).shape == (settings.height, width)
        assert len(np.unique(image.pixels)) > 1


def test_all_is_done_on_the_first_gpu_unless_told_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    assert (parse([]).device, parse([]).only) == ("cuda", None)
    assert parse(["--only", *PARTS]).only == list(PARTS)
    with pytest.raises(SystemExit, match="2"):
        parse(["--device", "tpu"])
    assert "unknown device" in capsys.readouterr().err
    assert set(SEARCHES) == {"greedy", "beam"}
    assert FULL.batches == 2000


@pytest.mark.skipif("CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="there may be a GPU")
def test_without_a_gpu_it_says_what_to_install(repository_root: Path) -> None:
    done = run(repository_root, "--only", "reading", "--models", "digits-ctc")
    assert done.returncode == NO_DEVICE
    assert "glyphline[gpu]" in done.stderr
    assert "nvidia-smi" in done.stderr
    assert "Traceback" not in done.stderr


def holds(done: subprocess.CompletedProcess[str]) -> tuple[list[Check], list[dict[str, object]]]:
    """Checks of a run that must have succeeded, and its speeds."""
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert any(name.startswith("onnxruntime") for name in report["machine"])
    checks = [Check(**check) for check in report["checks"]]
    assert all(check.passed is not False for check in checks)
    return checks, report["speeds"]


@pytest.mark.slow
def test_in_small_it_reads_watches_and_measures_on_the_cpu(repository_root: Path) -> None:
    arguments = ["--device", "cpu", "--only", "reading", "memory", "speed", "--models", "digits", "digits-ctc"]
    checks, speeds = holds(run(repository_root, *arguments, "--json"))
    names = [check.name for check in checks]
    for model in ("digits", "digits-ctc"):
        assert {f"{model}: greedy", f"{model}: beam", f"{model}: alone and in company"} <= set(names)
        assert any(name.startswith(f"{model}: memory over") for name in names)
    assert "device tpu is refused" in names
    assert all(check.passed for check in checks)
    steps = ("loop, arrays", "loop, bound", "graph, arrays", "graph, bound", "files, one thread")
    assert {(speed["model"], speed["way"]) for speed in speeds} == {
        *(("digits", way) for way in steps),
        *(("digits-ctc", way) for way in ("arrays", "bound", "files, one thread")),
    }


@pytest.mark.slow
def test_in_small_it_serves_and_trains_on_the_cpu(repository_root: Path) -> None:
    pytest.importorskip("torch", reason="needs the train extra")
    arguments = ["--device", "cpu", "--only", "serving", "training", "--models", "digits-ctc"]
    checks, _ = holds(run(repository_root, *arguments, "--json"))
    passed = {check.name: check.passed for check in checks}
    assert passed.pop("training by two processes") is None
    assert passed == {
        "digits-ctc served: where it reads": True,
        "digits-ctc served: answers": True,
        "served: metrics": True,
        "training on cpu in fp32": True,
    }


@pytest.mark.gpu
@pytest.mark.slow
def test_on_a_gpu_everything_holds(repository_root: Path, gpu: str) -> None:
    checks, _ = holds(run(repository_root, "--device", gpu, "--json"))
    assert len(checks) > 20
