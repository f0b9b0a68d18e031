from pathlib import Path

import pytest

from glyphline.models.repository import ModelRepository, pretrained_root
from glyphline.service.playground import LocalReader


@pytest.fixture(scope="session")
def local_reader() -> LocalReader:
    """Reads in this process by the smallest model of digits, which is enough to try what is around it."""
    return LocalReader([ModelRepository([pretrained_root()]).load("digits-ctc")])


@pytest.fixture(scope="session")
def meter(repository_root: Path) -> bytes:
    """The file of a strip that says 43434."""
    return (repository_root / "examples" / "strips" / "meter.jpg").read_bytes()
