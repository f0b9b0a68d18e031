"""What a token may take, and how long a stream may send nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from threading import Event
from typing import TYPE_CHECKING

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc
from glyphline.service.client import Client, OverloadedError, Result, RetryPolicy, tls_credentials
from glyphline.service.client.errors import RecognitionError, from_call
from glyphline.service.security.limits import Allowance

if TYPE_CHECKING:
    from tests.service.security.conftest import Secured

Code = grpc.StatusCode


@given(st.floats(0.1, 1000), st.lists(st.tuples(st.floats(0, 10), st.floats(0.1, 500)), max_size=50))
def test_no_more_is_taken_over_time_than_the_rate_allows(rate: float, asked: list[tuple[float, float]]) -> None:
    now, taken, last = 100.0, 0.0, 0.0
    allowance = Allowance(lambda: now)
    for pause, amount in asked:
        now += pause
        if not (wait := allowance.wait(rate)):
            allowance.take(amount)
            taken, last = taken + amount, amount
        else:
            now += wait * (1 + 1e-9) + 1e-6
            assert not allowance.wait(rate)  # it was not told to wait in vain
    assert taken - last <= max(rate, 1) + rate * (now - 100.0) + 1e-6


def test_whoever_asks_for_more_than_a_second_of_it_waits_it_off() -> None:
    now = 0.0
    allowance = Allowance(lambda: now)
    assert allowance.wait(10) == 0
    allowance.take(35)  # a batch of more than a second's worth is taken as one
    assert allowance.wait(10) == pytest.approx(2.5)
    now = 2.6
    assert allowance.wait(10) == 0


def test_a_token_that_has_taken_its_share_is_told_when_to_come_back(secured: Secured, images: list[bytes]) -> None:
    with secured.connect(secured.tokens["slow"]) as client:
        client._retry = RetryPolicy(attempts=1)
        outcomes = client.recognize_many(images[:3])
        assert all(isinstance(outcome, Result) for outcome in outcomes)
        with pytest.raises(OverloadedError) as failure:
            client.recognize(images[0])
    error = failure.value
    assert (error.code, error.reason) == (Code.RESOURCE_EXHAUSTED, "RATE_EXCEEDED")
    assert error.retry_after is not None
    assert 60 < error.retry_after <= 200  # three images at one in a hundred seconds, less the one in the bucket
    assert secured.server.metric("glyphline_rejected_total", reason="rate") >= 1


def test_bytes_count_like_images(secured: Secured, images: list[bytes]) -> None:
    with secured.connect(secured.tokens["heavy"]) as client:
        client._retry = RetryPolicy(attempts=1)
        assert isinstance(client.recognize(images[0]), Result)
        with pytest.raises(OverloadedError) as failure:
            client.recognize(images[0])
    assert failure.value.retry_after is not None
    assert failure.value.retry_after <= len(images[0]) / 10


def test_complaint_20_a_message_of_the_limit_is_taken_and_one_byte_more_is_not(secured: Secured) -> None:
    """The limit is an option of the server and of the client, counts the bytes of the message, and is named."""
    pair = secured.client_pair
    credentials = tls_credentials(secured.authority.path, pair.certificate, pair.key)
    metadata = (("authorization", f"Bearer {secured.tokens['counter']}"),)
    request = api.RecognizeRequest(image=api.Image(content=bytes(4 * 2**20 - 10)))
    assert request.ByteSize() == 4 * 2**20
    with grpc.secure_channel(secured.server.target, credentials) as channel:
        stub = rpc.RecognitionServiceStub(channel)
        for reason in ("IMAGE_UNDECODABLE", "MESSAGE_TOO_LARGE"):
            with pytest.raises(grpc.RpcError) as failure:
                stub.Recognize(request, timeout=60, metadata=metadata)
            error = from_call(failure.value)
            assert error.reason == reason
            request.image.content += b"\0"
    assert f"at most {4 * 2**20} bytes" in error.message
    client = Client(
        secured.server.target, credentials=credentials, token=secured.tokens["counter"], max_message_bytes=1000
    )
    with client, pytest.raises(RecognitionError, match="at most 1000 bytes"):
        client.recognize(bytes(1000))


def test_a_stream_that_sends_nothing_is_ended(secured: Secured, images: list[bytes]) -> None:
    """It would hold a call for ever. What it sent before has been answered."""
    pair = secured.client_pair
    credentials = tls_credentials(secured.authority.path, pair.certificate, pair.key)
    release = Event()

    def messages() -> Iterator[api.StreamingRecognizeRequest]:
        yield api.StreamingRecognizeRequest(config=api.RecognitionConfig())
        yield api.StreamingRecognizeRequest(item=api.BatchItem(id="a", image=api.Image(content=images[0])))
        release.wait(60)

    with grpc.secure_channel(secured.server.target, credentials) as channel:
        metadata = (("authorization", f"Bearer {secured.tokens['counter']}"),)
        answers = rpc.RecognitionServiceStub(channel).StreamingRecognize(messages(), timeout=60, metadata=metadata)
        received: list[api.StreamingRecognizeResponse] = []
        try:
            with pytest.raises(grpc.RpcError) as failure:
                received.extend(iter(answers.__next__, None))
        finally:
            release.set()
    assert [answer.result.id for answer in received] == ["a"]
    error = from_call(failure.value)
    assert (error.code, error.reason) == (Code.ABORTED, "STREAM_IDLE")
    assert "3 s" in error.message
    assert secured.server.metric("glyphline_rejected_total", reason="idle") >= 1


def test_a_connection_that_says_nothing_is_closed(secured: Secured, images: list[bytes]) -> None:
    """Whoever connects and neither shakes hands nor speaks is left after a while, and troubles nobody meanwhile."""
    host, _, port = secured.server.target.rpartition(":")
    silent = [socket.create_connection((host, int(port)), timeout=60) for _ in range(50)]
    try:
        with secured.connect(secured.tokens["counter"]) as client:
            assert isinstance(client.recognize(images[0]), Result)
        assert silent[0].recv(1) == b""
    finally:
        for connection in silent:
            connection.close()


def test_the_calls_of_one_connection_beyond_the_limit_wait_at_the_client(secured: Secured, images: list[bytes]) -> None:
    with secured.connect(secured.tokens["counter"]) as client:
        outcomes = client.recognize_many(images[:20], batch_size=1, parallel=20)
    assert not [outcome for outcome in outcomes if isinstance(outcome, RecognitionError)]
