"""Health checks and reflection, as load balancers and tools use them."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from glyphline.service.client import Client

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess

Start = Callable[..., "ServerProcess"]
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
SERVICES = {
    "glyphline.recognition.v1.RecognitionService",
    "glyphline.recognition.v1.ModelService",
    "glyphline.recognition.v1.FeedbackService",
}
Watch = grpc.aio.UnaryStreamCall[Any, health_pb2.HealthCheckResponse]


def check(channel: grpc.Channel, service: str) -> int:
    call = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    return call(health_pb2.HealthCheckRequest(service=service), timeout=60).status


def watch(channel: grpc.aio.Channel, service: str = "") -> Watch:
    call = channel.unary_stream(
        "/grpc.health.v1.Health/Watch",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    return call(health_pb2.HealthCheckRequest(service=service))


async def status(call: Watch) -> int:
    answer = await call.read()
    assert isinstance(answer, health_pb2.HealthCheckResponse)
    return answer.status


@pytest.fixture
def channel(server_target: str) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server_target) as connected:
        yield connected


@pytest.mark.parametrize("service", ["", "digits", "digits-ctc", *sorted(SERVICES)])
def test_the_server_each_service_and_each_model_can_be_asked_for(channel: grpc.Channel, service: str) -> None:
    assert check(channel, service) == SERVING


def test_what_is_not_there_is_not_found(channel: grpc.Channel) -> None:
    with pytest.raises(grpc.RpcError) as failure:
        check(channel, "nothing")
    assert isinstance(failure.value, grpc.Call)
    assert failure.value.code() is grpc.StatusCode.NOT_FOUND


async def test_every_watcher_hears_of_changes_even_if_another_leaves(start: Start) -> None:
    server = start()
    (pid,) = server.worker_pids
    async with grpc.aio.insecure_channel(server.target) as channel:
        leaving, staying, model = watch(channel), watch(channel), watch(channel, "digits")
        unknown = watch(channel, "nothing")
        assert [await status(call) for call in (leaving, staying, model)] == [SERVING] * 3
        assert await status(unknown) == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
        leaving.cancel()
        os.kill(pid, signal.SIGKILL)
        assert [await status(call) for call in (staying, model)] == [NOT_SERVING] * 2
        assert [await status(call) for call in (staying, model)] == [SERVING] * 2
        server.process.send_signal(signal.SIGTERM)
        assert [await status(call) for call in (staying, model)] == [NOT_SERVING] * 2
        with pytest.raises(grpc.aio.AioRpcError) as failure:  # a stopping server does not wait for those who watch
            await status(staying)
        assert failure.value.code() is grpc.StatusCode.UNAVAILABLE
    assert await asyncio.to_thread(server.wait) == 0


def services(channel: grpc.Channel) -> set[str]:
    """Asks by reflection which services there are."""
    call = channel.stream_stream(
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    (answer,) = call(iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=60)
    return {service.name for service in answer.list_services_response.service}


def test_reflection_tells_the_services(channel: grpc.Channel) -> None:
    assert services(channel) == SERVICES | {"grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


def test_reflection_can_be_turned_off(start: Start) -> None:
    server = start(reflection=False)
    with Client(server.target) as client, grpc.insecure_channel(server.target) as channel:
        client.wait_until_ready()
        with pytest.raises(grpc.RpcError) as failure:
            services(channel)
        assert isinstance(failure.value, grpc.Call)
        assert failure.value.code() is grpc.StatusCode.UNIMPLEMENTED
