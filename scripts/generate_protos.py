"""Generate the Python stubs next to their .proto files, or into the folder given: `python scripts/generate_protos.py`.

The folder of a .proto file equals its package, so the generated imports are right as they are.
"""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import files
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

PROTOS = Path(__file__).parents[1] / "protos"
COMMON_PROTOS = "googleapis-common-protos"


def common_protos() -> Path:
    """Returns the folder that `google/rpc/status.proto` is imported from: it comes with a Python distribution."""
    for file in files(COMMON_PROTOS) or ():
        if file.as_posix() == "google/rpc/status.proto":
            return Path(str(file.locate())).parents[2]
    raise SystemExit(f"{COMMON_PROTOS} is not installed, or has no google/rpc/status.proto")


def generate(output: Path) -> int:
    """Writes messages, stubs and the types of both below `output`; returns protoc's exit code."""
    return int(
        protoc.main(
            [
                "protoc",
                f"--plugin=protoc-gen-mypy_grpc={Path(sys.executable).parent / 'protoc-gen-mypy_grpc'}",
                f"-I{PROTOS}",
                f"-I{Path(grpc_tools.__file__).parent / '_proto'}",
                f"-I{common_protos()}",
                f"--python_out={output}",
                f"--pyi_out={output}",
                f"--grpc_python_out={output}",
                f"--mypy_grpc_out={output}",
                *sorted(path.relative_to(PROTOS).as_posix() for path in PROTOS.rglob("*.proto")),
            ]
        )
    )


def main() -> int:
    """Parses the command line and generates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, nargs="?", default=PROTOS, help="folder to write to (default: protos)")
    output: Path = parser.parse_args().output
    return generate(output)


if __name__ == "__main__":
    sys.exit(main())
