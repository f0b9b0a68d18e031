"""A Ray Serve application, as its guides have it: `@serve.batch` in a deployment, behind the gRPC proxy.

The proxy takes any service's messages, and so Glyphline's own. The one argument is JSON: bundle, port, http_port,
workers, max_batch, batch_wait, max_queue and timeout.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import ray
from peer_servers.reading import BatchReader
from ray import serve
from ray.serve.config import HTTPOptions, gRPCOptions

from glyphline.recognition.v1 import recognition_pb2 as messages
from glyphline.recognition.v1 import recognition_pb2_grpc as services

SERVICE = "peer_servers.ray_serve_app.add_recognition_service"
OBJECT_STORE_BYTES = 100 * 2**20


class GenericHandlers:
    """Takes a service's generic handlers alone.

    The proxy puts its own in their place, but not in that of registered ones, which stubs of grpcio-tools 1.64 and
    later add too and which would come first.
    """

    def __init__(self, server: Any) -> None:  # noqa: ANN401  (the proxy's own)
        """Keeps the proxy's server."""
        self.add_generic_rpc_handlers = server.add_generic_rpc_handlers

    def add_registered_method_handlers(self, service: str, handlers: dict[str, Any]) -> None:
        """Takes none."""


def add_recognition_service(servicer: Any, server: Any) -> None:  # noqa: ANN401  (the proxy's own)
    """Adds Glyphline's service to the proxy."""
    services.add_RecognitionServiceServicer_to_server(servicer, GenericHandlers(server))  # type: ignore[arg-type]


def deployment(settings: dict[str, Any]) -> Any:  # noqa: ANN401  (Ray is not installed where types are checked)
    """Returns the application."""

    class GlyphlineDeployment:
        """Reads images, several requests at a time."""

        def __init__(self, bundle: str) -> None:
            self._reader = BatchReader(bundle)

        @serve.batch(max_batch_size=settings["max_batch"], batch_wait_timeout_s=settings["batch_wait"])  # type: ignore[untyped-decorator, unused-ignore]
        async def read(self, contents: list[bytes]) -> list[str]:
            return self._reader.read(contents)

        async def Recognize(self, request: messages.RecognizeRequest) -> messages.RecognizeResponse:
            text = await self.read(request.image.content)
            return messages.RecognizeResponse(alternatives=[messages.Alternative(text=text)])

    deployed = serve.deployment(
        GlyphlineDeployment,
        num_replicas=settings["workers"],
        ray_actor_options={"num_cpus": 1},
        # A batch that is read and one that fills.
        max_ongoing_requests=2 * settings["max_batch"],
        max_queued_requests=settings["max_queue"],
    )
    return deployed.bind(settings["bundle"])


def main() -> None:
    """Serves until SIGTERM."""
    settings = json.loads(sys.argv[1])
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Else 15: its workers would yield to the client, and no other server's do.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112  (spelt so)
    # Cores in Ray's own account; its controller and proxy take none.
    ray.init(num_cpus=settings["workers"] + 1, include_dashboard=False, object_store_memory=OBJECT_STORE_BYTES)
    try:
        serve.start(
            http_options=HTTPOptions(host="127.0.0.1", port=settings["http_port"]),
            grpc_options=gRPCOptions(
                port=settings["port"], grpc_servicer_functions=[SERVICE], request_timeout_s=settings["timeout"]
            ),
            logging_config={"log_level": "WARNING", "enable_access_log": False},
        )
        serve.run(deployment(settings), name="glyphline")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        while True:
            signal.pause()
    finally:
        serve.shutdown()
        ray.shutdown()


if __name__ == "__main__":
    main()
