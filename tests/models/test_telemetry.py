"""What reads images tells nobody of it: no library leaves notes to be sent."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    "program",
    [
        "from glyphline.models.recognizer import load_recognizer; load_recognizer('digits-ctc')",
        "import glyphline.models, onnxruntime",
    ],
)
def test_onnx_runtime_keeps_no_notes_of_its_use(program: str, tmp_path: Path) -> None:
    kept = {
        name: value for name, value in os.environ.items() if name not in ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME")
    }
    subprocess.run([sys.executable, "-c", program], env=kept | {"HOME": str(tmp_path)}, check=True)
    assert sorted(tmp_path.rglob("*")) == []
