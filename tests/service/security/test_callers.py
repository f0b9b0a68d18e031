"""What a client is called."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from glyphline.service.security.callers import GRANT, client_of
from glyphline.service.security.tokens import Grant


def context(peer: str, identities: list[bytes] | None = None) -> Any:  # noqa: ANN401  # gRPC's own cannot be made
    return SimpleNamespace(peer=lambda: peer, peer_identities=lambda: identities)


@pytest.mark.parametrize(
    ("peer", "name"),
    [
        ("ipv4:10.0.0.7:51234", "10.0.0.7"),
        ("ipv6:%5B::1%5D:51234", "::1"),
        ("ipv6:[2001:db8::7]:51234", "2001:db8::7"),
        ("unix:/tmp/socket", "unix"),
        ("", ""),
    ],
)
def test_an_address_stands_for_whoever_shows_nothing(peer: str, name: str) -> None:
    assert client_of(context(peer)) == name


def test_a_certificate_counts_more_than_an_address_and_a_token_more_than_both() -> None:
    asking = context("ipv4:10.0.0.7:51234", [b"factory"])
    assert client_of(asking) == "factory"
    token = GRANT.set(Grant("counter", b""))
    try:
        assert client_of(asking) == "counter"
    finally:
        GRANT.reset(token)
