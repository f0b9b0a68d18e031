"""What is wrong with an address to listen on: gRPC says only that it could not."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket

from glyphline.service.errors import StartError

__all__ = ["bracketed", "check_address", "explain", "is_loopback"]

_REASONS = {
    errno.EADDRINUSE: "the port is taken",
    errno.EADDRNOTAVAIL: "this machine does not have the address",
    errno.EACCES: "this user may not listen on the port",
}


def check_address(host: str, port: int) -> None:
    """Tries to bind an address, and lets go of it at once.

    Args:
        host: A name or address.
        port: A port; 0 for any.

    Raises:
        StartError: If nothing that the host stands for can be bound. The message says why.
    """
    where = f"{bracketed(host)}:{port}"
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise StartError(f"cannot listen on {where}: {explain(error)}") from error
    failure: OSError | None = None
    for family, kind, protocol, _, address in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # an address that was just left is free
                probe.bind(address)
        except OSError as error:
            failure = error
        else:
            return
    assert failure is not None
    raise StartError(f"cannot listen on {where}: {explain(failure)}") from failure


def explain(error: OSError) -> str:
    """Says in a few words why an address cannot be used."""
    if isinstance(error, socket.gaierror):
        return "the name of the host is not known"
    return _REASONS.get(error.errno or 0) or (os.strerror(error.errno) if error.errno else str(error))


def is_loopback(host: str) -> bool:
    """Tells whether only this machine can reach an address. Of names only `localhost` surely is one."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def bracketed(host: str) -> str:
    """Writes an IPv6 address the way that leaves room for a port."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
