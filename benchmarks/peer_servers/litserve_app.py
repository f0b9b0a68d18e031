"""A LitServe application, as its guide has it: a `LitAPI` that batches, an image to a request in base64.

The one argument is JSON: bundle, port, workers, max_batch, batch_wait and timeout.
"""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

import litserve
from peer_servers.reading import BatchReader


class GlyphlineApi(litserve.LitAPI):  # type: ignore[misc]  # LitServe is not installed where types are checked
    """Reads batches of encoded images."""

    def __init__(self, bundle: str, **options: Any) -> None:  # noqa: ANN401  (LitServe's own)
        """Keeps the path; every worker loads the bundle for itself."""
        super().__init__(**options)
        self._bundle = bundle

    def setup(self, device: str) -> None:
        """Loads the bundle in a worker."""
        self._reader = BatchReader(self._bundle)

    def decode_request(self, request: dict[str, str]) -> bytes:
        """Takes the image out of a request."""
        return base64.b64decode(request["image"])

    def batch(self, inputs: list[bytes]) -> list[bytes]:
        """Keeps a batch as a list: images have sizes of their own."""
        return list(inputs)

    def predict(self, contents: list[bytes]) -> list[str]:
        """Reads a batch."""
        return self._reader.read(contents)

    def unbatch(self, output: list[str]) -> list[str]:
        """Returns a text for each image."""
        return output

    def encode_response(self, output: str) -> dict[str, str]:
        """Puts a text into a response."""
        return {"text": output}


def main() -> None:
    """Serves until it is stopped."""
    settings = json.loads(sys.argv[1])
    api = GlyphlineApi(settings["bundle"], max_batch_size=settings["max_batch"], batch_timeout=settings["batch_wait"])
    server = litserve.LitServer(
        api,
        accelerator="cpu",
        devices=1,
        workers_per_device=settings["workers"],
        timeout=settings["timeout"],
        fast_queue=True,  # its guide: for more than a hundred requests a second
    )
    server.run(host="127.0.0.1", port=settings["port"], log_level="warning", generate_client_file=False)


if __name__ == "__main__":
    main()
