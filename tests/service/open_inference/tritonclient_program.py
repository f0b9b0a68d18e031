"""What an unmodified tritonclient makes of a server, as JSON: `tritonclient_program.py TARGET TOKEN IMAGE…`.

It is a program of its own as tritonclient's messages and ours cannot be in one process.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from tritonclient.utils import InferenceServerException


def inputs_of(images: list[bytes]) -> list[Any]:
    """Makes the input of images."""
    tensor = triton.InferInput("image", [len(images)], "BYTES")
    tensor.set_data_from_numpy(np.array(images, dtype=np.object_))
    return [tensor]


def outputs_of(result: Any, *names: str) -> dict[str, Any]:  # noqa: ANN401  # tritonclient has no types
    """Returns outputs by name, as JSON can hold them."""
    found = {}
    for name in names:
        values = result.as_numpy(name)
        found[name] = np.vectorize(bytes.decode, otypes=[object])(values) if values.dtype == np.object_ else values
    return {name: values.tolist() for name, values in found.items()}


def refused(call: Any, *arguments: Any, **options: Any) -> list[str]:  # noqa: ANN401
    """Makes a call that must fail, and returns its status and message."""
    try:
        call(*arguments, **options)
    except InferenceServerException as error:
        return [error.status(), error.message()]
    raise AssertionError("the call did not fail")


async def read_with_asyncio(target: str, headers: dict[str, str], images: list[bytes]) -> dict[str, Any]:
    """Reads images with the client for asyncio."""
    async with triton_aio.InferenceServerClient(target) as client:
        return outputs_of(await client.infer("digits", inputs_of(images), headers=headers), "text", "status")


def main() -> None:
    """Asks all that there is to ask."""
    target, token, *paths = sys.argv[1:]
    headers = {"authorization": f"Bearer {token}"}
    images = [Path(path).read_bytes() for path in paths]
    client = triton.InferenceServerClient(target)
    batch = inputs_of([images[0], b"no picture", *images[1:]])
    wanted = [triton.InferRequestedOutput(name) for name in ("alternatives", "status")]
    options = {"decoder": "beam", "beam_width": 5, "length_penalty": 0.5, "max_alternatives": 2}
    answer = client.infer("digits", batch, request_id="triton", headers=headers, client_timeout=60)
    beam = client.infer(
        "digits-ctc",
        inputs_of(images),
        outputs=wanted,
        parameters=options,
        priority=1,
        timeout=60_000_000,
        headers=headers,
    )
    as_json = {"headers": headers, "as_json": True}
    told = {
        "ready": [
            client.is_server_live(headers),
            client.is_server_ready(headers),
            client.is_model_ready("digits", headers=headers),
            client.is_model_ready("nothing", headers=headers),
        ],
        "server": client.get_server_metadata(**as_json),
        "metadata": client.get_model_metadata("digits", **as_json),
        "config": client.get_model_config("digits", **as_json),
        "index": client.get_model_repository_index(**as_json),
        "id": answer.get_response().id,
        "batch": outputs_of(answer, "text", "confidence", "status", "error"),
        "beam": outputs_of(beam, "alternatives", "status"),
        "asyncio": asyncio.run(read_with_asyncio(target, headers, images)),
        "statistics": client.get_inference_statistics("digits", **as_json),
        "refused": [
            refused(client.infer, "nothing", batch, headers=headers),
            refused(client.infer, "digits", batch, parameters={"best_of": 3}, headers=headers),
            refused(client.infer, "digits", batch, sequence_id=7, headers=headers),
            refused(client.infer, "digits", batch),
            refused(client.get_system_shared_memory_status, headers=headers),
        ],
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
