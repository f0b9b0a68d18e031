"""A real Envoy between the clients and the server delays, aborts and breaks off calls: each has one outcome all the
same, what may be tried again is, and deadlines hold."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from glyphline.service.client import (
    AccessError,
    AsyncClient,
    Client,
    DeadlineExceededError,
    NotFoundError,
    Outcome,
    OverloadedError,
    RecognitionError,
    Result,
    RetryPolicy,
    UnavailableError,
)

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess

pytestmark = pytest.mark.slow
StartEnvoy = Callable[[dict[str, Any]], subprocess.Popen[bytes]]
Until = Callable[[Callable[[], bool], str], None]
Code = grpc.StatusCode
PATIENT = RetryPolicy(attempts=200, first_pause=0.01, longest_pause=0.2)
TYPE = "type.googleapis.com/envoy.extensions"
HALF = {"numerator": 50, "denominator": "HUNDRED"}
ALWAYS = {"numerator": 100, "denominator": "HUNDRED"}
FAULTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "delays": {"delay": {"fixed_delay": "0.2s", "percentage": HALF}},
    "late": {"delay": {"fixed_delay": "60s", "percentage": ALWAYS}},
    "grpc unavailable": {"abort": {"grpc_status": 14, "percentage": HALF}},
    "http 503": {"abort": {"http_status": 503, "percentage": HALF}},
    **{f"grpc {number}": {"abort": {"grpc_status": number, "percentage": ALWAYS}} for number in (7, 8, 12, 13, 16)},
    **{f"http {number}": {"abort": {"http_status": number, "percentage": ALWAYS}} for number in (403, 404, 500)},
}
HTTP2 = {
    "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": f"{TYPE}.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}},
    }
}


def listener(name: str, port: int, kind: str, config: dict[str, Any]) -> dict[str, Any]:
    typed = {"@type": f"{TYPE}.filters.network.{kind}", "stat_prefix": name.replace(" ", "_")}
    return {
        "name": name,
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "filter_chains": [{"filters": [{"name": name, "typed_config": typed | config}]}],
    }


def http_listener(name: str, port: int, cluster: str, fault: dict[str, Any]) -> dict[str, Any]:
    """Takes calls, and does to them what the fault says."""
    filters = [{"name": "router", "typed_config": {"@type": f"{TYPE}.filters.http.router.v3.Router"}}]
    if fault:
        filters.insert(
            0, {"name": "fault", "typed_config": {"@type": f"{TYPE}.filters.http.fault.v3.HTTPFault", **fault}}
        )
    route = {"match": {"prefix": "/"}, "route": {"cluster": cluster, "timeout": "0s"}}
    hosts = [{"name": "all", "domains": ["*"], "routes": [route]}]
    return listener(
        name,
        port,
        "http_connection_manager.v3.HttpConnectionManager",
        {"codec_type": "AUTO", "route_config": {"virtual_hosts": hosts}, "http_filters": filters},
    )


def cluster(name: str, port: int, options: dict[str, Any]) -> dict[str, Any]:
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "5s",
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}],
        },
        **({"typed_extension_protocol_options": options} if options else {}),
    }


def configuration(admin: int, listeners: list[dict[str, Any]], clusters: list[dict[str, Any]]) -> dict[str, Any]:
    """What an Envoy does; `admin` is the port at which it tells its figures, 0 for any."""
    return {
        "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": admin}}},
        "static_resources": {"listeners": listeners, "clusters": clusters},
    }


class Network:
    """An Envoy with a way for each fault, and one to nowhere."""

    def __init__(self, start: StartEnvoy, port: Callable[[], int], backend: int) -> None:
        self._start, self._backend = start, backend
        self._admin = port()
        self._ports = {name: port() for name in (*FAULTS, "breaking", "breaking behind", "nowhere")}
        listeners = [http_listener(name, self._ports[name], "server", fault) for name, fault in FAULTS.items()]
        listeners.append(http_listener("nowhere", self._ports["nowhere"], "nothing", {}))
        listeners.append(http_listener("breaking behind", self._ports["breaking behind"], "breaker", {}))
        clusters = [
            cluster("server", backend, HTTP2),
            cluster("nothing", port(), HTTP2),
            cluster("breaker", self._ports["breaking"], HTTP2),
        ]
        self.process = start(configuration(self._admin, listeners, clusters))
        self._breaker = self._start_breaker()

    def _start_breaker(self) -> subprocess.Popen[bytes]:
        """Starts an Envoy that passes on bytes and knows nothing of calls."""
        config = {"cluster": "bytes"}
        ways = [listener("breaking", self._ports["breaking"], "tcp_proxy.v3.TcpProxy", config)]
        return self._start(configuration(0, ways, [cluster("bytes", self._backend, {})]))

    def break_connections(self) -> None:
        """Ends all connections of one way, whatever is on them, and lets new ones be made."""
        self._breaker.kill()
        self._breaker.wait(60)
        self._breaker = self._start_breaker()

    def target(self, way: str) -> str:
        return f"127.0.0.1:{self._ports[way]}"

    def calls(self, way: str) -> int:
        """How many calls have come this way so far."""
        url = f"http://127.0.0.1:{self._admin}/stats?filter=^http.{way.replace(' ', '_')}.downstream_rq_total$"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return int(answer.read().decode().rpartition(":")[2])


@pytest.fixture(scope="module")
def network(server: ServerProcess, start_envoy: StartEnvoy, unused_port: Callable[[], int]) -> Network:
    network = Network(start_envoy, unused_port, int(server.target.rpartition(":")[2]))
    with Client(network.target("plain"), timeout=60, retry=PATIENT) as client:
        client.wait_until_ready(60)
    return network


@pytest.fixture(scope="module")
def texts(server: ServerProcess, images: list[bytes]) -> list[str]:
    """What the images say, without anything between."""
    with Client(server.target, timeout=60) as client:
        return [client.recognize(content).text for content in images[:8]]


class Plain:
    """Both clients with one face: this is the plain one."""

    def __init__(self, target: str, **options: Any) -> None:  # noqa: ANN401
        self._client = Client(target, **options)

    async def __aenter__(self) -> Plain:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._client.close)

    async def recognize(self, image: bytes, **options: Any) -> Result:  # noqa: ANN401
        return await asyncio.to_thread(lambda: self._client.recognize(image, **options))

    async def recognize_many(self, images: list[bytes], **options: Any) -> list[Outcome]:  # noqa: ANN401
        return await asyncio.to_thread(lambda: self._client.recognize_many(images, **options))

    async def stream(self, items: list[tuple[str, bytes]], **options: Any) -> AsyncIterator[tuple[str, Outcome]]:  # noqa: ANN401
        outcomes = self._client.stream(items, **options)
        while (outcome := await asyncio.to_thread(next, outcomes, None)) is not None:
            yield outcome


both = pytest.mark.parametrize("kind", [Plain, AsyncClient])
Kind = Callable[..., Any]


@both
async def test_delayed_calls_are_answered(network: Network, images: list[bytes], texts: list[str], kind: Kind) -> None:
    async with kind(network.target("delays"), timeout=60) as client:
        results = await asyncio.gather(*(client.recognize(content) for content in images[:8]))
        assert [each.text for each in results] == texts
        assert [each.text for each in await client.recognize_many(images[:8], batch_size=2)] == texts
        items = [(str(at), content) for at, content in enumerate(images[:8])]
        streamed = {name: outcome.text async for name, outcome in client.stream(items)}
        assert [streamed[name] for name, _ in items] == texts


@both
@pytest.mark.parametrize("way", ["grpc unavailable", "http 503"])
async def test_aborted_calls_are_tried_again_and_answered_once(
    server: ServerProcess, network: Network, images: list[bytes], texts: list[str], kind: Kind, way: str
) -> None:
    before, read = network.calls(way), server.metric("glyphline_images_total", outcome="ok")
    async with kind(network.target(way), timeout=60, retry=PATIENT) as client:
        results = await asyncio.gather(*(client.recognize(content) for content in images[:8] * 2))
        assert [each.text for each in results] == texts * 2
        assert [each.text for each in await client.recognize_many(images[:8], batch_size=2)] == texts
        assert network.calls(way) - before > 20
        assert server.metric("glyphline_images_total", outcome="ok") - read == 24
        kinds = set()
        for _ in range(12):  # a stream is not tried again: it is whole, or it tells that it failed
            items = [("a", images[0]), ("b", images[1])]
            try:
                outcomes = {name: outcome.text async for name, outcome in client.stream(items)}
            except UnavailableError:
                kinds.add("failed")
            else:
                kinds.add("whole")
                assert outcomes == {"a": texts[0], "b": texts[1]}
        assert kinds == {"failed", "whole"}


@both
@pytest.mark.parametrize(
    ("way", "code", "error", "words"),
    [
        ("grpc 7", Code.PERMISSION_DENIED, AccessError, "does not allow it"),
        ("grpc 8", Code.RESOURCE_EXHAUSTED, OverloadedError, "takes no more at the moment"),
        ("grpc 12", Code.UNIMPLEMENTED, RecognitionError, "is it a Glyphline server"),
        ("grpc 13", Code.INTERNAL, RecognitionError, "did not say why"),
        ("grpc 16", Code.UNAUTHENTICATED, AccessError, "does not know the caller"),
        ("http 403", Code.PERMISSION_DENIED, AccessError, "does not allow it"),
        ("http 404", Code.UNIMPLEMENTED, RecognitionError, "is it a Glyphline server"),
        ("http 500", Code.UNKNOWN, RecognitionError, "did not say why"),
    ],
)
async def test_what_stays_wrong_is_told_at_once(
    network: Network, images: list[bytes], kind: Kind, way: str, code: Code, error: type, words: str
) -> None:
    before = network.calls(way)
    async with kind(network.target(way), timeout=60, retry=PATIENT) as client:
        with pytest.raises(RecognitionError, match=words) as failure:
            await client.recognize(images[0])
        (outcome,) = await client.recognize_many(images[:1])
        with pytest.raises(RecognitionError) as broken:
            async for _ in client.stream([("a", images[0])]):
                pass
    for each in (failure.value, outcome, broken.value):
        assert (type(each), each.code) == (error, code)
        assert network.target(way) in str(each)
    assert network.calls(way) - before <= 4  # the asyncio client may ask once more why its stream ended


@both
async def test_deadlines_hold_whatever_the_network_does(network: Network, images: list[bytes], kind: Kind) -> None:
    network_is_late, nothing_there = network.target("late"), network.target("nowhere")
    async with kind(network_is_late, timeout=1, retry=PATIENT) as client:
        began = time.monotonic()
        with pytest.raises(DeadlineExceededError, match="no answer in time"):
            await client.recognize(images[0])
        outcomes = await client.recognize_many(images[:3], batch_size=1)
        with pytest.raises(DeadlineExceededError, match="no answer in time"):
            async for _ in client.stream([("a", images[0])], timeout=1):
                pass
        assert [type(each) for each in outcomes] == [DeadlineExceededError] * 3
        assert time.monotonic() - began < 55  # and not the minute that the network takes
    async with kind(nothing_there, timeout=1, retry=PATIENT) as client:
        with pytest.raises((UnavailableError, DeadlineExceededError)):
            await client.recognize(images[0])


@both
@pytest.mark.parametrize("way", ["breaking", "breaking behind"])
async def test_connections_that_break_under_calls_cost_no_answer(
    network: Network, images: list[bytes], texts: list[str], kind: Kind, way: str
) -> None:
    """Connections are reset with calls on them, before the client or behind a balancer."""
    answered = 0
    done = False

    async def ask(client: Any, place: int) -> None:  # noqa: ANN401
        nonlocal answered
        while not done:
            assert (await client.recognize(images[place])).text == texts[place]
            answered += 1

    async with kind(network.target(way), timeout=120, retry=PATIENT) as client:
        callers = [asyncio.create_task(ask(client, place)) for place in range(4)]
        while answered < 8:
            await asyncio.sleep(0.01)
            assert not [caller for caller in callers if caller.done()]
        await asyncio.to_thread(network.break_connections)
        done = True
        await asyncio.gather(*callers)
        assert [each.text for each in await client.recognize_many(images[:8], batch_size=2)] == texts
        seen: list[str] = []
        endless = ((str(number), images[0]) for number in range(1_000_000))
        with pytest.raises(UnavailableError, match=r"broke the connection off|cannot be reached|closes the connection"):
            async for name, outcome in client.stream(endless):
                assert outcome.text == texts[0]
                seen.append(name)
                if len(seen) == 3:
                    await asyncio.to_thread(network.break_connections)
        assert len(seen) == len(set(seen))


async def test_a_stream_that_is_refused_while_it_is_sent_tells_the_server_s_reason(
    server_target: str, images: list[bytes]
) -> None:
    async with AsyncClient(server_target) as client:
        for _ in range(20):
            endless = ((str(number), images[0]) for number in range(1_000_000))
            with pytest.raises(NotFoundError, match="no model"):
                async for _ in client.stream(endless, model="nothing"):
                    pass


@pytest.fixture
def pair(
    network: Network, server: ServerProcess, start_envoy: StartEnvoy, unused_port: Callable[[], int], until: Until
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """An address that stands for two ways to the server, and what is on the first of them."""
    port, admin = unused_port(), unused_port()
    backend = int(server.target.rpartition(":")[2])
    ways = [http_listener("half", port, "server", {})]
    process = start_envoy(configuration(admin, ways, [cluster("server", backend, HTTP2)]))
    with Client(f"127.0.0.1:{port}", retry=PATIENT) as client:
        client.wait_until_ready(60)
    yield f"ipv4:127.0.0.1:{port},{network.target('plain')}", process
    process.kill()


@both
@pytest.mark.parametrize("end", [None, signal.SIGKILL], ids=["silent", "reset"])
async def test_a_connection_whose_other_end_is_gone_is_left(
    pair: tuple[str, subprocess.Popen[bytes]],
    images: list[bytes],
    texts: list[str],
    kind: Kind,
    end: signal.Signals | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of two ways falls silent, or is reset, with calls on it: what waits there is asked anew the other way."""
    monkeypatch.setattr("glyphline.service.client.requests.KEEPALIVE_SECONDS", 1.0)
    target, process = pair
    async with kind(target, timeout=60, retry=PATIENT) as client:
        for _ in range(10):  # until both ways are in use
            await client.recognize(images[0])
        process.send_signal(signal.SIGSTOP)
        calls = [asyncio.create_task(client.recognize(content)) for content in images[:8]]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        if end is not None:
            process.send_signal(end)
        results = await asyncio.gather(*calls)
        assert [each.text for each in results] == texts
