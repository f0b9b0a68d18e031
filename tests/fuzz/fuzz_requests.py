"""Fuzzes all that a server does with a request: whatever the bytes, each image has one outcome that the API documents.

    pip install atheris
    python tests/fuzz/fuzz_requests.py --seconds 300
    python tests/fuzz/fuzz_requests.py build/fuzz/requests/crash-…    tries one input again

The whole server is in this process, without gRPC itself and without processes for its workers. An input is a byte that
chooses the method, then a message; for a stream messages, each behind two bytes with its length.
"""

from __future__ import annotations

import asyncio
import io
import logging
import random
import sys
import tempfile
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Never

import grpc
import numpy as np
from fuzzing import instrumented, main
from google.protobuf.message import DecodeError, Message
from google.rpc.status_pb2 import Status
from message_changes import change_message
from PIL import Image

with instrumented():
    from glyphline.models.bundle import load_bundle
    from glyphline.models.image import ImageLimits
    from glyphline.models.recognizer import Recognizer
    from glyphline.recognition.v1 import recognition_pb2 as api
    from glyphline.service import worker
    from glyphline.service.admission import Admission
    from glyphline.service.batcher import Batcher, Done, Item
    from glyphline.service.batching import BatchQueue
    from glyphline.service.entries import BatchLimits
    from glyphline.service.feedback_service import FeedbackServicer
    from glyphline.service.guides import load_guides
    from glyphline.service.messages import Fault, Job, JobResult, ModelKey, WorkerConfig
    from glyphline.service.metrics import Metrics
    from glyphline.service.model_service import ModelServicer
    from glyphline.service.pipeline import Pipeline
    from glyphline.service.references import RecentReadings
    from glyphline.service.reloading import Models
    from glyphline.service.servicer import RecognitionServicer
    from glyphline.service.status import DETAILS_KEY

METHODS: list[tuple[str, type[Message]]] = [
    ("Recognize", api.RecognizeRequest),
    ("BatchRecognize", api.BatchRecognizeRequest),
    ("StreamingRecognize", api.StreamingRecognizeRequest),
    ("ListModels", api.ListModelsRequest),
    ("GetModel", api.GetModelRequest),
    ("SubmitReference", api.SubmitReferenceRequest),
]
STREAM = 2
Code = grpc.StatusCode
DOCUMENTED = {Code.INVALID_ARGUMENT, Code.NOT_FOUND, Code.ALREADY_EXISTS}
ITEM_CODES = {code.value[0] for code in DOCUMENTED}
# The peer's limit of all headers together is 8 KB.
LONGEST_TRAILERS = 6000
PROVIDERS: dict[ModelKey, str] = {}
LIMITS = ImageLimits(max_pixels=1_000_000)


class LocalReader:
    """A worker in this process."""

    index = 0

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._guides = load_guides(config.lexicons, config.language_models)
        self._recognizers = {}
        for folder in config.models:
            recognizer = Recognizer.load(load_bundle(folder), threads=1)
            manifest = recognizer.bundle.manifest
            self._recognizers[manifest.name, manifest.version] = recognizer
        PROVIDERS.update({key: recognizer.provider for key, recognizer in self._recognizers.items()})
        self.fault = ""

    @property
    def providers(self) -> Mapping[ModelKey, str]:
        """What runs each model."""
        return PROVIDERS

    async def run(self, job: Job, seconds: float) -> JobResult:
        """Reads a batch, and keeps what no image should be able to bring about."""
        del seconds
        result = worker._read(self._recognizers[job.model], job, self._config, self._guides)
        self.fault = next((each.traceback for each in result.outcomes if isinstance(each, Fault)), self.fault)
        return result


class LocalReaders:
    """All workers: the one.

    Args:
        reader: The one.
        on_idle: Called when it is free again.
    """

    size = living = 1

    def __init__(self, reader: LocalReader, on_idle: Callable[[], None]) -> None:
        self._reader = reader
        self._on_idle = on_idle
        self.idle = 1

    def acquire(self) -> LocalReader:
        """Takes it."""
        self.idle = 0
        return self._reader

    def release(self, member: object) -> None:
        """Gives it back."""
        del member
        self.idle = 1
        self._on_idle()


class Refused(Exception):
    """A call was ended with a status."""


class Call:
    """A call as gRPC would show it to the server.

    Attributes:
        answers: What the server wrote.
        code: How the server ended it; None if it did not.
        trailers: What it told besides.
    """

    def __init__(self) -> None:
        self.answers: list[api.StreamingRecognizeResponse] = []
        self.code: grpc.StatusCode | None = None
        self.trailers: tuple[tuple[str, str | bytes], ...] = ()

    def invocation_metadata(self) -> tuple[()]:
        """Returns the caller's metadata."""
        return ()

    def time_remaining(self) -> None:
        """Returns the time that the caller gives: any."""

    def peer(self) -> str:
        """Returns the caller's address."""
        return "ipv4:127.0.0.1:1"

    def peer_identities(self) -> None:
        """Returns what the caller's certificate says: there is none."""

    def set_trailing_metadata(self, trailers: tuple[tuple[str, str | bytes], ...]) -> None:
        """Takes what is told besides the answer."""
        self.trailers = trailers

    async def write(self, answer: api.StreamingRecognizeResponse) -> None:
        """Takes an answer of a stream."""
        self.answers.append(answer)

    async def abort(self, code: grpc.StatusCode, details: str, trailers: tuple[tuple[str, str | bytes], ...]) -> Never:
        """Ends the call."""
        self.code, self.trailers = code, (*trailers, ("grpc-message", details))
        raise grpc.aio.AbortError


@dataclass(frozen=True)
class Server:
    """The services, and the worker behind them."""

    recognition: RecognitionServicer
    models: ModelServicer
    feedback: FeedbackServicer
    reader: LocalReader

    @classmethod
    async def open(cls, folder: Path) -> Server:
        """Loads the shipped models.

        Args:
            folder: Where lexicons and a language model are written.
        """
        (folder / "codes.txt").write_text("7777\n123\n90\n", encoding="utf-8")
        (folder / "words.txt").write_text("alpha\nbeta\n", encoding="utf-8")
        singles, pairs = "".join(f"-1.1 {n} -4\n" for n in range(10)), "".join(f"-0.1 {n} </s>\n" for n in range(10))
        counts = "\\data\\\nngram 1=12\nngram 2=10\n"
        (folder / "one.arpa").write_text(
            f"{counts}\\1-grams:\n-99 <s> 0\n-1.1 </s>\n{singles}\\2-grams:\n{pairs}\\end\\\n", encoding="utf-8"
        )
        lexicons = {"codes": folder / "codes.txt", "words": folder / "words.txt"}
        language_models = {"one": folder / "one.arpa"}
        metrics = Metrics()
        catalogue = Models(None, ["digits", "digits-ctc"], metrics).catalogue
        metrics.add_models(catalogue)
        config = WorkerConfig(
            models=tuple(model.path for model in catalogue.models),
            device="cpu",
            allow_cpu_fallback=False,
            limits=LIMITS,
            max_batch=8,
            lexicons=lexicons,
            language_models=language_models,
        )
        reader = LocalReader(config)
        clock = asyncio.get_running_loop().time
        bounds = BatchLimits(items=8, pixels=16_000_000, work=8192, size=2**24)
        queue: BatchQueue[Item, Done] = BatchQueue(max_items=1024, max_bytes=2**28, limits=bounds, clock=clock)
        batcher = Batcher(queue, metrics, batch_seconds=60, clock=clock)
        batcher.attach(LocalReaders(reader, batcher.schedule))
        admission = Admission(
            catalogue,
            limits=LIMITS,
            max_beam_width=100,
            guides=load_guides(lexicons, language_models),
            ready=lambda: True,
            metrics=metrics,
        )
        pipeline = Pipeline(admission, batcher, RecentReadings(100), metrics)
        return cls(
            RecognitionServicer(pipeline, metrics, max_request_images=64, max_stream_images=8),
            ModelServicer(catalogue, lambda: PROVIDERS),
            FeedbackServicer(pipeline),
            reader,
        )

    async def answer(self, method: str, messages: list[Any], call: Any) -> Message | None:  # noqa: ANN401
        """Answers a call."""
        match method:
            case "Recognize":
                return await self.recognition.Recognize(messages[0], call)
            case "BatchRecognize":
                return await self.recognition.BatchRecognize(messages[0], call)
            case "ListModels":
                return await self.models.ListModels(messages[0], call)
            case "GetModel":
                return await self.models.GetModel(messages[0], call)
            case "SubmitReference":
                return await self.feedback.SubmitReference(messages[0], call)
        await self.recognition.StreamingRecognize(_each(messages), call)
        return None


async def _each(messages: list[Any]) -> AsyncIterator[Any]:
    for message in messages:
        yield message


class Target:
    """Tries inputs on one server."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(Server.open(Path(self._folder.name)))

    def close(self) -> None:
        """Ends the server."""
        self._loop.close()
        self._folder.cleanup()

    def __call__(self, content: bytes) -> None:
        """Tries one input.

        Raises:
            Exception: If it finds a fault.
        """
        method, parsed = parse(content)
        if parsed:
            self._loop.run_until_complete(self._call(method, parsed))

    async def _call(self, method: str, messages: list[Message]) -> None:
        call = Call()
        try:
            answer = await self._server.answer(method, messages, call)
        except grpc.aio.AbortError:
            answer = None
        assert not self._server.reader.fault, self._server.reader.fault
        size = sum(len(key) + len(value) for key, value in call.trailers)
        assert size < LONGEST_TRAILERS, call.trailers
        if call.code is not None:
            assert call.code in DOCUMENTED, (call.code, call.trailers)
            status = Status.FromString(bytes(dict(call.trailers)[DETAILS_KEY]))  # type: ignore[arg-type]
            assert (status.code, bool(status.message)) == (call.code.value[0], True)
            return
        results = [each.result for each in call.answers]
        if answer is not None:
            assert type(answer).FromString(answer.SerializeToString()) is not None
        if isinstance(answer, api.BatchRecognizeResponse):
            results = list(answer.results)
            (request,) = messages
            assert isinstance(request, api.BatchRecognizeRequest)
            assert [each.id for each in results] == [each.id for each in request.items]
        if method == "StreamingRecognize":
            items = [each.item.id for each in messages if isinstance(each, api.StreamingRecognizeRequest)]
            sent = [item for item, each in zip(items, messages, strict=True) if each.WhichOneof("request") == "item"]
            assert sorted(sent) == sorted(each.id for each in results)
        for result in results:
            if result.WhichOneof("result") == "error":
                assert result.error.code in ITEM_CODES, result
            else:
                assert result.WhichOneof("result") == "response", result


def parse(content: bytes) -> tuple[str, list[Message]]:
    """Takes an input apart: the method, and its messages as far as they can be read."""
    if not content:
        return "", []
    number = content[0] % len(METHODS)
    method, kind = METHODS[number]
    messages = []
    for part in _parts(content[1:]) if number == STREAM else [content[1:]]:
        try:
            messages.append(kind.FromString(part))
        except DecodeError:
            break
    return method, messages


def _parts(content: bytes) -> Iterator[bytes]:
    while len(content) >= 2:
        size = int.from_bytes(content[:2], "big")
        yield content[2 : 2 + size]
        content = content[2 + size :]


def build(number: int, messages: list[Message]) -> bytes:
    """Puts an input together."""
    contents = [message.SerializeToString() for message in messages]
    if number == STREAM:
        contents = [len(each).to_bytes(2, "big") + each for each in contents if len(each) < 2**16]
    return bytes([number]) + b"".join(contents)


def strip() -> bytes:
    """Makes a small image."""
    pixels = np.full((12, 30), 255, dtype=np.uint8)
    pixels[2:10, 5] = pixels[2:10, 15] = pixels[2, 10:16] = 0
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


IMAGES = [strip(), b"", b"text", strip()[:50], b"P5 3 2 255\nabcdef", b"P5 60000 60000 255\n"]


def mutate(content: bytes, most: int, seed: int) -> bytes:
    """Changes an input: every second time a field of a message, else any bytes."""
    import atheris  # noqa: PLC0415  (only where inputs are searched for)

    choose = random.Random(seed)
    _, messages = parse(content)
    if messages and choose.random() < 0.5:
        number = content[0] % len(METHODS)
        for _ in range(choose.choice([1, 1, 2, 4])):
            change_message(choose.choice(messages), choose, IMAGES)
        if number == STREAM and choose.random() < 0.2:
            messages.append(choose.choice(messages))
        changed = build(number, messages)
        if len(changed) <= most:
            return changed
    mutated: bytes = atheris.Mutate(content, most)
    return mutated


def seeds() -> Iterator[bytes]:
    """Makes requests that are answered, of every method and with every option."""
    image = api.Image(content=strip())
    beam = api.BeamSearchDecoder(beam_width=4, length_penalty=0.5)
    configs = [
        api.RecognitionConfig(),
        api.RecognitionConfig(model="digits", greedy=api.GreedyDecoder(), allowed_characters="0123"),
        api.RecognitionConfig(model="digits-ctc", beam_search=beam, max_alternatives=3, enable_token_details=True),
        api.RecognitionConfig(lexicon=api.Lexicon(words=["7", "12", "123"]), length_bonus=0.5, max_output_length=2),
        api.RecognitionConfig(lexicon=api.Lexicon(name="codes"), language_model=api.LanguageModel(name="one")),
        api.RecognitionConfig(model="digits-ctc", language_model=api.LanguageModel(name="one", weight=0.5)),
    ]
    for config in configs:
        yield build(0, [api.RecognizeRequest(image=image, config=config, reference_text="17", request_id="a")])
    items = [api.BatchItem(id=str(number), image=image, config=config) for number, config in enumerate(configs[:3])]
    yield build(1, [api.BatchRecognizeRequest(items=[*items, api.BatchItem(id="none")], config=configs[2])])
    opening = api.StreamingRecognizeRequest(config=configs[1])
    yield build(STREAM, [opening, *(api.StreamingRecognizeRequest(item=item) for item in items)])
    yield build(3, [api.ListModelsRequest(page_size=1, page_token="MQ==")])
    yield build(4, [api.GetModelRequest(name="digits", version="1")])
    yield build(5, [api.SubmitReferenceRequest(request_id="a", reference_text="17")])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable()
    target = Target()
    sys.exit(main("requests", target, seeds, description=__doc__, mutate=mutate))
