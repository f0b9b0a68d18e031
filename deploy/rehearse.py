"""Spoils what a server reads, to see its alerts fire: sends strips that are far too coarse, with their true texts.

The character error rate that the server counts becomes as bad as it looks, for an hour; take one that nobody uses.
docs/monitoring.md says what to see then.

    python deploy/rehearse.py --server localhost:50051
"""

import argparse
import io
import sys
from pathlib import Path

from PIL import Image

from glyphline.service.client import Client, Result

STRIPS = Path(__file__).parents[1] / "tests" / "data" / "strips"
COARSENESS = 8  # of so many pixels each way one is left


def spoil(file: Path) -> bytes:
    """Returns the file of a strip that nobody can read any more."""
    with Image.open(file) as strip:
        grey = strip.convert("L")
    coarse = grey.resize((max(1, grey.width // COARSENESS), max(1, grey.height // COARSENESS)))
    content = io.BytesIO()
    coarse.resize(grey.size).save(content, "PNG")
    return content.getvalue()


def main() -> int:
    """Reads spoilt strips. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Send spoilt strips with their true texts, so that alerts fire.")
    parser.add_argument("--server", default="localhost:50051", help="address of the server (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=40, help="how often all strips are sent (default: %(default)s)")
    arguments = parser.parse_args()
    lines = (STRIPS / "labels.tsv").read_text(encoding="utf-8").splitlines()
    names, texts = zip(*(line.split("\t") for line in lines), strict=True)
    images = [spoil(STRIPS / name) for name in names]
    with Client(arguments.server, timeout=60) as client:
        read = 0
        for _ in range(arguments.rounds):
            outcomes = client.recognize_many(images, references=texts)
            if not any(isinstance(outcome, Result) for outcome in outcomes):
                print(f"{arguments.server} reads nothing: {outcomes[0]}", file=sys.stderr)
                return 1
            read += sum(isinstance(outcome, Result) for outcome in outcomes)
    print(f"{read} of {arguments.rounds * len(images)} spoilt strips were read")
    return 0


if __name__ == "__main__":
    sys.exit(main())
