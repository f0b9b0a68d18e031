"""Serves recognisers over gRPC, and the client for it.

The two clients can be imported from here; they are loaded on first use, so that what needs no gRPC does not load it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glyphline.service.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client"]


def __getattr__(name: str) -> object:
    """Loads what is asked for."""
    if name in __all__:
        from glyphline.service import client  # noqa: PLC0415

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
