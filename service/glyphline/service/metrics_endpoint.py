"""`/metrics` over HTTP, in a thread of its own."""

from __future__ import annotations

import asyncio
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server

from glyphline.service.addresses import bracketed, explain
from glyphline.service.errors import StartError

__all__ = ["MetricsEndpoint"]

_REQUEST_SECONDS = 10  # a scrape is asked for in one line; whoever takes longer to write it would hold a thread


class MetricsEndpoint:
    """Serves metrics until it is closed.

    Args:
        host: Address to listen on.
        port: Port to listen on; 0 for any.
        registry: The metrics.

    Attributes:
        port: The port that it listens on.

    Raises:
        StartError: If it cannot.
    """

    def __init__(self, host: str, port: int, registry: CollectorRegistry) -> None:
        self._server: WSGIServer
        self._thread: Thread
        try:
            self._server, self._thread = start_http_server(port, host, registry=registry)
        except OSError as error:
            raise StartError(f"cannot serve metrics on {bracketed(host)}:{port}: {explain(error)}") from error
        handler: Any = self._server.RequestHandlerClass
        self._server.RequestHandlerClass = type(handler.__name__, (handler,), {"timeout": _REQUEST_SECONDS})
        self.port = self._server.server_port

    async def close(self) -> None:
        """Ends it."""
        await asyncio.to_thread(self._server.shutdown)
        self._server.server_close()
        self._thread.join()
