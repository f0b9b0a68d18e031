"""Tensors that stay on the device give what arrays that come and go give. The device is the CPU here, and a GPU where
there is one."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from glyphline.models.binding import Binder, Rows, padded_rows
from glyphline.models.decoding import DecodingOptions, Lexicon
from glyphline.models.heads import StepHead
from glyphline.models.recognizer import Recognizer
from glyphline.models.session import open_session
from glyphline.models.timings import StageTimings

SEARCHES = {
    "greedy": DecodingOptions("greedy", token_details=True),
    "beam": DecodingOptions("beam", 4, max_alternatives=3, token_details=True),
    "allowed": DecodingOptions("beam", 3, allowed_characters="0123456789"),
}


@pytest.fixture(scope="module", params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    if request.param != "cpu":
        request.getfixturevalue("gpu")
    return str(request.param)


@pytest.fixture(scope="module")
def binder(device: str) -> Binder:
    return Binder(device)


@pytest.fixture(scope="module")
def plain(recognizers: dict[str, Recognizer]) -> StepHead:
    """The shipped attention head, whose tensors come and go."""
    head = recognizers["attention"]._head
    assert isinstance(head, StepHead)
    return head


@pytest.fixture(scope="module")
def bound(recognizers: dict[str, Recognizer], device: str, binder: Binder) -> StepHead:
    """The same with tensors that stay."""
    bundle = recognizers["attention"].bundle
    sessions = {role: open_session(bundle.file(file), device) for role, file in bundle.manifest.graphs.items()}
    return StepHead(
        sessions["encoder"],
        sessions["decoder_step"],
        [state.name for state in bundle.manifest.states],
        recognizers["attention"].alphabet.start,
        looks_at_frames=True,
        decode=sessions["decode"],
        binder=binder,
    )


@pytest.fixture(scope="module")
def batch() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Strips of different widths with something on them; five, which is no number of rows that a GPU is given."""
    random = np.random.default_rng(5)
    widths = np.array([96, 64, 80, 33, 96], dtype=np.int64)
    images = random.integers(0, 256, (5, 1, 48, 96)) * (random.random((5, 1, 48, 96)) < 0.15)
    images *= np.arange(96) < widths[:, None, None, None]
    return images.astype(np.uint8), widths


@pytest.mark.parametrize("fused", [False, True], ids=["loop", "graph"])
@pytest.mark.parametrize("search", SEARCHES)
def test_a_head_reads_the_same_whether_its_tensors_stay_or_not(
    recognizers: dict[str, Recognizer],
    plain: StepHead,
    bound: StepHead,
    batch: tuple[NDArray[np.uint8], NDArray[np.int64]],
    device: str,
    search: str,
    fused: bool,
) -> None:
    one = recognizers["attention"]
    options = SEARCHES[search].resolve(one.alphabet, one.bundle.manifest.decoder, 12)
    timings = StageTimings()
    expected, found = (
        head.decode(head.encode(*batch, timings), options, 1.3, timings, fused=fused) for head in (plain, bound)
    )
    assert len(found) == len(batch[1])
    if device == "cpu":
        assert found == expected  # to the last bit: the same kernels ran on the same rows
        return
    assert [best.symbols for best, *_ in found] == [best.symbols for best, *_ in expected]
    assert np.allclose([best.score for best, *_ in found], [best.score for best, *_ in expected], atol=1e-3)


def test_a_guided_search_with_one_slot_keeps_its_rows(
    recognizers: dict[str, Recognizer],
    plain: StepHead,
    bound: StepHead,
    batch: tuple[NDArray[np.uint8], NDArray[np.int64]],
) -> None:
    """Its rows are picked at every step although they stay as many: those of the frames have to be as many, too."""
    one = recognizers["attention"]
    options = DecodingOptions("beam", 1, lexicon=Lexicon(["12", "7", "90"])).resolve(
        one.alphabet, one.bundle.manifest.decoder, 12
    )
    timings = StageTimings()
    expected, found = (head.decode(head.encode(*batch, timings), options, 1.0, timings) for head in (plain, bound))
    assert [best.symbols for best, *_ in found] == [best.symbols for best, *_ in expected]


@settings(max_examples=30)
@given(st.data())
def test_rows_are_picked_as_from_an_array(binder: Binder, bound: StepHead, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 9))
    images = np.zeros((count, 1, 48, 32), dtype=np.uint8)
    images += np.arange(count, dtype=np.uint8)[:, None, None, None] * 20
    widths = np.full(count, 32, dtype=np.int64)
    rows = bound.encode(images, widths, StageTimings())["keys"]
    assert isinstance(rows, Rows)
    array = rows.numpy()
    picks: list[NDArray[np.int64] | NDArray[np.bool_]] = [
        np.array(data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=20)), dtype=np.int64),
        np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count).filter(any))),
    ]
    for pick in picks:
        picked = rows[pick]
        assert np.array_equal(picked.numpy(), array[pick])
        assert len(picked) == len(array[pick])
        assert picked.value.shape()[0] == padded_rows(len(picked))
    assert np.array_equal(rows.padded().numpy(), array)
    assert rows.padded().padded().value.shape()[0] == padded_rows(count)


@given(st.integers(1, 10_000))
def test_there_are_few_numbers_of_rows(count: int) -> None:
    padded = padded_rows(count)
    assert count <= padded < 2 * count or padded == count == 1
    assert padded & (padded - 1) == 0


def test_a_ctc_network_gives_the_same_through_a_binder(
    recognizers: dict[str, Recognizer], binder: Binder, device: str, batch: tuple[NDArray[np.uint8], NDArray[np.int64]]
) -> None:
    session = open_session(recognizers["ctc"].bundle.file("network.onnx"), device)
    outputs = ["log_probabilities", "lengths"]
    inputs: dict[str, NDArray[Any]] = {"images": batch[0], "widths": batch[1]}
    found, kept = binder.run(session, inputs, fetched=outputs)
    assert kept == []
    for ours, theirs in zip(found, session.run(outputs, inputs), strict=True):
        assert np.array_equal(ours, theirs)
    lengths, (frames,) = binder.run(session, inputs, fetched=["lengths"], kept=["log_probabilities"], count=5)
    assert np.array_equal(lengths[0], found[1])
    assert np.array_equal(frames.numpy(), found[0])
