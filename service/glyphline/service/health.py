"""grpc.health.v1: whether the server, each of its services and each of its models can be used, and whether it lives.

Models come and go; one that comes is served as soon as it has a name here, and changes nothing for the others.

The servicer that comes with grpcio-health-checking forgets its other watchers when one of them leaves, hence this one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from glyphline.service.boundary import Context

__all__ = ["ITSELF", "SERVER", "Health"]

SERVER = ""  # the name that stands for the server as a whole
# This service itself, which serves for as long as it answers: for those who restart what does not live any more, and
# cannot tell an answer that is not SERVING from none, as kubelets.
ITSELF = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name

_Status = health_pb2.HealthCheckResponse
_SERVING: int = _Status.SERVING
_NOT_SERVING: int = _Status.NOT_SERVING


class Health(health_pb2_grpc.HealthServicer):
    """Answers health checks. What has a name is served as soon as the server is; at first it is not.

    Args:
        names: The services that can be asked for, besides the server itself.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._services = (SERVER, ITSELF, *names)
        self._names = frozenset(self._services)
        self._serving = False
        self._changed = asyncio.Event()
        self._stopping = False
        self._closed = False

    def set_models(self, names: Iterable[str]) -> None:
        """Tells the models that can be asked for; the others are unknown from now on."""
        self._names = frozenset((*self._services, *names))
        self._wake()

    @property
    def serving(self) -> bool:
        """What is answered."""
        return self._serving

    def set_serving(self, serving: bool) -> None:
        """Tells whether the server can be used; a stopping one cannot, whatever is said here."""
        serving = serving and not self._stopping
        if serving != self._serving:
            self._serving = serving
            self._wake()

    def stop(self) -> None:
        """Answers NOT_SERVING from now on."""
        self._stopping = True
        self.set_serving(False)

    def close(self) -> None:
        """Ends the calls that watch; a server that stops would wait for them."""
        self._closed = True
        self._wake()

    async def Check(self, request: health_pb2.HealthCheckRequest, context: Context) -> health_pb2.HealthCheckResponse:
        """Tells the status of now."""
        if request.service not in self._names:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no service or model of this name")
        return health_pb2.HealthCheckResponse(status=self._status(request.service))

    async def Watch(self, request: health_pb2.HealthCheckRequest, context: Context) -> None:
        """Tells the status of now, and again whenever it changes."""
        told = None
        while True:
            changed = self._changed
            status = self._status(request.service)
            if status != told:
                await context.write(health_pb2.HealthCheckResponse(status=status))
                told = status
            if self._closed:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the server is stopping")
            await changed.wait()

    def _status(self, name: str) -> int:
        if name not in self._names:
            return _Status.SERVICE_UNKNOWN
        return _SERVING if self._serving or name == ITSELF else _NOT_SERVING

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
