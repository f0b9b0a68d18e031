"""What `/metrics` tells, and that it tells it in a bounded number of series."""

from __future__ import annotations

import asyncio
import random
import socket
import string
import urllib.request
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from glyphline.models.decoding.options import DecodingOptions
from glyphline.service import metrics_endpoint
from glyphline.service.client import Client, RecognitionError, Result
from glyphline.service.entries import Withdrawn
from glyphline.service.metrics import Metrics

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess

Start = Callable[..., "ServerProcess"]
FAMILIES = {
    "grpc_server_started": "counter",
    "grpc_server_handled": "counter",
    "grpc_server_handling_seconds": "histogram",
    "grpc_server_msg_received": "counter",
    "grpc_server_msg_sent": "counter",
    "glyphline_images": "counter",
    "glyphline_queue_depth": "gauge",
    "glyphline_queue_limit": "gauge",
    "glyphline_queue_seconds": "histogram",
    "glyphline_stage_seconds": "histogram",
    "glyphline_batch_size": "histogram",
    "glyphline_batch_padding_ratio": "histogram",
    "glyphline_rejected": "counter",
    "glyphline_model_ready": "gauge",
    "glyphline_model_info": "gauge",
    "glyphline_confidence": "histogram",
    "glyphline_cer_edits": "counter",
    "glyphline_cer_reference_characters": "counter",
    "glyphline_exact_match": "counter",
    "glyphline_evaluated": "counter",
}


def series(server: ServerProcess) -> set[tuple[str, frozenset[tuple[str, str]]]]:
    """Returns the names and labels of all samples."""
    return {
        (sample.name, frozenset(sample.labels.items()))
        for family in text_string_to_metric_families(server.metrics_text())
        for sample in family.samples
    }


def test_every_family_is_there(server: ServerProcess, client: Client, images: list[bytes]) -> None:
    client.recognize(images[0], reference="1")
    families = {family.name: family.type for family in text_string_to_metric_families(server.metrics_text())}
    assert families.items() >= FAMILIES.items()


def test_complaint_33_random_names_make_no_series(server: ServerProcess, client: Client, images: list[bytes]) -> None:
    """What callers choose never becomes a label, so that scrapes stay as small as they are."""
    chance = random.Random(0)

    def noise() -> str:
        return "".join(chance.choices(string.ascii_letters + string.digits, k=12))

    def harass() -> None:
        for _ in range(10):
            client.recognize(images[0], request_id=noise(), reference=noise())
            with pytest.raises(RecognitionError):
                client.recognize(images[0], model=noise())
            with pytest.raises(RecognitionError):
                client.recognize(noise().encode())
            with pytest.raises(RecognitionError):
                client.get_model(noise())
            with pytest.raises(RecognitionError):
                client.submit_reference(noise(), noise())
            with grpc.insecure_channel(server.target) as channel, pytest.raises(grpc.RpcError):
                channel.unary_unary(f"/{noise()}/{noise()}")(b"", timeout=60)  # type: ignore[arg-type]

    harass()
    before = series(server)
    harass()
    assert series(server) == before


def test_every_image_counts_once(start: Start, images: list[bytes]) -> None:
    server = start()
    with Client(server.target) as client:
        client.wait_until_ready()
        client.recognize_many([*images[:5], b"", b"text"])
        client.recognize_many(images[:4], options=DecodingOptions("beam", beam_width=3))
        client.recognize_many(images[:3], model="digits-ctc", options=DecodingOptions("beam", beam_width=1))
        client.recognize_many(images[:2], model="nothing")
        list(client.stream([("0", images[0]), ("1", b"text")]))
        with pytest.raises(RecognitionError):
            client.recognize(images[0], options=DecodingOptions("greedy", allowed_characters="€"))

    def count(**labels: str) -> float:
        return server.metric("glyphline_images_total", **labels)

    default = "beam" if count(model="digits", decoder="beam", outcome="ok") == 10 else "greedy"
    assert count(model="digits", outcome="ok") == 10
    assert count(model="digits", decoder=default, outcome="invalid_image") == 3
    assert count(model="digits-ctc", decoder="greedy", outcome="ok") == 3
    assert count(outcome="invalid_request") == 1  # a batch of a model that is not there is refused as a whole
    assert count() == 17
    assert server.metric("glyphline_rejected_total", reason="model") == 1
    assert server.metric("glyphline_confidence_count") == 13
    assert server.metric("glyphline_batch_size_sum") == 13
    assert server.metric("glyphline_queue_seconds_count") == 13
    assert server.metric("glyphline_stage_seconds_sum", stage="infer") > 0
    assert server.metric("glyphline_workers") == 1
    assert server.metric("glyphline_model_info", device="cpu", provider="CPUExecutionProvider") == 2
    assert server.metric("glyphline_queue_limit") == 1024


def test_calls_and_messages_are_counted(start: Start, images: list[bytes]) -> None:
    server = start()
    with Client(server.target) as client:
        client.wait_until_ready()
        client.recognize(images[0])
        with pytest.raises(RecognitionError):
            client.recognize(b"")
        list(client.stream([(str(index), image) for index, image in enumerate(images[:5])]))

    def count(name: str, **labels: str) -> float:
        return server.metric(
            f"grpc_server_{name}", grpc_service="glyphline.recognition.v1.RecognitionService", **labels
        )

    assert count("started_total", grpc_type="unary", grpc_method="Recognize") == 2
    assert count("handled_total", grpc_method="Recognize", grpc_code="OK") == 1
    assert count("handled_total", grpc_method="Recognize", grpc_code="INVALID_ARGUMENT") == 1
    assert count("handling_seconds_count", grpc_method="Recognize") == 2
    assert count("msg_received_total", grpc_method="Recognize") == 2
    assert count("msg_sent_total", grpc_method="Recognize") == 1
    assert count("handled_total", grpc_type="bidi_stream", grpc_code="OK") == 1
    assert count("msg_received_total", grpc_method="StreamingRecognize") == 6
    assert count("msg_sent_total", grpc_method="StreamingRecognize") == 5


def test_the_live_character_error_rate(shipped_version: int, start: Start, images: list[bytes]) -> None:
    server = start()
    with Client(server.target) as client:
        client.wait_until_ready()
        first = client.recognize(images[0])
        text = first.text
        assert len(text) > 2
        client.recognize(images[0], reference=text)  # exact
        client.recognize(images[0], reference=f"{text}12")  # two characters missing in the reading
        client.recognize(images[0], reference=text[1:])  # one too many
        client.submit_reference(first.metadata.request_id, "?" + text[1:])  # one another
        client.submit_reference(first.metadata.request_id, "?" + text[1:])  # which counts once

    def count(name: str, **labels: str) -> float:
        return server.metric(f"glyphline_{name}_total", model="digits", version=str(shipped_version), **labels)

    assert count("cer_edits", kind="deletion") == 2
    assert count("cer_edits", kind="insertion") == 1
    assert count("cer_edits", kind="substitution") == 1
    assert count("cer_reference_characters") == 4 * len(text) + 2 - 1
    assert count("evaluated") == 4
    assert count("exact_match") == 1


def test_a_model_that_comes_back_after_it_was_forgotten_is_counted_anew() -> None:
    metrics = Metrics()

    def model(name: str) -> Any:  # noqa: ANN401  # one that is served needs a bundle
        return SimpleNamespace(name=name, version=1, key=(name, 1))

    def counted() -> float | None:
        labels = {"model": "first", "version": "1", "decoder": "greedy", "outcome": "cancelled"}
        return metrics.registry.get_sample_value("glyphline_images_total", labels)

    first: Any = SimpleNamespace(model=model("first"), decoder="greedy", width=64)
    metrics.count_outcome(first, Withdrawn())
    metrics.count_outcome(first, Withdrawn())
    assert counted() == 2
    for name in ("first", "second", "third", "fourth", "fifth"):
        metrics.retire_model(model(name))
    assert counted() is None
    metrics.count_outcome(first, Withdrawn())
    assert counted() == 1


def test_what_reads_with_a_model_is_told_once_beside_what_was_asked_to() -> None:
    metrics = Metrics()
    model = SimpleNamespace(
        name="first", version=1, key=("first", 1), manifest=SimpleNamespace(head="ctc"), manifest_sha256="ab"
    )
    catalogue: Any = SimpleNamespace(models=[model])

    def told() -> list[tuple[str, str]]:
        (family,) = metrics.model_info.collect()
        return [(sample.labels["device"], sample.labels["provider"]) for sample in family.samples]

    metrics.set_providers(catalogue, {}, "cuda")
    assert told() == []
    metrics.set_providers(catalogue, {("first", 1): "CUDAExecutionProvider"}, "cuda")
    assert told() == [("cuda", "CUDAExecutionProvider")]
    metrics.set_providers(catalogue, {("first", 1): "CPUExecutionProvider"}, "cuda")  # a worker after it fell back
    assert told() == [("cuda", "CPUExecutionProvider")]


def test_metrics_can_be_turned_off(start: Start, images: list[bytes]) -> None:
    server = start(metrics_port=-1)
    with Client(server.target, timeout=60) as client:
        client.wait_until_ready(60)
        assert isinstance(client.recognize(images[0]), Result)
    assert server.wait_for_line("listening")["metrics_port"] == 0
    assert server.stop() == 0


def test_metrics_can_be_bound_elsewhere(start: Start) -> None:
    server = start(metrics_host="127.0.0.2")
    port = server.wait_for_line("listening")["metrics_port"]
    with urllib.request.urlopen(f"http://127.0.0.2:{port}/metrics", timeout=60) as answer:
        assert b"glyphline_images_total" in answer.read()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=60)


async def test_a_scraper_that_asks_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_endpoint, "_REQUEST_SECONDS", 0.1)
    endpoint = metrics_endpoint.MetricsEndpoint("127.0.0.1", 0, CollectorRegistry())
    try:
        with socket.create_connection(("127.0.0.1", endpoint.port), timeout=60) as silent:
            silent.sendall(b"GET /metr")
            assert await asyncio.to_thread(silent.recv, 1) == b""
    finally:
        await endpoint.close()
