"""Two servers behind a real balancer: both are used alike, and one after the other can be restarted without a loss."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from glyphline.service.client import AsyncClient, RetryPolicy

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess

pytestmark = pytest.mark.slow
Until = Callable[[Callable[[], bool], str], None]
NETWORK = "type.googleapis.com/envoy.extensions.filters.network"
HTTP2 = {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}},
    }
}


def endpoint(port: int) -> dict[str, Any]:
    return {"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}}


def configuration(port: int, backends: list[int]) -> dict[str, Any]:
    """Round robin over servers whose gRPC health is good; nothing is tried again by the balancer itself."""
    manager = {
        "@type": f"{NETWORK}.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "glyphline",
        "codec_type": "AUTO",
        "route_config": {
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "glyphline", "timeout": "0s"}}],
                }
            ]
        },
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
            }
        ],
    }
    cluster = {
        "name": "glyphline",
        "type": "STATIC",
        "connect_timeout": "5s",
        "lb_policy": "ROUND_ROBIN",
        "typed_extension_protocol_options": HTTP2,
        "load_assignment": {
            "cluster_name": "glyphline",
            "endpoints": [{"lb_endpoints": [endpoint(backend) for backend in backends]}],
        },
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
        "health_checks": [
            {
                "timeout": "5s",
                "interval": "0.2s",
                "unhealthy_interval": "0.2s",
                "no_traffic_interval": "0.2s",
                "unhealthy_threshold": 1,
                "healthy_threshold": 1,
                "grpc_health_check": {},
            }
        ],
    }
    listener = {
        "name": "front",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "filter_chains": [
            {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
        ],
    }
    return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}


@pytest.fixture(scope="module")
def servers(launch: Callable[..., ServerProcess], unused_port: Callable[[], int]) -> list[ServerProcess]:
    """Two servers on ports that stay the same when they are restarted."""
    pair = [launch(port=unused_port(), drain_seconds=2, models="digits-ctc") for _ in range(2)]
    for server in pair:
        server.wait_for_line("ready")
    return pair


@pytest.fixture(scope="module")
def balancer(
    servers: list[ServerProcess],
    start_envoy: Callable[[dict[str, Any]], object],
    unused_port: Callable[[], int],
) -> str:
    """The address of an Envoy in front of the servers."""
    port = unused_port()
    start_envoy(configuration(port, [port_of(server) for server in servers]))
    return f"127.0.0.1:{port}"


def port_of(server: ServerProcess) -> int:
    return int(server.target.rpartition(":")[2])


def images_read(server: ServerProcess) -> float:
    return server.metric("glyphline_images_total", outcome="ok")


async def test_complaint_23_a_balancer_uses_all_servers_alike(
    servers: list[ServerProcess], balancer: str, images: list[bytes]
) -> None:
    """One connection of a client is many calls, and a balancer that knows gRPC spreads these."""
    async with AsyncClient(balancer, timeout=60, retry=RetryPolicy(attempts=20)) as client:
        await client.wait_until_ready(60)
        while 0 in map(images_read, servers):  # until the balancer has found both in good health
            await client.recognize(images[0])
        before = [images_read(server) for server in servers]
        for _ in range(60):
            await client.recognize(images[0])
        shares = [images_read(server) - first for server, first in zip(servers, before, strict=True)]
    assert sum(shares) == 60
    assert max(shares) - min(shares) <= 4


async def test_complaint_17_a_rolling_restart_behind_a_balancer_loses_nothing(
    servers: list[ServerProcess],
    balancer: str,
    launch: Callable[..., ServerProcess],
    until: Until,
    images: list[bytes],
) -> None:
    """Under load both servers are stopped and started anew, one after the other; the client never hears of it."""
    answered = 0
    done = False

    async def ask(client: AsyncClient, position: int) -> None:
        nonlocal answered
        while not done:
            assert (await client.recognize(images[position % len(images)])).reading is not None
            answered += 1

    async with AsyncClient(balancer, timeout=60, retry=RetryPolicy(attempts=20)) as client:
        await client.wait_until_ready(60)
        callers = [asyncio.create_task(ask(client, position)) for position in range(4)]
        for server in servers:
            assert await asyncio.to_thread(server.stop) == 0
            again = launch(port=port_of(server), drain_seconds=2, models="digits-ctc")
            await asyncio.to_thread(again.wait_for_line, "ready")
            await asyncio.to_thread(until, partial(has_read, again), "the balancer uses the new server")
        done = True
        await asyncio.gather(*callers)  # raises if a call was lost
    assert answered > 20


def has_read(server: ServerProcess) -> bool:
    return images_read(server) > 10
