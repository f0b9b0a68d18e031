"""Calls without a good token are refused, and nothing is asked of those that need none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import grpc
import pytest
from grpc_health.v1 import health_pb2

from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc
from glyphline.service.client import AccessError, AsyncClient, Client, Result, tls_credentials
from glyphline.service.client.errors import from_call
from glyphline.service.client.requests import HEALTH_CHECK
from glyphline.service.security.tokens import new_token, token_line

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess
    from tests.service.security.conftest import Secured

Code = grpc.StatusCode


@pytest.mark.parametrize("token", [None, "wrong", "almost"])
def test_calls_without_a_good_token_are_refused(secured: Secured, images: list[bytes], token: str | None) -> None:
    if token == "almost":
        token = secured.tokens["counter"][:-1]
    with secured.connect(token) as client:
        for call in (
            lambda: client.recognize(images[0]),
            lambda: list(client.stream([("a", images[0])])),
            client.list_models,
            client.get_model,
            lambda: client.submit_reference("a", "1"),
        ):
            with pytest.raises(AccessError) as failure:
                call()
            assert (failure.value.code, failure.value.reason) == (Code.UNAUTHENTICATED, "UNAUTHENTICATED")
            assert not failure.value.retryable
        (outcome,) = client.recognize_many(images[:1])
        assert isinstance(outcome, AccessError)


def test_other_schemes_and_shapes_are_no_tokens(secured: Secured) -> None:
    token = secured.tokens["counter"]
    credentials = tls_credentials(secured.authority.path, secured.client_pair.certificate, secured.client_pair.key)
    with grpc.secure_channel(secured.server.target, credentials) as channel:
        models = rpc.ModelServiceStub(channel)
        for value in ("", "Bearer", f"Basic {token}", token, f"Bearer {token} {token}"):
            with pytest.raises(grpc.RpcError) as failure:
                models.ListModels(api.ListModelsRequest(), timeout=60, metadata=(("authorization", value),))
            assert from_call(failure.value).code is Code.UNAUTHENTICATED
        assert models.ListModels(
            api.ListModelsRequest(), timeout=60, metadata=(("authorization", f"bEARER {token}"),)
        ).models
        with pytest.raises(grpc.RpcError) as failure:  # nor may the API be asked for without one
            list(
                channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")(
                    iter([b""]),  # type: ignore[arg-type]
                    timeout=60,
                )
            )
        assert from_call(failure.value).code is Code.UNAUTHENTICATED


def test_health_needs_no_token(secured: Secured) -> None:
    credentials = tls_credentials(secured.authority.path, secured.client_pair.certificate, secured.client_pair.key)
    with grpc.secure_channel(secured.server.target, credentials) as channel:
        check = channel.unary_unary(
            HEALTH_CHECK,
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        assert check(health_pb2.HealthCheckRequest(), timeout=60).status == health_pb2.HealthCheckResponse.SERVING


def test_refusals_are_counted_as_calls_and_by_reason(secured: Secured, images: list[bytes]) -> None:
    def count() -> tuple[float, float]:
        server = secured.server
        labels = {"grpc_type": "unary", "grpc_method": "Recognize", "grpc_code": "UNAUTHENTICATED"}
        return server.metric("grpc_server_handled_total", **labels), server.metric(
            "glyphline_rejected_total", reason="unauthenticated"
        )

    before = count()
    with secured.connect(new_token()) as client, pytest.raises(AccessError):
        client.recognize(images[0])
    assert count() == (before[0] + 1, before[1] + 1)


async def test_both_clients_show_their_token(secured: Secured, images: list[bytes]) -> None:
    credentials = tls_credentials(secured.authority.path, secured.client_pair.certificate, secured.client_pair.key)
    token = secured.tokens["counter"]
    async with AsyncClient(secured.server.target, timeout=60, credentials=credentials, token=token) as client:
        assert isinstance(await client.recognize(images[0]), Result)
        assert [outcome async for _, outcome in client.stream([("a", images[0])])]
    with secured.connect(token) as plain:
        assert isinstance(plain.recognize(images[0]), Result)
        assert all(isinstance(outcome, Result) for _, outcome in plain.stream([("a", images[0])]))


def test_a_token_for_reading_reads_and_hands_in_no_truths(secured: Secured, images: list[bytes]) -> None:
    """Otherwise anybody who may read could make the live error rate what he likes."""
    with secured.connect(secured.tokens["partner"]) as client:
        result = client.recognize(images[0])
        for call in (
            lambda: client.recognize(images[0], reference="1"),
            lambda: client.submit_reference(result.metadata.request_id, "1"),
        ):
            with pytest.raises(AccessError) as failure:
                call()
            assert (failure.value.code, failure.value.reason) == (Code.PERMISSION_DENIED, "PERMISSION_DENIED")
        (outcome,) = client.recognize_many(images[:1], references=["1"])
        assert isinstance(outcome, AccessError)


def test_a_token_works_without_tls_on_this_machine_and_is_withdrawn_by_its_line(
    start: Callable[..., ServerProcess], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("tokens") / "tokens.txt"
    old, new = new_token(), new_token()
    path.write_text(token_line("job", old) + "\n")
    server = start(tokens=path)
    server.wait_for_line("ready")
    with Client(server.target, timeout=60, token=old) as before, Client(server.target, timeout=60, token=new) as after:
        assert before.list_models()
        path.write_text("nonsense\n")
        assert "line 1" in server.wait_for_line("tokens not reloaded")["reason"]
        assert before.list_models()
        with pytest.raises(AccessError):
            after.list_models()
        path.write_text(f"{token_line('job', old)}\n{token_line('job', new)}\n")
        server.wait_for_line("tokens reloaded")
        assert before.list_models()
        assert after.list_models()
        path.write_text(token_line("job", new) + "\n")
        server.wait_for_line("tokens reloaded", 2)
        with pytest.raises(AccessError):
            before.list_models()
        assert after.list_models()
    assert server.metric("glyphline_security_reloads_total", file="tokens", outcome="ok") == 2
    assert not any(token in line for token in (old, new) for line in server.raw)
    assert server.stop() == 0


def test_the_log_tells_who_called(secured: Secured, images: list[bytes]) -> None:
    with secured.connect(secured.tokens["counter"]) as client:
        client.recognize(images[0], request_id="whose")
    with secured.connect(None) as client, pytest.raises(AccessError):
        client.recognize(images[0])

    def lines(message: str) -> list[tuple[str, str]]:
        return [(line["client"], line["code"]) for line in secured.server.lines if line["message"] == message]

    secured.server.wait_for_line("request refused")
    assert ("counter", "OK") in lines("call")
    assert ("factory", "UNAUTHENTICATED") in lines("request refused")  # known by its certificate
