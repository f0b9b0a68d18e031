"""What all tests share: a guard for the folder layout, quiet machines, and pictures."""

import io
import os
import signal
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Before NumPy or a runtime starts its threads: tests share the machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from glyphline.models.repository import ModelRepository, pretrained_root

# A shell that starts the tests in the background makes them, and all that they start, deaf to Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parents[1]
TRAINING_PACKAGES = ("torch", "matplotlib", "onnx")

# How long an example takes depends on the machine's load, so no test fails for it.
hypothesis.settings.register_profile("glyphline", deadline=None, print_blob=True)
hypothesis.settings.load_profile("glyphline")


def pytest_configure() -> None:
    """Stops early, with the reason, if the one rule of the folder layout is broken."""
    stray = sorted(ROOT.glob("*/glyphline/__init__.py"))
    if stray:
        raise pytest.UsageError(f"remove {stray[0]}: glyphline spans four folders, and this file hides the other three")


def pytest_report_header() -> list[str]:
    """Says what is left out for want of packages."""
    missing = [name for name in TRAINING_PACKAGES if find_spec(name) is None]
    return [f"tests of training are left out: they need {', '.join(missing)} (the extra `train`)"] if missing else []


@pytest.fixture(scope="session")
def gpu() -> str:
    """A GPU that ONNX Runtime can use; without one the test is skipped."""
    onnxruntime = pytest.importorskip("onnxruntime")
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers() or not Path("/dev/nvidiactl").exists():
        pytest.skip("there is no GPU for ONNX Runtime here")
    return "cuda"


@pytest.fixture(scope="session")
def shipped_version() -> int:
    """The latest version of the shipped models, which share their versions."""
    return ModelRepository([pretrained_root()]).latest("digits")


@pytest.fixture(scope="session")
def repository_root() -> Path:
    """The folder that holds pyproject.toml."""
    return ROOT


@pytest.fixture(scope="session")
def strips_folder() -> Path:
    """Small real strips of digits with their labels.tsv; tests/data/README.md says where they come from."""
    return ROOT / "tests" / "data" / "strips"


@pytest.fixture(scope="session")
def words_folder() -> Path:
    """Small real strips of words, likewise."""
    return ROOT / "tests" / "data" / "words"


@pytest.fixture(scope="session")
def handwriting_folder() -> Path:
    """Small real strips of handwriting, likewise."""
    return ROOT / "tests" / "data" / "handwriting"


@pytest.fixture(scope="session")
def strips(strips_folder: Path) -> list[tuple[Path, str]]:
    """Every real strip: its file and its text."""
    lines = (strips_folder / "labels.tsv").read_text(encoding="utf-8").splitlines()
    return [(strips_folder / name, text) for name, text in (line.split("\t") for line in lines)]


@pytest.fixture(scope="session")
def encode() -> Callable[..., bytes]:
    """Returns a function that writes pixels, or a Pillow image, to the bytes of a file: `encode(pixels, "PNG")`."""

    def encode_image(picture: NDArray[Any] | Image.Image, file_format: str = "PNG", **options: object) -> bytes:
        image = picture if isinstance(picture, Image.Image) else Image.fromarray(np.ascontiguousarray(picture))
        buffer = io.BytesIO()
        image.save(buffer, file_format, **options)
        return buffer.getvalue()

    return encode_image
