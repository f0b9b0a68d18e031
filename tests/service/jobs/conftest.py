import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from glyphline.models.repository import ModelRepository, pretrained_root
from glyphline.service.jobs import LocalEngine, ModelIdentity, WorkerSettings


def huge_header() -> bytes:
    """A PNG of 60,000 x 60,000 pixels in a hundred bytes."""
    header = b"IHDR" + struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    chunks = [header, b"IDAT" + zlib.compress(b""), b"IEND"]
    body = b"".join(
        struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) for chunk in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


@pytest.fixture
def bad_files(tmp_path: Path, encode: Callable[..., bytes]) -> dict[str, str]:
    """Files that cannot be read, each with its error code."""
    good = encode(np.full((40, 90), 255, np.uint8))
    contents = {
        "empty.png": (b"", "empty_image"),
        "huge.png": (huge_header(), "image_too_large"),
        "text.png": (b"not a picture\n", "undecodable_image"),
        "truncated.png": (good[: len(good) // 2], "undecodable_image"),
        "wide.png": (encode(np.full((4, 4_000), 255, np.uint8)), "image_too_wide"),
    }
    folder = tmp_path / "bad"
    folder.mkdir()
    for name, (content, _) in contents.items():
        (folder / name).write_bytes(content)
    (folder / "zzz_lost.png").symlink_to(folder / "nothing")
    codes = {str(folder / name): code for name, (_, code) in contents.items()}
    return codes | {str(folder / "zzz_lost.png"): "file_not_found"}


@pytest.fixture(scope="session")
def bundle() -> Path:
    """The default model that comes with Glyphline."""
    return ModelRepository([pretrained_root()]).resolve(None, None)


@pytest.fixture(scope="session")
def identity() -> ModelIdentity:
    """A model as rows name it."""
    return ModelIdentity("digits", 1, "0" * 64, "greedy")


@pytest.fixture
def engine(bundle: Path, identity: ModelIdentity) -> LocalEngine:
    """Two worker processes."""
    return LocalEngine(WorkerSettings(bundle), identity, 2)
