"""Read images one after another: `python examples/clients/read.py localhost:50051 strip.png other.jpg`.

Needs `pip install glyphline`, which brings no model and no ONNX Runtime.
"""

from __future__ import annotations

import sys
from pathlib import Path

from glyphline.service.client import Client, RecognitionError


def main(target: str, paths: list[str]) -> int:
    """Reads every image, and goes on after those that cannot be read. Returns the exit code."""
    failed = False
    # The timeout is the deadline of a call, and holds for all its attempts together: what may succeed later, as while a
    # server restarts, is tried again by the client itself.
    with Client(target, timeout=10.0) as client:
        for path in paths:
            try:
                result = client.recognize(Path(path))
            except RecognitionError as error:  # of every kind; `error.code` and `error.reason` tell which
                print(f"{path}: {error}", file=sys.stderr)
                failed = True
            else:
                print(path, result.text, f"{result.confidence:.3f}", sep="\t")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: read.py HOST:PORT IMAGE...")
    sys.exit(main(sys.argv[1], sys.argv[2:]))
