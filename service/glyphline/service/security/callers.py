"""Who makes a call: an opaque name, for fairness between clients, for limits and for the log."""

from __future__ import annotations

from contextvars import ContextVar
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import grpc

from glyphline.service.security.tokens import Grant

__all__ = ["GRANT", "client_of", "token_name"]

GRANT: ContextVar[Grant | None] = ContextVar("grant", default=None)
"""What the token allows that the call of this task came with."""


def client_of(context: grpc.aio.ServicerContext[Any, Any]) -> str:
    """Names the client of a call.

    Returns:
        The name of its token; else the first one in its certificate, if the server asks for one; else its address
        without the port, which clients behind one address share.
    """
    if (grant := GRANT.get()) is not None:
        return grant.name
    if identities := context.peer_identities():
        return next(iter(identities)).decode("utf-8", "replace")
    return _address(context.peer())


def token_name() -> str:
    """Returns the name of the token that the call of this task came with; empty if callers need none."""
    grant = GRANT.get()
    return "" if grant is None else grant.name


@lru_cache(maxsize=1024)  # a connection has one address for all its calls
def _address(peer: str) -> str:
    """Takes the port off an address as gRPC writes it: `ipv4:10.0.0.7:51234`, `ipv6:%5B::1%5D:51234`, `unix:…`."""
    kind, _, address = unquote(peer).partition(":")
    if kind in ("ipv4", "ipv6"):
        return address.rpartition(":")[0].strip("[]")
    return kind
