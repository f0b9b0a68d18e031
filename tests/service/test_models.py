"""ModelService and FeedbackService."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest

from glyphline.models.bundle import load_bundle, write_manifest
from glyphline.models.manifest import MANIFEST_NAME
from glyphline.models.recognizer import Recognizer
from glyphline.models.repository import ModelRepository
from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc
from glyphline.service.client import Client, InvalidRequestError, NotFoundError, RecognitionError
from glyphline.service.client.errors import from_call

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess


def test_models_are_described(client: Client, recognizers: dict[str, Recognizer]) -> None:
    models = client.list_models()
    assert [model.name for model in models] == ["digits", "digits-ctc", "handwriting", "words"]
    for model in models:
        manifest = recognizers[model.name].bundle.manifest
        assert model == client.get_model(model.name, model.version)
        assert model.version == manifest.version
        assert model.task == manifest.task
        assert model.head == manifest.head
        assert list(model.alphabet) == manifest.alphabet
        assert model.max_output_length == manifest.max_output_length
        assert (model.default_decoder, model.default_beam_width) == (manifest.decoder.name, manifest.decoder.beam_width)
        assert model.licence == manifest.licence
        content = recognizers[model.name].bundle.file(MANIFEST_NAME).read_bytes()
        assert model.sha256 == hashlib.sha256(content).hexdigest()
        assert model.is_latest
        assert model.is_default == (model.name == "digits")
        assert model.execution_provider == "CPUExecutionProvider"


def test_the_list_comes_in_pages(server_target: str) -> None:
    with grpc.insecure_channel(server_target) as channel:
        stub = rpc.ModelServiceStub(channel)
        first = stub.ListModels(api.ListModelsRequest(page_size=1), timeout=60)
        second = stub.ListModels(api.ListModelsRequest(page_size=3, page_token=first.next_page_token), timeout=60)
        assert [model.name for model in first.models] == ["digits"]
        assert [model.name for model in second.models] == ["digits-ctc", "handwriting", "words"]
        assert first.next_page_token
        assert not second.next_page_token
        for request, field in (
            (api.ListModelsRequest(page_size=-1), "page_size"),
            (api.ListModelsRequest(page_token="nonsense"), "page_token"),
            (api.ListModelsRequest(page_token="bW9kZWxzOjk5"), "page_token"),
        ):
            with pytest.raises(grpc.RpcError) as failure:
                stub.ListModels(request, timeout=60)
            assert from_call(failure.value).field_violations[0].field == field


def test_several_versions_of_a_model(
    start: Callable[..., ServerProcess], model_root: Path, tmp_path: Path, images: list[bytes]
) -> None:
    source = ModelRepository([model_root]).resolve("digits")
    for version in (1, 2, 10):
        folder = tmp_path / "digits" / str(version)
        shutil.copytree(source, folder)
        write_manifest(folder, load_bundle(source).manifest.model_copy(update={"version": version}))
    server = start(model_repository=tmp_path, models="digits:2,digits,digits:1")
    with Client(server.target, timeout=60) as client:
        client.wait_until_ready(60)
        assert [model.version for model in client.list_models()] == [1, 2, 10]
        assert client.recognize(images[0]).version == 10
        assert client.recognize(images[0], model="digits", version=2).version == 2
        assert [model.is_latest for model in client.list_models()] == [False, False, True]
    assert server.stop() == 0


def test_a_reference_is_compared_with_what_was_read(client: Client, images: list[bytes]) -> None:
    result = client.recognize(images[0], request_id="feedback-1")
    evaluation = client.submit_reference("feedback-1", f"{result.text}7")
    assert (evaluation.edit_distance, evaluation.reference_length) == (1, len(result.text) + 1)
    assert not evaluation.exact_match
    assert client.submit_reference("feedback-1", f"{result.text}7") == evaluation  # the same again is no news


def test_a_second_opinion_is_refused(client: Client, images: list[bytes]) -> None:
    client.recognize(images[0], request_id="feedback-2", reference="12")
    with pytest.raises(RecognitionError) as failure:
        client.submit_reference("feedback-2", "13")
    assert failure.value.code is grpc.StatusCode.ALREADY_EXISTS


def test_items_of_batches_and_streams_take_references_too(client: Client, images: list[bytes]) -> None:
    (outcome,) = client.recognize_many(images[:1])
    ((_, streamed),) = client.stream([("0", images[0])])
    for each in (outcome, streamed):
        assert not isinstance(each, RecognitionError)
        assert client.submit_reference(each.metadata.request_id, each.text).exact_match


def test_references_of_what_is_not_remembered(client: Client) -> None:
    with pytest.raises(NotFoundError, match="remembered"):
        client.submit_reference("never-asked", "12")
    with pytest.raises(InvalidRequestError, match="request_id"):
        client.submit_reference("", "12")
    with pytest.raises(InvalidRequestError, match="reference_text"):
        client.submit_reference("never-asked", "1" * 4097)


def test_the_memory_is_bounded(start: Callable[..., ServerProcess], images: list[bytes]) -> None:
    server = start(remembered_readings=2)
    with Client(server.target, timeout=60) as client:
        client.wait_until_ready(60)
        for name in "abc":
            client.recognize(images[0], request_id=name)
        with pytest.raises(NotFoundError):
            client.submit_reference("a", "1")
        client.submit_reference("b", "1")
        client.submit_reference("c", "1")
