"""Servers start, or say why not; they drain, and end."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from glyphline.models.manifest import MANIFEST_NAME
from glyphline.models.repository import ModelRepository
from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc
from glyphline.service.client import AsyncClient, Client, RecognitionError, Result, RetryPolicy

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess

Start = Callable[..., "ServerProcess"]
Hold = Callable[[list[int]], AbstractContextManager[None]]
ONCE = RetryPolicy(attempts=1)


@pytest.fixture
def own_models(model_root: Path, tmp_path: Path) -> Path:
    """A copy of the default model's repository, to be spoiled."""
    source = ModelRepository([model_root]).resolve("digits")
    shutil.copytree(source, tmp_path / "models" / "digits" / source.name)
    return tmp_path / "models"


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port that somebody else listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield int(listener.getsockname()[1])


def reason(server: ServerProcess) -> str:
    """Waits for a server that must not start, and returns why it did not."""
    assert server.wait() == 1
    message: str = server.wait_for_line("cannot start")["message"]
    assert "Traceback" not in "".join(server.raw)
    return message


def test_a_changed_byte_is_noticed(start: Start, own_models: Path) -> None:
    graph = next((own_models / "digits").rglob("*.onnx"))
    content = bytearray(graph.read_bytes())
    content[len(content) // 2] ^= 1
    graph.write_bytes(content)
    assert graph.name in reason(start(model_repository=own_models))


def test_complaint_27_a_model_that_does_not_read_its_probe_is_never_ready(start: Start, own_models: Path) -> None:
    manifest = next((own_models / "digits").rglob(MANIFEST_NAME))
    text = manifest.read_text()
    assert '"probe": {' in text
    head, _, tail = text.partition('"probe": {')
    manifest.write_text(head + '"probe": {' + tail.replace('"text": "', '"text": "0', 1))
    assert "probe" in reason(start(model_repository=own_models, workers=2))


def test_an_alphabet_of_one_is_refused(start: Start, own_models: Path) -> None:
    manifest = next((own_models / "digits").rglob(MANIFEST_NAME))
    head, _, tail = manifest.read_text().partition('"alphabet": [')
    manifest.write_text(f'{head}"alphabet": ["0"{tail[tail.index("]") :]}')
    assert "alphabet" in reason(start(model_repository=own_models))


def test_an_empty_repository(start: Start, tmp_path: Path) -> None:
    assert str(tmp_path) in reason(start(model_repository=tmp_path))


@pytest.mark.parametrize("models", ["nothing", "digits:99", "digits:one"])
def test_models_that_are_not_there(start: Start, models: str) -> None:
    assert models.partition(":")[0] in reason(start(models=models))


def test_complaint_31_a_gpu_that_is_not_there(start: Start) -> None:
    """A server that is asked for a GPU and would end up on the CPU does not start."""
    onnxruntime = pytest.importorskip("onnxruntime")
    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this machine may have one")
    assert "cuda" in reason(start(device="cuda"))


def test_a_fallback_that_is_allowed(start: Start, images: list[bytes]) -> None:
    server = start(device="cuda", allow_cpu_fallback=True)
    server.wait_for_line("ready")
    with Client(server.target, timeout=60) as client:
        assert client.recognize(images[0]).metadata.execution_provider.endswith("ExecutionProvider")
    assert server.stop() == 0


def test_ports_that_are_taken(start: Start, taken_port: int) -> None:
    assert str(taken_port) in reason(start(port=taken_port))
    assert str(taken_port) in reason(start(metrics_port=taken_port))


def test_an_address_that_is_not_of_this_machine(start: Start) -> None:
    server = start(host="203.0.113.7")
    assert "does not have the address" in reason(server)
    assert "taken" not in "".join(server.raw)


def test_two_servers_never_share_a_port(start: Start) -> None:
    first = start()
    first.wait_for_line("ready")
    second = start(port=first.target.rpartition(":")[2])
    assert "the port is taken" in reason(second)
    assert "add_port" not in "".join(second.raw)  # gRPC's own words about it
    assert first.stop() == 0


def test_chosen_models_only(shipped_version: int, start: Start, images: list[bytes]) -> None:
    server = start(models=f"digits-ctc:{shipped_version}", metrics_port=-1)
    with Client(server.target, timeout=60) as client:
        client.wait_until_ready(60)
        assert client.recognize(images[0]).model == "digits-ctc"
        (info,) = client.list_models()
        assert (info.name, info.is_default) == ("digits-ctc", True)
    assert server.stop() == 0


def test_while_models_load_calls_are_told_to_come_back(start: Start, images: list[bytes]) -> None:
    server = start()
    with Client(server.target, timeout=60, retry=ONCE) as client, grpc.insecure_channel(server.target) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        first = health.Check(health_pb2.HealthCheckRequest(), timeout=60)  # type: ignore[attr-defined]
        try:
            client.recognize(images[0])
        except RecognitionError as error:
            assert first.status == health_pb2.HealthCheckResponse.NOT_SERVING
            assert (error.code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "NOT_READY")
            assert error.retry_after
    with Client(server.target, timeout=60, retry=RetryPolicy(attempts=100)) as client:
        assert isinstance(client.recognize(images[0]), Result)
    assert server.stop() == 0


def test_a_signal_while_models_load_ends_the_server(start: Start) -> None:
    server = start()
    server.wait_for_line("listening")
    assert server.stop() == 0
    assert not [line for line in server.lines if line["level"] == "error"]


async def test_complaint_17_no_call_is_lost_while_a_server_drains(start: Start, images: list[bytes]) -> None:
    """SIGTERM under load: calls go on being taken and answered; later ones are told that the server is gone."""
    server = start(workers=2, drain_seconds=1.0)
    server.wait_for_line("ready")
    results: list[Result] = []
    failures: list[RecognitionError] = []
    after_signal = 0

    async def ask_until_gone(client: AsyncClient) -> None:
        nonlocal after_signal
        while True:
            try:
                results.append(await client.recognize(images[len(results) % len(images)]))
            except RecognitionError as error:
                failures.append(error)
                return
            after_signal += bool(stopping)

    stopping = False
    async with AsyncClient(server.target, timeout=60, retry=ONCE) as client:
        await client.wait_until_ready()
        callers = [asyncio.create_task(ask_until_gone(client)) for _ in range(16)]
        while len(results) < 50:
            await asyncio.sleep(0.01)
        async with grpc.aio.insecure_channel(server.target) as channel:
            health = health_pb2_grpc.HealthStub(channel)
            watch = health.Watch(health_pb2.HealthCheckRequest())  # type: ignore[attr-defined]
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
            server.process.send_signal(signal.SIGTERM)
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
            stopping = True
            await asyncio.gather(*callers)
    assert after_signal > 0
    assert {error.code for error in failures} == {grpc.StatusCode.UNAVAILABLE}
    assert all(error.retryable for error in failures)
    assert await asyncio.to_thread(server.wait) == 0
    assert not [line for line in server.lines if line["level"] == "error"]


@pytest.mark.parametrize("attempt", range(3))
async def test_complaint_19_raw_callers_are_told_that_the_server_is_gone(
    start: Start, images: list[bytes], attempt: int
) -> None:
    """Forty callers without a retry, each with its own connection or sharing one: none is cancelled, none hangs."""
    server = start(drain_seconds=0)
    server.wait_for_line("ready")
    options = [("grpc.use_local_subchannel_pool", attempt % 2)]
    ends: Counter[grpc.StatusCode] = Counter()

    async def ask_until_gone(stub: rpc.RecognitionServiceAsyncStub) -> None:
        while True:
            try:
                await stub.Recognize(api.RecognizeRequest(image=api.Image(content=images[0])), timeout=60)
            except grpc.aio.AioRpcError as error:
                ends[error.code()] += 1
                return
            ends[grpc.StatusCode.OK] += 1

    async with AsyncExitStack() as stack:
        callers = []
        for _ in range(40):
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(server.target, options))
            stub = cast("rpc.RecognitionServiceAsyncStub", rpc.RecognitionServiceStub(channel))
            callers.append(asyncio.create_task(ask_until_gone(stub)))
        while ends[grpc.StatusCode.OK] < 50:
            await asyncio.sleep(0.01)
        server.process.send_signal(signal.SIGTERM)
        await asyncio.gather(*callers)
    assert ends.keys() == {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}
    assert ends[grpc.StatusCode.UNAVAILABLE] == 40
    assert await asyncio.to_thread(server.wait) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_complaint_18_calls_in_progress_are_finished(
    start: Start, hold: Hold, images: list[bytes], number: signal.Signals
) -> None:
    server = start()
    async with AsyncClient(server.target, timeout=60, retry=ONCE) as client:
        with hold(server.worker_pids):
            calls = [asyncio.create_task(client.recognize(image)) for image in images[:6]]
            await asyncio.to_thread(lambda: server.wait_for_metric("glyphline_queue_depth", 5))
            server.process.send_signal(number)
            await asyncio.to_thread(server.wait_for_line, "stopping")
        assert len(await asyncio.gather(*calls)) == 6
    assert await asyncio.to_thread(server.wait) == 0


async def test_calls_that_take_longer_than_the_grace_are_given_up(
    start: Start, hold: Hold, images: list[bytes]
) -> None:
    server = start(grace_seconds=0.2)
    async with AsyncClient(server.target, timeout=60, retry=ONCE) as client:
        with hold(server.worker_pids):
            call = asyncio.create_task(client.recognize(images[0]))
            await asyncio.to_thread(lambda: server.wait_for_metric("glyphline_queue_seconds_count", 1))
            server.process.send_signal(signal.SIGTERM)
            with pytest.raises(RecognitionError) as failure:
                await call
            assert failure.value.code is grpc.StatusCode.UNAVAILABLE
    assert await asyncio.to_thread(server.wait) == 0


def test_a_second_signal_ends_at_once(start: Start) -> None:
    server = start(workers=2, drain_seconds=600)
    pids = server.worker_pids
    server.process.send_signal(signal.SIGTERM)
    server.wait_for_line("draining")
    # One within a second is the first once more; how soon the first was heard is not for the test to say.
    while server.process.poll() is None:
        server.process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            server.process.wait(0.2)
    assert server.process.returncode == 128 + signal.SIGTERM
    assert pids


def test_one_order_to_stop_that_comes_twice_is_one(start: Start) -> None:
    server = start(drain_seconds=0.5)
    server.wait_for_line("ready")
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT):
        server.process.send_signal(number)
    assert server.wait() == 0
    server.wait_for_line("stopped")


def test_memory_of_a_server_with_two_workers_and_all_models(
    start: Start, images: list[bytes], model_root: Path
) -> None:
    # one of its own: the shared one has read whatever other tests had it read
    server = start(workers=2, model_repository=model_root)
    server.wait_for_line("ready")
    with Client(server.target, timeout=60) as client:
        client.recognize_many(images * 4)
    total = sum(_proportional_bytes(pid) for pid in [server.process.pid, *server.worker_pids])
    assert total < 600 * 2**20


def _proportional_bytes(pid: int) -> int:
    """Memory of a process, what it shares divided by the number of its owners."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(pid)


def test_complaint_23_connections_that_are_closed_for_their_age_lose_no_call(start: Start, images: list[bytes]) -> None:
    """Old connections are closed, so that clients spread over replicas, and nobody notices."""
    server = start(max_connection_age_seconds=0.3, max_connection_age_grace_seconds=30)
    with Client(server.target, timeout=60) as client:
        client.wait_until_ready(60)
        texts = {client.recognize(images[0]).text for _ in range(200)}
    assert len(texts) == 1
    assert server.stop() == 0


@pytest.mark.parametrize(("min_ping_seconds", "welcome"), [(0.1, True), (600.0, False)])
async def test_complaint_22_pings_that_the_server_allows_close_no_connection(
    start: Start, min_ping_seconds: float, welcome: bool
) -> None:
    """A client without a call pings once a second and stays connected, unless it pings more often than it may."""
    server = start(min_ping_seconds=min_ping_seconds)
    options = [
        ("grpc.keepalive_time_ms", 1000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    server.wait_for_line("ready")
    async with grpc.aio.insecure_channel(server.target, options) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        await health.Check(health_pb2.HealthCheckRequest())  # type: ignore[attr-defined]
        assert channel.get_state() is grpc.ChannelConnectivity.READY
        closed = asyncio.create_task(channel.wait_for_state_change(grpc.ChannelConnectivity.READY))
        await asyncio.wait({closed}, timeout=6 if welcome else 60)
        assert closed.done() is not welcome
        closed.cancel()
    assert server.stop() == 0


@pytest.mark.gpu
def test_complaint_31_a_gpu_is_what_really_reads(start: Start, images: list[bytes], gpu: str, model_root: Path) -> None:
    """On a machine with a GPU the server says that it reads there, in every answer and in its metrics."""
    server = start(device=gpu, start_seconds=600)
    server.wait_for_line("ready")
    with Client(server.target, timeout=60) as client:
        assert client.recognize(images[0]).metadata.execution_provider == "CUDAExecutionProvider"
    models = ModelRepository([model_root]).names()
    assert server.metric("glyphline_model_info", provider="CUDAExecutionProvider") == len(models)
    assert server.stop() == 0


@pytest.mark.gpu
def test_complaint_09_a_worker_that_dies_on_a_gpu_is_replaced(start: Start, images: list[bytes], gpu: str) -> None:
    """The memory that it had there is free for the next."""
    server = start(device=gpu, start_seconds=600, models="digits-ctc")
    server.wait_for_line("ready")
    with Client(server.target, timeout=600) as client:
        text = client.recognize(images[0]).text
        os.kill(server.worker_pids[0], signal.SIGKILL)
        server.wait_for_line("worker replaced")
        assert client.recognize(images[0]).text == text
    assert server.stop() == 0
