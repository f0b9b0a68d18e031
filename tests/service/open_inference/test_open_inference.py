"""Clients of the protocol are read what Glyphline's own clients are read, under the same rules."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import numpy as np
import pytest
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from glyphline.models.decoding.options import DecodingOptions
from glyphline.open_inference.v2 import open_inference_pb2 as api
from glyphline.service.client import Result
from glyphline.service.client.errors import RecognitionError, from_call
from glyphline.service.open_inference.tensors import pack_bytes, unpack_bytes
from glyphline.service.server import Server
from glyphline.service.settings import ServerSettings

if TYPE_CHECKING:
    from tests.service.open_inference.conftest import Served

Code = grpc.StatusCode
SERVICE = "inference.GRPCInferenceService"
TRITONCLIENT = Path(__file__).with_name("tritonclient_program.py")


def request_of(images: list[bytes], *outputs: str, model: str = "", **parameters: object) -> api.ModelInferRequest:
    """Writes a request as tritonclient does."""
    request = api.ModelInferRequest(model_name=model, raw_input_contents=[pack_bytes(images)])
    request.inputs.add(name="image", datatype="BYTES", shape=[len(images)])
    for name in outputs:
        request.outputs.add(name=name)
    for name, value in parameters.items():
        kind = {bool: "bool_param", int: "int64_param", float: "double_param"}.get(type(value), "string_param")
        setattr(request.parameters[name], kind, value)
    return request


def add_references(request: api.ModelInferRequest, texts: list[str]) -> api.ModelInferRequest:
    request.inputs.add(name="reference_text", datatype="BYTES", shape=[len(texts)])
    request.raw_input_contents.append(pack_bytes([text.encode() for text in texts]))
    return request


def outputs_of(response: api.ModelInferResponse) -> dict[str, list[object]]:
    """Reads the outputs of an answer, in either form."""
    found: dict[str, list[object]] = {}
    for index, tensor in enumerate(response.outputs):
        count = int(np.prod(tensor.shape))
        elements: list[object]
        if not response.raw_output_contents:
            contents = tensor.contents
            elements = [*contents.bytes_contents, *contents.fp32_contents, *contents.int_contents]
        elif tensor.datatype == "BYTES":
            elements = list(unpack_bytes(response.raw_output_contents[index], count))
        else:
            content = response.raw_output_contents[index]
            elements = np.frombuffer(content, {"FP32": "<f4", "INT32": "<i4"}[tensor.datatype]).tolist()
        assert len(elements) == count
        found[tensor.name] = [each.decode() if isinstance(each, bytes) else each for each in elements]
    return found


def refuse(served: Served, method: str, request: object, token: str = "all") -> RecognitionError:
    """Makes a call that must fail, and returns its error."""
    with pytest.raises(grpc.RpcError) as failure:
        served.call(method, request, token)  # type: ignore[arg-type]
    return from_call(failure.value)


def test_both_apis_read_the_same(served: Served, images: list[bytes]) -> None:
    with served.client() as client:
        results = [result for result in client.recognize_many(images) if isinstance(result, Result)]
    typed = api.ModelInferRequest()
    typed.inputs.add(name="image", datatype="BYTES", shape=[len(images)]).contents.bytes_contents.extend(images)
    for request in (request_of(images), typed):
        response = served.call("ModelInfer", request)
        assert (response.model_name, response.model_version) == (results[0].model, str(results[0].version))
        assert bool(response.raw_output_contents) == bool(request.raw_input_contents)
        found = outputs_of(response)
        assert list(found) == ["text", "confidence", "status", "error"]
        assert found["text"] == [result.text for result in results]
        assert found["confidence"] == pytest.approx([result.confidence for result in results], abs=1e-4)
        assert found["status"] == [0] * len(images)
        assert found["error"] == [""] * len(images)


def test_alternatives_are_those_of_the_beam(served: Served, images: list[bytes]) -> None:
    options = DecodingOptions("beam", beam_width=4, max_alternatives=3)
    with served.client() as client:
        results = client.recognize_many(images[:6], model="digits-ctc", options=options)
    request = request_of(images[:6], model="digits-ctc", decoder="beam", beam_width=4, max_alternatives=3)
    response = served.call("ModelInfer", request)
    assert [list(tensor.shape) for tensor in response.outputs] == [[6], [6], [6, 3], [6], [6]]
    texts = outputs_of(response)["alternatives"]
    for index, result in enumerate(results):
        assert isinstance(result, Result)
        row = texts[3 * index : 3 * index + 3]
        found = [alternative.text for alternative in result.reading.alternatives]
        assert row == found + [""] * (3 - len(found))


def test_parameters_reach_the_decoder(served: Served, images: list[bytes]) -> None:
    def texts(**parameters: int | str) -> list[object]:
        return outputs_of(served.call("ModelInfer", request_of(images[:4], "text", "status", model="", **parameters)))[
            "text"
        ]

    assert all(set(str(text)) <= set("01") for text in texts(allowed_characters="01"))
    assert all(len(str(text)) <= 1 for text in texts(max_output_length=1, priority=1, timeout=60_000_000))
    assert set(texts(lexicon="codes")) <= {"7777", "123", "90", ""}


def test_one_bad_image_fails_alone(served: Served, images: list[bytes]) -> None:
    response = served.call("ModelInfer", request_of([images[0], b"no picture", b"", images[1]]))
    found = outputs_of(response)
    alone = outputs_of(served.call("ModelInfer", request_of([images[0], images[1]])))
    assert found["text"] == [alone["text"][0], "", "", alone["text"][1]]
    assert found["status"] == [0, 3, 3, 0]
    assert found["confidence"][1:3] == [0, 0]
    assert "PNG" in str(found["error"][1])
    assert "empty" in str(found["error"][2])


def test_who_does_not_ask_for_the_status_is_told_by_the_call(served: Served, images: list[bytes]) -> None:
    error = refuse(served, "ModelInfer", request_of([images[0], b"no picture"], "text"))
    assert error.code is Code.INVALID_ARGUMENT
    assert [violation.field for violation in error.field_violations] == ["image[1]"]
    late = refuse(served, "ModelInfer", request_of(images[:1], "text", timeout=1))
    assert late.code is Code.DEADLINE_EXCEEDED


def test_the_timeout_is_a_deadline(served: Served, images: list[bytes]) -> None:
    found = outputs_of(served.call("ModelInfer", request_of(images[:2], timeout=1)))
    assert found["status"] == [Code.DEADLINE_EXCEEDED.value[0]] * 2


def test_true_texts_count_now_or_later(served: Served, images: list[bytes]) -> None:
    before = served.server.metric("glyphline_evaluated_total")
    request = add_references(request_of(images[:2], model="digits"), ["1", ""])
    request.id = "two"
    response = served.call("ModelInfer", request)
    assert response.id == "two"
    assert served.server.metric("glyphline_evaluated_total") == before + 2
    request = request_of(images[:2])
    request.id = "later"
    served.call("ModelInfer", request)
    with served.client() as client:
        assert client.submit_reference("later/1", "12").reference_length == 2
    assert served.server.metric("glyphline_evaluated_total") == before + 3


def test_a_request_without_an_id_is_given_one_beside_the_answer(served: Served, images: list[bytes]) -> None:
    infer = served.channel.unary_unary(
        f"/{SERVICE}/ModelInfer",
        api.ModelInferRequest.SerializeToString,
        api.ModelInferResponse.FromString,
    )
    response, call = infer.with_call(request_of(images[:1]), timeout=60, metadata=served.metadata())
    assert response.id == ""
    name = dict(call.trailing_metadata())["x-request-id"]
    with served.client() as client:
        assert client.submit_reference(str(name), "1")


@pytest.mark.parametrize(
    ("request_message", "code", "words"),
    [
        (request_of([b""], model="nothing"), Code.NOT_FOUND, "no model 'nothing'"),
        (api.ModelInferRequest(), Code.INVALID_ARGUMENT, "inputs: lack 'image'"),
        (request_of([b""] * 41), Code.INVALID_ARGUMENT, "from 0 to 40 images, not 41"),
        (request_of([b""], beam_width=1000), Code.INVALID_ARGUMENT, "parameters.beam_width: must be from 1 to 100"),
        (request_of([b""], lexicon="x"), Code.NOT_FOUND, "no lexicon 'x'"),
        (request_of([b""], allowed_characters="€"), Code.INVALID_ARGUMENT, "parameters.allowed_characters: nothing"),
    ],
)
def test_requests_are_refused_as_a_whole(
    served: Served, request_message: api.ModelInferRequest, code: grpc.StatusCode, words: str
) -> None:
    before = served.server.metric("glyphline_rejected_total")
    error = refuse(served, "ModelInfer", request_message)
    assert error.code is code
    assert words in str(error)
    assert served.server.metric("glyphline_rejected_total") == before + 1


def test_bytes_that_are_no_message_are_refused(served: Served) -> None:
    call: Any = served.channel.unary_unary(f"/{SERVICE}/ModelInfer")
    with pytest.raises(grpc.RpcError) as failure:
        call(b"\xff\xff", timeout=60, metadata=served.metadata())
    assert from_call(failure.value).code is Code.INVALID_ARGUMENT


def test_tokens_hold_here_too(served: Served, images: list[bytes]) -> None:
    request = request_of(images[:1])
    for method, message in (("ModelInfer", request), ("ServerLive", api.ServerLiveRequest())):
        assert refuse(served, method, message, token="").code is Code.UNAUTHENTICATED
    assert served.call("ModelInfer", request, "reader").outputs
    told = add_references(request_of(images[:1]), ["1"])
    assert refuse(served, "ModelInfer", told, "reader").code is Code.PERMISSION_DENIED
    assert served.call("ModelInfer", request_of(images[:3]), "slow").outputs
    error = refuse(served, "ModelInfer", request, "slow")
    assert (error.code, error.reason) == (Code.RESOURCE_EXHAUSTED, "RATE_EXCEEDED")


def test_the_server_and_its_models_are_described(served: Served) -> None:
    with served.client() as client:
        models = client.list_models()
    (model,) = (each for each in models if each.name == "digits-ctc")
    assert served.call("ServerLive", api.ServerLiveRequest()).live
    assert served.call("ServerReady", api.ServerReadyRequest()).ready
    server = served.call("ServerMetadata", api.ServerMetadataRequest())
    assert (server.name, bool(server.version), "statistics" in server.extensions) == ("glyphline", True, True)
    for name, version, ready in (("", "", True), ("digits", "999", False), ("nothing", "", False)):
        request = api.ModelReadyRequest(name=name, version=version)
        assert served.call("ModelReady", request).ready is ready
    metadata = served.call("ModelMetadata", api.ModelMetadataRequest(name="digits-ctc"))
    assert list(metadata.versions) == [str(model.version)]
    config = served.call("ModelConfig", api.ModelConfigRequest(name="digits-ctc", version=str(model.version))).config
    described = [(each.name, list(each.shape)) for each in (*metadata.inputs, *metadata.outputs)]
    assert described == [(each.name, list(each.dims)) for each in (*config.input, *config.output)]
    assert [each.name for each in config.input if not each.optional] == ["image"]
    assert config.parameters["sha256"].string_value == model.sha256
    assert config.instance_group[0].count == 1
    index = served.call("RepositoryIndex", api.RepositoryIndexRequest()).models
    assert [(each.name, each.version, each.state) for each in index] == [
        (each.name, str(each.version), "READY") for each in models
    ]
    for method, message in (
        ("ModelMetadata", api.ModelMetadataRequest(name="nothing")),
        ("ModelConfig", api.ModelConfigRequest(name="digits", version="999")),
        ("ModelStatistics", api.ModelStatisticsRequest(name="nothing")),
    ):
        assert refuse(served, method, message).code is Code.NOT_FOUND


def test_statistics_count_images_of_both_apis(served: Served, images: list[bytes]) -> None:
    def ask(**which: str) -> list[api.ModelStatistics]:
        return list(served.call("ModelStatistics", api.ModelStatisticsRequest(**which)).model_stats)

    assert [each.name for each in ask()] == ["digits", "digits-ctc"]
    (before,) = ask(name="digits-ctc")
    served.call("ModelInfer", request_of([*images[:4], b"no picture"], model="digits-ctc"))
    with served.client() as client:
        client.recognize(images[0], model="digits-ctc")
    (after,) = ask(name="digits-ctc", version=before.version)
    assert after.inference_count - before.inference_count == 5
    assert after.inference_stats.fail.count - before.inference_stats.fail.count == 1
    assert after.execution_count > before.execution_count
    assert after.last_inference >= before.last_inference
    assert after.inference_stats.success.ns > after.inference_stats.compute_infer.ns > 0
    assert sum(each.batch_size * each.compute_infer.count for each in after.batch_stats) == (
        after.inference_stats.queue.count
    )


def test_calls_are_counted_and_the_service_is_named(served: Served, images: list[bytes]) -> None:
    labels = {"grpc_service": SERVICE, "grpc_method": "ModelInfer", "grpc_code": "OK"}
    before = served.server.metric("grpc_server_handled_total", **labels)
    served.call("ModelInfer", request_of(images[:1]))
    assert served.server.metric("grpc_server_handled_total", **labels) == before + 1
    check = served.channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        health_pb2.HealthCheckRequest.SerializeToString,
        health_pb2.HealthCheckResponse.FromString,
    )
    answer = check(health_pb2.HealthCheckRequest(service=SERVICE), timeout=60)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    ask = served.channel.stream_stream(
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        reflection_pb2.ServerReflectionRequest.SerializeToString,
        reflection_pb2.ServerReflectionResponse.FromString,
    )
    questions = [reflection_pb2.ServerReflectionRequest(list_services="")]
    (told,) = ask(iter(questions), timeout=60, metadata=served.metadata())
    assert SERVICE in [service.name for service in told.list_services_response.service]


async def test_a_server_without_workers_is_unavailable() -> None:
    server = Server(ServerSettings(port=0, metrics_port=-1, workers=1, models=["digits"], open_inference=True))
    port = server._server.add_insecure_port("127.0.0.1:0")
    await server._server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:

        async def call(method: str, request: bytes) -> bytes:
            ask: Any = channel.unary_unary(f"/{SERVICE}/{method}")
            answer: bytes = await ask(request, timeout=60)
            return answer

        assert not api.ServerReadyResponse.FromString(await call("ServerReady", b"")).ready
        assert not api.ModelReadyResponse.FromString(await call("ModelReady", b"")).ready
        (model,) = api.RepositoryIndexResponse.FromString(await call("RepositoryIndex", b"")).models
        assert (model.state, model.reason) == ("UNAVAILABLE", "the server is not ready")
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await call("ModelInfer", request_of([b"x"]).SerializeToString())
        assert failure.value.code() is Code.UNAVAILABLE
        details = dict(failure.value.trailing_metadata())["grpc-status-details-bin"]
        assert isinstance(details, bytes)
        assert any(each.TypeName() == "google.rpc.RetryInfo" for each in Status.FromString(details).details)
    await server.stop()


def test_nothing_of_the_protocol_is_loaded_unless_it_is_served() -> None:
    """Its names exist once in a process: a program with tritonclient may use all the rest of Glyphline."""
    program = "import sys, glyphline.service.server, glyphline.service.client; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "glyphline.service.server" in run.stdout.split()
    assert [name for name in run.stdout.split() if "open_inference" in name] == []


@pytest.fixture(scope="module")
def told(served: Served, strips: list[tuple[Path, str]]) -> dict[str, Any]:
    """What tritonclient says of the server, in a process of its own: its messages and ours cannot share one."""
    if find_spec("tritonclient") is None:
        pytest.skip("tritonclient is not installed (pip install 'glyphline[dev]')")
    paths = [str(path) for path, _ in strips[:6]]
    command = [sys.executable, str(TRITONCLIENT), served.server.target, served.tokens["all"], *paths]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stderr
    answers: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return answers


def test_tritonclient_is_told_the_status_of_each_image(
    served: Served, told: dict[str, Any], images: list[bytes]
) -> None:
    with served.client() as client:
        results = [result for result in client.recognize_many(images[:6], model="digits") if isinstance(result, Result)]
    texts = [result.text for result in results]
    assert told["id"] == "triton"
    assert told["batch"]["status"] == [0, 3, 0, 0, 0, 0, 0]
    assert told["batch"]["text"] == [texts[0], "", *texts[1:]]
    assert "PNG" in told["batch"]["error"][1]
    assert [bool(error) for error in told["batch"]["error"]] == [False, True, False, False, False, False, False]
    assert told["batch"]["confidence"][0] == pytest.approx(results[0].confidence, abs=1e-4)
    assert told["asyncio"] == {"text": texts, "status": [0] * 6}


def test_tritonclient_asks_for_a_beam(served: Served, told: dict[str, Any], images: list[bytes]) -> None:
    options = DecodingOptions("beam", beam_width=5, length_penalty=0.5, max_alternatives=2)
    with served.client() as client:
        results = client.recognize_many(images[:6], model="digits-ctc", options=options)
    assert told["beam"]["status"] == [0] * 6
    for row, result in zip(told["beam"]["alternatives"], results, strict=True):
        assert isinstance(result, Result)
        found = [alternative.text for alternative in result.reading.alternatives]
        assert row == found + [""] * (2 - len(found))


def test_tritonclient_understands_what_is_described(told: dict[str, Any]) -> None:
    assert told["ready"] == [True, True, True, False]
    assert told["server"]["name"] == "glyphline"
    assert [each["name"] for each in told["metadata"]["inputs"]] == ["image", "reference_text"]
    assert told["metadata"]["inputs"][0] == {"name": "image", "datatype": "BYTES", "shape": ["-1"]}
    config = told["config"]["config"]
    assert (config["name"], config["backend"]) == ("digits", "glyphline")
    assert config["input"][0] == {"name": "image", "data_type": "TYPE_STRING", "dims": ["-1"]}
    assert config["input"][1]["optional"]
    assert config["instance_group"][0]["kind"] == "KIND_CPU"
    assert [each["state"] for each in told["index"]["models"]] == ["READY", "READY"]
    (statistics,) = told["statistics"]["model_stats"]
    assert int(statistics["inference_count"]) >= 12
    assert int(statistics["inference_stats"]["compute_infer"]["ns"]) > 0


def test_tritonclient_is_refused_with_a_reason(told: dict[str, Any]) -> None:
    unknown, parameter, sequence, token, memory = told["refused"]
    assert (unknown[0], "no model 'nothing'" in unknown[1]) == ("StatusCode.NOT_FOUND", True)
    assert (parameter[0], "'best_of' is none of" in parameter[1]) == ("StatusCode.INVALID_ARGUMENT", True)
    assert (sequence[0], "'sequence_end' is none of" in sequence[1]) == ("StatusCode.INVALID_ARGUMENT", True)
    assert token[0] == "StatusCode.UNAUTHENTICATED"
    assert memory[0] == "StatusCode.UNIMPLEMENTED"
