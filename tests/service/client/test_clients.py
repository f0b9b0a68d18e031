"""What both clients refuse by themselves, and what they make of inputs that are no images."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest

from glyphline.models.errors import OptionsError
from glyphline.service.client import (
    AsyncClient,
    Client,
    ClientClosedError,
    ImageInput,
    InputError,
    InvalidRequestError,
    Outcome,
    RecognitionError,
    Result,
)

NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan")])
def test_a_time_that_is_none_is_refused(timeout: float) -> None:
    with pytest.raises(OptionsError, match="timeout: must be more than 0"):
        Client(NOWHERE, timeout=timeout)
    with Client(NOWHERE) as client:
        for call in (
            lambda: client.recognize(b"", timeout=timeout),
            lambda: client.recognize_many([b""], timeout=timeout),
            lambda: list(client.stream([], timeout=timeout)),
            lambda: client.get_model(timeout=timeout),
            lambda: client.wait_until_ready(timeout),
        ):
            with pytest.raises(OptionsError, match="timeout: must be more than 0"):
                call()


async def test_the_asyncio_client_refuses_it_too() -> None:
    async with AsyncClient(NOWHERE) as client:
        with pytest.raises(OptionsError, match="timeout"):
            await client.recognize(b"", timeout=0)
        with pytest.raises(OptionsError, match="batch_size: must be at least 1, not 0"):
            await client.recognize_many([b""], batch_size=0)
        with pytest.raises(OptionsError, match="priority"):
            await client.recognize(b"", priority="urgent")  # type: ignore[arg-type]
    with pytest.raises(ClientClosedError, match="the client is closed"):
        await client.recognize(b"")
    with pytest.raises(ClientClosedError):
        await client.recognize_many([b""])
    with pytest.raises(ClientClosedError):
        async for _ in client.stream([]):
            pass


@pytest.mark.parametrize("count", ["batch_size", "parallel"])
def test_a_number_of_things_that_is_none_is_refused(count: str) -> None:
    with Client(NOWHERE) as client, pytest.raises(OptionsError, match=f"{count}: must be at least 1, not 0"):
        client.recognize_many([b""], **{count: 0})  # type: ignore[arg-type]


def test_a_closed_client_says_so() -> None:
    with Client(NOWHERE) as client:
        pass
    for call in (
        lambda: client.recognize(b""),
        lambda: client.recognize_many([b""]),
        lambda: list(client.stream([])),
        client.list_models,
        lambda: client.submit_reference("id", ""),
        client.wait_until_ready,
    ):
        with pytest.raises(ClientClosedError, match="the client is closed"):
            call()


def test_a_server_that_is_not_there_is_told_shortly() -> None:
    with Client(NOWHERE, timeout=0.5) as client, pytest.raises(RecognitionError) as failure:
        client.recognize(b"x")
    assert NOWHERE in str(failure.value)
    assert len(str(failure.value)) < 80
    assert failure.value.__cause__ is not None


@pytest.fixture
def mixed(images: list[bytes], tmp_path: Path) -> list[ImageInput]:
    """A good image, a missing file, a good one, a folder, and no image at all."""
    return [images[0], tmp_path / "missing.png", images[1], tmp_path, "name"]  # type: ignore[list-item]


def assert_mixed(outcomes: list[Outcome]) -> None:
    assert [type(outcome) for outcome in outcomes] == [Result, InputError, Result, InputError, InputError]
    assert "missing.png: No such file" in str(outcomes[1])
    assert "Is a directory" in str(outcomes[3])
    assert "not str" in str(outcomes[4])


def test_an_input_that_is_no_image_fails_alone(client: Client, mixed: list[ImageInput]) -> None:
    assert_mixed(client.recognize_many(mixed, batch_size=2))
    streamed = dict(client.stream((str(index), image) for index, image in enumerate(mixed)))
    assert_mixed([streamed[str(index)] for index in range(len(mixed))])
    with pytest.raises(InputError, match=r"missing\.png"):
        client.recognize(mixed[1])


async def test_an_input_that_is_no_image_fails_alone_in_asyncio(server_target: str, mixed: list[ImageInput]) -> None:
    async with AsyncClient(server_target, timeout=60) as client:
        assert_mixed(await client.recognize_many(mixed, batch_size=2))
        items = ((str(index), image) for index, image in enumerate(mixed))
        streamed = {name: outcome async for name, outcome in client.stream(items)}
        assert_mixed([streamed[str(index)] for index in range(len(mixed))])
        with pytest.raises(InputError, match=r"missing\.png"):
            await client.recognize(mixed[1])


def test_a_stream_tells_of_a_bad_input_without_waiting_for_the_next(
    client: Client, images: list[bytes], tmp_path: Path
) -> None:
    """The caller sends the next image only when it has the outcome of the last."""
    turns: SimpleQueue[ImageInput | None] = SimpleQueue()
    inputs: list[ImageInput] = [tmp_path / "missing", images[0], tmp_path / "missing"]

    def items() -> Iterator[tuple[str, ImageInput]]:
        while (image := turns.get()) is not None:
            yield "turn", image

    kinds = []
    turns.put(inputs[0])
    for _, outcome in client.stream(items(), timeout=60):
        kinds.append(type(outcome))
        turns.put(inputs[len(kinds)] if len(kinds) < len(inputs) else None)
    assert kinds == [InputError, Result, InputError]


def test_a_stream_of_bad_inputs_may_be_left(client: Client, tmp_path: Path) -> None:
    stream = client.stream((str(index), tmp_path / "missing") for index in range(100_000))
    assert isinstance(next(stream)[1], InvalidRequestError)
    stream.close()  # type: ignore[attr-defined]


async def test_a_stream_of_bad_inputs_may_be_left_in_asyncio(server_target: str, tmp_path: Path) -> None:
    async with AsyncClient(server_target) as client:
        stream = client.stream((str(index), tmp_path / "missing") for index in range(100_000))
        assert isinstance((await anext(stream))[1], InvalidRequestError)
        await asyncio.wait_for(stream.aclose(), 60)  # type: ignore[attr-defined]


def test_a_result_offers_what_a_reading_does(client: Client, images: list[bytes]) -> None:
    result = client.recognize(images[0])
    assert result.alternatives == result.reading.alternatives
    assert result.truncated is result.reading.truncated is False
