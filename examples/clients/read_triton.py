"""Read images with the client of Triton: `python examples/clients/read_triton.py localhost:50051 strip.png other.jpg`.

Needs `pip install 'tritonclient[grpc]'`, best without Glyphline beside it, and a server with `--open-inference`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

# tritonclient tries nothing again by itself. gRPC does, if it is told what.
RETRIES = {
    "methodConfig": [
        {
            "name": [{"service": "inference.GRPCInferenceService"}],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.1s",
                "maxBackoff": "5s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
            },
        }
    ]
}


def main(target: str, paths: list[str]) -> int:
    """Reads all images in one call. Returns the exit code."""
    client = triton.InferenceServerClient(target, channel_args=[("grpc.service_config", json.dumps(RETRIES))])
    missing = [path for path in paths if not Path(path).is_file()]
    sys.stderr.writelines(f"{path}: no such file\n" for path in missing)
    paths = [path for path in paths if path not in missing]
    if not paths:
        return 1
    images = triton.InferInput("image", [len(paths)], "BYTES")
    images.set_data_from_numpy(np.array([Path(path).read_bytes() for path in paths], dtype=np.object_))
    try:
        answer = client.infer("digits", [images], client_timeout=10.0)  # seconds, further attempts included
    except InferenceServerException as error:
        print(f"{error.status()}: {error.message()}", file=sys.stderr)
        return 1
    columns = [answer.as_numpy(name) for name in ("text", "confidence", "status", "error")]
    for path, text, confidence, status, problem in zip(paths, *columns, strict=True):
        if status:  # the number of a gRPC status: this image could not be read, and the others could
            print(f"{path}: {problem.decode()}", file=sys.stderr)
        else:
            print(path, text.decode(), f"{confidence:.3f}", sep="\t")
    return 1 if missing or columns[2].any() else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: read_triton.py HOST:PORT IMAGE...")
    sys.exit(main(sys.argv[1], sys.argv[2:]))
