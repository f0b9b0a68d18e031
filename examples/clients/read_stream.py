"""Read images in one stream: `python examples/clients/read_stream.py localhost:50051 strip.png other.jpg`.

A stream is for what comes one by one and never ends, as from a camera: images are sent as fast as the server reads
them, and the outcomes come back as they are ready, in any order.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from glyphline.service.client import Client, RecognitionError, Result, UnavailableError

ATTEMPTS = 4


def read(client: Client, paths: set[str]) -> Iterator[tuple[str, Result | RecognitionError]]:
    """Yields the outcome of every path. A stream that breaks off is begun again, with those that are still missing."""
    for attempt in range(ATTEMPTS):
        try:
            # The timeout is for the stream as a whole; one that is to go on for ever has none.
            for path, outcome in client.stream(((path, Path(path)) for path in sorted(paths)), timeout=60.0):
                paths.discard(path)
                yield path, outcome
            return
        except UnavailableError:
            if attempt + 1 == ATTEMPTS:
                raise
            time.sleep(0.1 * 2**attempt)


def main(target: str, paths: list[str]) -> int:
    """Reads all images, and prints each as it is ready. Returns the exit code."""
    failed = False
    try:
        with Client(target) as client:
            for path, outcome in read(client, set(paths)):
                if isinstance(outcome, Result):
                    print(path, outcome.text, f"{outcome.confidence:.3f}", sep="\t")
                else:  # why this image could not be read; the stream goes on
                    print(f"{path}: {outcome}", file=sys.stderr)
                    failed = True
    except RecognitionError as error:  # of the stream as a whole
        sys.exit(str(error))
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: read_stream.py HOST:PORT IMAGE...")
    sys.exit(main(sys.argv[1], sys.argv[2:]))
