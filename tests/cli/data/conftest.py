"""What the tests of `glyphline data` need: the extra `train`, and strips that they may spoil."""

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

LACKING = [name for name in ("matplotlib", "lmdb", "pyarrow", "fontTools") if find_spec(name) is None]


@pytest.fixture(autouse=True)
def _training_room() -> None:
    """Skips a test where what `glyphline data` works with is not installed."""
    if LACKING:
        pytest.skip("needs the extra `train`")


@pytest.fixture
def data(tmp_path: Path, strips_folder: Path) -> Path:
    """A data root with a copy of the real strips."""
    shutil.copytree(strips_folder, tmp_path / "strips")
    return tmp_path
