"""The committed stubs are those of the committed .proto files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def stubs(folder: Path) -> dict[str, str]:
    """Returns the generated files below `folder` by relative path."""
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*_pb2*"))
        if path.suffix in {".py", ".pyi"}
    }


def test_committed_stubs_match_the_proto(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "scripts" / "generate_protos.py", tmp_path], check=True, capture_output=True)
    fresh, committed = stubs(tmp_path), stubs(ROOT / "protos")
    assert fresh.keys() == committed.keys()
    assert len(fresh) == 8
    stale = [name for name, text in fresh.items() if committed[name] != text]
    assert not stale, "run `python scripts/generate_protos.py`"


def test_every_folder_is_its_package() -> None:
    """But for the protocol of others, whose package is not ours to choose."""
    for path in (ROOT / "protos").rglob("*.proto"):
        package = path.parent.relative_to(ROOT / "protos").as_posix().replace("/", ".")
        package = {"glyphline.open_inference.v2": "inference"}.get(package, package)
        assert f"\npackage {package};\n" in path.read_text()
