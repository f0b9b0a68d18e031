"""What a server reads is what the recogniser reads, whichever call asks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.decoding.readings import Reading
from glyphline.models.recognizer import Recognizer
from glyphline.service.client import AsyncClient, Client, InvalidRequestError, Outcome, RecognitionError, Result

OPTIONS = {
    "default": None,
    "greedy": DecodingOptions("greedy"),
    "beam": DecodingOptions("beam", beam_width=10, max_alternatives=3, token_details=True),
    "constrained": DecodingOptions("beam", beam_width=4, allowed_characters="0123456789", max_output_length=6),
}
HEADS = ("digits", "digits-ctc")


def expected(recognizer: Recognizer, images: list[bytes], options: DecodingOptions | None) -> list[Reading]:
    outcomes = recognizer.recognize(images, options or DecodingOptions())
    return [outcome for outcome in outcomes if isinstance(outcome, Reading)]


def assert_same(outcome: Outcome, reading: Reading) -> None:
    """Compares a result with what this process read; numbers travel as 32-bit floats."""
    assert isinstance(outcome, Result), outcome
    assert outcome.reading.text == reading.text
    assert outcome.reading.truncated == reading.truncated
    assert outcome.reading.confidence == pytest.approx(reading.confidence, abs=1e-4)
    assert [each.text for each in outcome.reading.alternatives] == [each.text for each in reading.alternatives]
    for theirs, ours in zip(outcome.reading.alternatives, reading.alternatives, strict=True):
        assert theirs.log_probability == pytest.approx(ours.log_probability, abs=1e-2, rel=1e-3)
        assert [token.text for token in theirs.tokens] == [token.text for token in ours.tokens]
        for their_token, our_token in zip(theirs.tokens, ours.tokens, strict=True):
            assert their_token.span == pytest.approx(our_token.span, abs=1e-2)


@pytest.mark.parametrize("model", HEADS)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_every_call_reads_as_the_recogniser_in_this_process(
    client: Client,
    recognizers: dict[str, Recognizer],
    images: list[bytes],
    model: str,
    options: DecodingOptions | None,
) -> None:
    readings = expected(recognizers[model], images, options)
    batch = client.recognize_many(images, model=model, options=options)
    stream = dict(
        client.stream([(str(index), image) for index, image in enumerate(images)], model=model, options=options)
    )
    for index, reading in enumerate(readings):
        assert_same(batch[index], reading)
        assert_same(stream[str(index)], reading)
        assert_same(client.recognize(images[index], model=model, options=options), reading)


@pytest.mark.parametrize("model", HEADS)
def test_a_beam_of_one_is_greedy(client: Client, images: list[bytes], model: str) -> None:
    greedy = client.recognize_many(images, model=model, options=DecodingOptions("greedy"))
    beam = client.recognize_many(images, model=model, options=DecodingOptions("beam", beam_width=1))
    for one, other in zip(greedy, beam, strict=True):
        assert isinstance(one, Result)
        assert isinstance(other, Result)
        assert one.reading == other.reading


def test_the_shipped_model_reads_real_strips(
    client: Client, strips: list[tuple[object, str]], images: list[bytes]
) -> None:
    results = client.recognize_many(images, references=[text for _, text in strips])
    right = sum(
        isinstance(each, Result) and each.evaluation is not None and each.evaluation.exact_match for each in results
    )
    assert right >= 0.8 * len(images)


async def test_complaint_05_of_many_callers_each_gets_its_own(
    server_target: str, recognizers: dict[str, Recognizer], images: list[bytes]
) -> None:
    """A thousand calls at once, of both models and both decoders, in random order."""
    kinds = [(model, options) for model in HEADS for options in (None, DecodingOptions("beam", beam_width=3))]
    texts = {
        (model, options, index): reading.text
        for model, options in kinds
        for index, reading in enumerate(expected(recognizers[model], images, options))
    }
    calls = [random.Random(seed).choice(list(texts)) for seed in range(1000)]
    async with AsyncClient(server_target, timeout=120.0) as client:

        async def ask(seed: int) -> Result:
            model, options, index = calls[seed]
            return await client.recognize(images[index], model=model, options=options, request_id=f"caller-{seed}")

        results = await asyncio.gather(*(ask(seed) for seed in range(len(calls))))
    for seed, result in enumerate(results):
        assert result.text == texts[calls[seed]]
        assert result.model == calls[seed][0]
        assert result.metadata.request_id == f"caller-{seed}"
    assert 1 < max(result.metadata.batch_size for result in results) <= 32


def test_metadata_tells_how_a_request_was_served(shipped_version: int, client: Client, images: list[bytes]) -> None:
    result = client.recognize(images[0])
    assert (result.model, result.version) == ("digits", shipped_version)
    assert len(result.metadata.request_id) == 36
    assert result.metadata.batch_size == 1
    assert result.metadata.inference_seconds > 0
    assert result.metadata.queue_seconds >= 0
    assert result.metadata.execution_provider == "CPUExecutionProvider"


def test_one_bad_image_fails_alone(client: Client, images: list[bytes]) -> None:
    bad = {1: b"", 3: b"no picture", 4: images[0][: len(images[0]) // 2]}
    batch = [bad.get(index, image) for index, image in enumerate(images[:8])]
    outcomes = client.recognize_many(batch)
    stream = dict(client.stream([(str(index), image) for index, image in enumerate(batch)]))
    for index, outcome in enumerate(outcomes):
        for each in (outcome, stream[str(index)]):
            if index in bad:
                assert isinstance(each, InvalidRequestError)
                assert each.field_violations[0].field == "image.content"
                assert each.request_id
            else:
                assert isinstance(each, Result)


@pytest.mark.parametrize("model", HEADS)
def test_complaint_04_an_image_reads_the_same_in_any_company(client: Client, images: list[bytes], model: str) -> None:
    """Whatever shares its batch, however much that is padded: the text is that of the image alone."""
    alone = [client.recognize(image, model=model).text for image in images]
    for seed in range(8):
        chance = random.Random(seed)
        company = chance.choices(range(len(images)), k=chance.randint(2, 64))
        results = client.recognize_many([images[index] for index in company], model=model)
        assert [result.text for result in results if isinstance(result, Result)] == [alone[index] for index in company]


def test_complaint_15_a_batch_larger_than_the_largest_batch_is_split(client: Client, images: list[bytes]) -> None:
    many = (images * 10)[:200]
    results = client.recognize_many(many, batch_size=200)
    assert all(isinstance(result, Result) and result.metadata.batch_size <= 32 for result in results)
    assert [result.text for result in results if isinstance(result, Result)][: len(images)] == [
        result.text for result in results[len(images) : 2 * len(images)] if isinstance(result, Result)
    ]


def test_a_batch_of_nothing_is_nothing(client: Client) -> None:
    assert client.recognize_many([]) == []
    assert list(client.stream([])) == []


def test_references_give_evaluations(client: Client, images: list[bytes]) -> None:
    text = client.recognize(images[0]).text
    right = client.recognize(images[0], reference=text)
    wrong = client.recognize(images[0], reference=f"{text}12")
    blank = client.recognize(images[0], reference="")
    assert client.recognize(images[0]).evaluation is None
    assert right.evaluation is not None
    assert right.evaluation.exact_match
    assert wrong.evaluation is not None
    assert wrong.evaluation.edit_distance == 2
    assert wrong.evaluation.character_error_rate == pytest.approx(2 / (len(text) + 2))
    assert blank.evaluation is not None
    assert blank.evaluation.edit_distance == len(text)
    assert blank.evaluation.reference_length == 0


async def test_the_asyncio_client_does_what_the_other_does(
    server_target: str, recognizers: dict[str, Recognizer], images: list[bytes]
) -> None:
    readings = expected(recognizers["digits"], images, None)
    async with AsyncClient(server_target, timeout=60.0) as client:
        await client.wait_until_ready()
        batch = await client.recognize_many(images, batch_size=5, parallel=2)
        stream = {name: outcome async for name, outcome in client.stream((str(i), x) for i, x in enumerate(images))}
        for index, reading in enumerate(readings):
            assert_same(batch[index], reading)
            assert_same(stream[str(index)], reading)
        result = await client.recognize(images[0])
        evaluation = await client.submit_reference(result.metadata.request_id, result.text)
        assert evaluation.exact_match
        assert [model.name for model in await client.list_models()] == ["digits", "digits-ctc", "handwriting", "words"]
        assert (await client.get_model()).is_default
        with pytest.raises(InvalidRequestError):
            await client.recognize(b"no picture")


async def test_leaving_a_stream_early_ends_it(server_target: str, images: list[bytes]) -> None:
    async with AsyncClient(server_target) as client:
        stream = client.stream((str(index), images[index % len(images)]) for index in range(100_000))
        async for _, outcome in stream:
            assert isinstance(outcome, Result)
            break
        await stream.aclose()  # type: ignore[attr-defined]
        assert (await client.recognize(images[0])).text is not None


def test_a_callers_own_error_ends_its_stream(client: Client, images: list[bytes]) -> None:
    def items() -> Iterator[tuple[str, bytes]]:
        yield "0", images[0]
        raise LookupError("the caller's")

    with pytest.raises(LookupError, match="the caller's"):
        list(client.stream(items()))


def test_a_stream_of_a_model_that_is_not_there_fails_as_a_whole(client: Client, images: list[bytes]) -> None:
    with pytest.raises(RecognitionError, match="no model 'nothing'"):
        list(client.stream([("0", images[0])], model="nothing"))


def test_options_of_one_request_do_not_touch_another(client: Client, images: list[bytes]) -> None:
    plain = client.recognize(images[0])
    limited = client.recognize(images[0], options=replace(DecodingOptions("greedy"), max_output_length=1))
    assert len(limited.text) <= 1
    assert client.recognize(images[0]).reading == plain.reading


def test_a_long_line_is_read_in_windows_or_refused(
    client: Client,
    recognizers: dict[str, Recognizer],
    images: list[bytes],
    strips: list[tuple[Path, str]],
    encode: Callable[..., bytes],
) -> None:
    strip = next(path for path, _ in strips if path.name.startswith("mnist"))
    with Image.open(strip) as picture:
        pixels = np.asarray(picture.convert("L"))
    line = encode(Image.fromarray(np.tile(pixels, (1, 1 + 60 * pixels.shape[0] // pixels.shape[1]))))
    read, other = client.recognize_many([line, images[0]], model="digits-ctc")
    for outcome, reading in zip(
        (read, other), expected(recognizers["digits-ctc"], [line, images[0]], None), strict=True
    ):
        assert_same(outcome, reading)
    assert isinstance(read, Result)
    assert len(read.text) > 64, "longer than a strip may be"
    with pytest.raises(InvalidRequestError, match="wide"):
        client.recognize(line, model="digits")
