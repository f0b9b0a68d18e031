"""The fused graph of the shipped bundle against the loop over its step, on real strips."""

from dataclasses import replace
from pathlib import Path

import pytest

from glyphline.models.decoding import DecodingOptions, Lexicon, Reading
from glyphline.models.recognizer import Recognizer

pytest.importorskip("onnxruntime", reason="needs the cpu extra")


@pytest.fixture(scope="module")
def fused(recognizers: dict[str, Recognizer]) -> Recognizer:
    """The shipped recogniser that carries a fused graph."""
    recognizer = recognizers["attention"]
    assert "decode" in recognizer.bundle.manifest.graphs
    return recognizer


@pytest.fixture(scope="module")
def loop(fused: Recognizer) -> Recognizer:
    """The same bundle as those without the graph are read."""
    return Recognizer.load(fused.bundle.without("decode"))


GREEDY = DecodingOptions("greedy", token_details=True)
BEAM = DecodingOptions("beam", 5, max_alternatives=4, token_details=True)
SEARCHES = {
    "greedy": GREEDY,
    "greedy, restricted and cut": replace(GREEDY, allowed_characters="0123", max_output_length=2),
    "beam": BEAM,
    "beam, restricted and cut": replace(BEAM, allowed_characters="0123", max_output_length=2),
    "beam without a length penalty": replace(BEAM, beam_width=9, length_penalty=0.0),
    "beam of width 1": DecodingOptions("beam", 1, token_details=True),
}


def read(recognizer: Recognizer, contents: list[bytes], options: DecodingOptions, batch: int) -> list[Reading]:
    found = recognizer.recognize(contents, options, max_batch=batch)
    assert all(isinstance(each, Reading) for each in found)
    return [each for each in found if isinstance(each, Reading)]


@pytest.mark.parametrize("batch", [1, 32])
@pytest.mark.parametrize("search", SEARCHES)
def test_it_reads_what_the_loop_reads(
    fused: Recognizer, loop: Recognizer, strips: list[tuple[Path, str]], search: str, batch: int
) -> None:
    options = SEARCHES[search]
    contents = [file.read_bytes() for file, _ in strips]
    ours, theirs = read(fused, contents, options, batch), read(loop, contents, options, batch)
    assert any(reading.truncated for reading in ours) == (options.max_output_length is not None)
    for found, expected in zip(ours, theirs, strict=True):
        for one, other in zip(found.alternatives, expected.alternatives, strict=True):
            assert (one.text, one.truncated) == (other.text, other.truncated)
            assert [token.span for token in one.tokens] == [token.span for token in other.tokens]
            assert one.confidence == pytest.approx(other.confidence, abs=1e-5)
            assert one.log_probability == pytest.approx(other.log_probability, rel=1e-6, abs=1e-5)


def test_what_is_steered_goes_through_the_loop(
    fused: Recognizer, loop: Recognizer, strips: list[tuple[Path, str]]
) -> None:
    contents = [file.read_bytes() for file, _ in strips]
    options = DecodingOptions(lexicon=Lexicon([text for _, text in strips]))
    assert read(fused, contents, options, 32) == read(loop, contents, options, 32)
