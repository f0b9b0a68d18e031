"""Why a server cannot be used, where gRPC tells only of the last of the addresses that its name stands for.

`localhost` is two addresses to gRPC, whatever the machine's own files say. If nobody listens at one, and the other
shows a certificate that is not trusted, it is chance of which gRPC tells; only the second helps.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

import grpc
from grpc_health.v1 import health_pb2

from glyphline.service.client import UnavailableError
from glyphline.service.client.errors import from_call
from glyphline.service.client.requests import HEALTH_CHECK

__all__ = ["look_closer"]

Connect = Callable[[str, str], grpc.Channel]  # from an address, and the name that the server should have

_SECONDS = 2.0  # of each address
_NAMELESS = ("unix", "unix-abstract", "vsock", "xds")  # targets without a name that stands for addresses
_FAMILIES = {socket.AF_INET: "ipv4:{}:{}", socket.AF_INET6: "ipv6:[{}]:{}"}


def look_closer(target: str, connect: Connect) -> UnavailableError | None:
    """Asks each address of a server by itself what keeps a connection from being made.

    Args:
        target: Address of the server, as it was given.
        connect: Makes a channel to one of its addresses.

    Returns:
        The error of the first address that names a reason; None where none does.
    """
    host, addresses = _addresses(target)
    found = (_failure(connect(address, host), target) for address in addresses)
    return next((each for each in found if each is not None and each.reason), None)


def _addresses(target: str) -> tuple[str, list[str]]:
    """Returns the host of a target, and its addresses, each as gRPC takes it."""
    scheme, _, rest = target.partition(":")
    if scheme in ("ipv4", "ipv6"):
        several = rest.split(",")
        return several[0].rpartition(":")[0].strip("[]"), [f"{scheme}:{each}" for each in several]
    if scheme in _NAMELESS:
        return "", []
    host, _, port = target.removeprefix("dns:").rpartition("/")[2].rpartition(":")
    host = host.strip("[]")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        return host, []
    return host, [_FAMILIES[family].format(*address[:2]) for family, *_, address in found if family in _FAMILIES]


def _failure(channel: grpc.Channel, target: str) -> UnavailableError | None:
    """Returns what a call to one address fails at; None where that is no lack of a connection."""
    check = channel.unary_unary(
        HEALTH_CHECK,
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    with channel:
        try:
            check(health_pb2.HealthCheckRequest(), timeout=_SECONDS)
        except grpc.RpcError as error:
            converted = from_call(error, target)
            return converted if isinstance(converted, UnavailableError) else None
    return None
