"""Read many images at once with asyncio: `python examples/clients/read_asyncio.py localhost:50051 strip.png other.jpg`.

Calls that wait for their answers cost nothing, and the server reads together what arrives together.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from glyphline.service.client import AsyncClient, RecognitionError

AT_ONCE = 64  # calls in progress: enough for full batches, and far from filling the server's queue


async def main(target: str, paths: list[str]) -> int:
    """Reads all images, and prints each as soon as it is read. Returns the exit code."""
    places = asyncio.Semaphore(AT_ONCE)

    async def read(client: AsyncClient, path: str) -> bool:
        async with places:
            try:
                result = await client.recognize(Path(path))
            except RecognitionError as error:
                print(f"{path}: {error}", file=sys.stderr)
                return False
            print(path, result.text, f"{result.confidence:.3f}", sep="\t")
            return True

    # One client, and so one connection, for all calls. Each has ten seconds, further attempts included.
    async with AsyncClient(target, timeout=10.0) as client:
        good = await asyncio.gather(*(read(client, path) for path in paths))
    return 0 if all(good) else 1


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: read_asyncio.py HOST:PORT IMAGE...")
    sys.exit(asyncio.run(main(sys.argv[1], sys.argv[2:])))
