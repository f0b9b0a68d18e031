"""Tokens are sent where nobody on the way can read them, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from glyphline.models.errors import OptionsError
from glyphline.service.client import AsyncClient, Client, tls_credentials
from glyphline.service.client.credentials import bearer, stays_here

HERE = [
    "localhost:50051",
    "LOCALHOST",
    "127.0.0.1:50051",
    "127.8.8.8:1",
    "[::1]:50051",
    "::1",
    "dns:///localhost:50051",
    "dns:localhost:50051",
    "ipv4:127.0.0.1:1,127.0.0.1:2",
    "ipv6:[::1]:1",
    "unix:/run/glyphline.sock",
    "unix:///run/glyphline.sock",
    "unix-abstract:glyphline",
]
ELSEWHERE = [
    "host:50051",
    "10.0.0.1:50051",
    "0.0.0.0:50051",
    "[2001:db8::1]:50051",
    "localhost.example.org:50051",
    "dns:///host:50051",
    "dns://127.0.0.1/host:50051",
    "dns:50051",
    "ipv4:127.0.0.1:1,10.0.0.1:2",
    "xds:///localhost",
    "",
]


@pytest.mark.parametrize("target", HERE)
def test_what_is_sent_to_this_machine_stays_here(target: str) -> None:
    assert stays_here(target)


@pytest.mark.parametrize("target", ELSEWHERE)
def test_what_is_sent_elsewhere_does_not(target: str) -> None:
    assert not stays_here(target)


@pytest.mark.parametrize("kind", [Client, AsyncClient])
async def test_a_token_is_not_sent_in_the_clear(kind: Callable[..., Any]) -> None:
    """It is refused when the client is made, before there is a connection."""
    with pytest.raises(OptionsError, match=r"on the way to host:1: pass credentials=tls_credentials\(…\)") as failure:
        kind("host:1", token="secret")
    assert failure.value.field == "token"
    assert "secret" not in str(failure.value)
    for target, options in (
        ("host:1", {"credentials": tls_credentials()}),
        ("host:1", {"allow_token_without_tls": True}),
        ("localhost:1", {}),
    ):
        client = kind(target, token="secret", **options)
        closing = client.close()
        if closing is not None:
            await closing


@pytest.mark.parametrize("token", ["", "two words", "tab\t", "größe"])
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(OptionsError, match="printable ASCII"):
        bearer(token, "localhost:1", hidden=True)
