"""Lines beyond the width of one run: cut, read in windows, and put together as if they had been read in one piece."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from rapidfuzz.distance import Levenshtein

from glyphline.models import recognizer as recognizer_module
from glyphline.models.decoding import DecodingOptions, Reading
from glyphline.models.errors import ImageTooWideError
from glyphline.models.image import GreyImage, read_image
from glyphline.models.long_lines import (
    CONTEXT,
    LONGEST_LINE,
    STEP,
    WINDOW,
    columns_to_read,
    merge_frames,
    plan_windows,
    readable_width,
    widest_strip,
)
from glyphline.models.recognizer import MAX_COLUMNS, Recognizer, StageTimings

DETAILS = DecodingOptions(token_details=True)


@st.composite
def plans(draw: st.DrawFn) -> tuple[int, int, int]:
    """A width, a window and a context that go together."""
    context = draw(st.integers(0, 6)) * STEP
    window = 2 * context + draw(st.integers(1, 8)) * STEP
    return draw(st.integers(1, 4000)), window, context


class TestPlan:
    @given(plan=plans())
    def test_every_column_is_kept_once(self, plan: tuple[int, int, int]) -> None:
        windows = plan_windows(*plan)
        edges = [(window.first, window.last) for window in windows]
        assert edges[0][0] == 0
        assert edges[-1][1] == plan[0]
        assert all(left[1] == right[0] for left, right in pairwise(edges))
        assert all(first < last for first, last in edges)

    @given(plan=plans())
    def test_what_is_kept_has_its_context(self, plan: tuple[int, int, int]) -> None:
        width, size, context = plan
        for window in plan_windows(width, size, context):
            assert 0 <= window.start <= window.first < window.last <= window.stop <= width
            assert window.stop - window.start <= size
            assert window.start == 0 or window.first - window.start >= context
            assert window.stop == width or window.stop - window.last >= context

    @given(plan=plans())
    def test_frames_of_all_windows_lie_on_one_grid(self, plan: tuple[int, int, int]) -> None:
        windows = plan_windows(*plan)
        assert all(window.start % STEP == 0 and window.first % STEP == 0 for window in windows)
        # All are as wide but for a few columns of the last: they share a batch with next to no padding.
        assert all(plan[1] - (window.stop - window.start) < STEP for window in windows) or len(windows) == 1

    @given(plan=plans(), frames_per_step=st.sampled_from([1, 2, 3, 4]))
    def test_merging_gives_the_frames_of_the_whole(self, plan: tuple[int, int, int], frames_per_step: int) -> None:
        width = plan[0]
        whole = np.arange(-(-width // 4) * frames_per_step, dtype=np.float64)[:, None]
        windows = plan_windows(*plan)
        parts = [
            whole[window.start // 4 * frames_per_step : -(-window.stop // 4) * frames_per_step] for window in windows
        ]
        assert np.array_equal(merge_frames(parts, windows, 4 / frames_per_step), whole)

    @pytest.mark.parametrize("sizes", [(0, 64, 16), (100, 32, 16), (100, 60, 16), (100, 64, 8), (100, 64, -16)])
    def test_sizes_that_do_not_go_together_are_refused(self, sizes: tuple[int, int, int]) -> None:
        with pytest.raises(ValueError, match="no windows"):
            plan_windows(*sizes)

    def test_the_longest_line_costs_a_known_number_of_columns(self) -> None:
        assert sum(window.stop - window.start for window in plan_windows(LONGEST_LINE)) <= 6 * MAX_COLUMNS
        assert 2 * CONTEXT < WINDOW <= MAX_COLUMNS


def join(images: list[NDArray[np.uint8]], height: int = 48) -> NDArray[np.uint8]:
    """Joins strips side by side, each at the same height and as dark ink on its own paper."""
    parts = []
    for pixels in images:
        strip = Image.fromarray(pixels).resize((max(1, round(pixels.shape[1] * height / len(pixels))), height))
        grey = np.asarray(strip)
        grey = grey if grey.mean() > 127 else 255 - grey
        parts += [grey, np.full((height, 12), np.median(grey), np.uint8)]
    return np.concatenate(parts, axis=1)


@pytest.fixture(scope="module")
def ctc(recognizers: dict[str, Recognizer]) -> Recognizer:
    """The shipped recogniser with a CTC head."""
    return recognizers["ctc"]


@pytest.fixture(scope="module")
def handwriting(strips: list[tuple[Path, str]]) -> list[tuple[NDArray[np.uint8], str]]:
    """Handwritten digits and what they are."""
    chosen = [(file, text) for file, text in strips if file.name.startswith("mnist")]
    return [(read_image(file.read_bytes()).pixels, text) for file, text in chosen]


@pytest.fixture
def one_piece(ctc: Recognizer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recognizer]:
    """The same recogniser, which reads lines of any width in one run of its network."""
    manifest = ctc.bundle.manifest
    image = manifest.image.model_copy(update={"max_width": LONGEST_LINE})
    update: dict[str, Any] = {"image": image, "max_output_length": LONGEST_LINE}
    monkeypatch.setattr(recognizer_module, "MAX_COLUMNS", LONGEST_LINE)
    bundle = replace(ctc.bundle, manifest=manifest.model_copy(update=update))
    yield Recognizer(bundle, ctc._head)


def read(recognizer: Recognizer, pixels: NDArray[np.uint8], options: DecodingOptions = DETAILS) -> Reading:
    """Reads one image, which must be readable."""
    (outcome,) = recognizer.recognize([GreyImage(pixels)], options)
    assert isinstance(outcome, Reading), outcome
    return outcome


class TestReading:
    @pytest.mark.parametrize("parts", [20, 80])
    def test_a_long_line_reads_as_well_as_in_one_piece(
        self,
        ctc: Recognizer,
        one_piece: Recognizer,
        handwriting: list[tuple[NDArray[np.uint8], str]],
        parts: int,
    ) -> None:
        random = np.random.default_rng(parts)
        chosen = [handwriting[index] for index in random.integers(0, len(handwriting), parts).tolist()]
        line, truth = join([pixels for pixels, _ in chosen]), "".join(text for _, text in chosen)
        whole, reading = read(one_piece, line), read(ctc, line)
        assert not reading.truncated
        assert Levenshtein.distance(reading.text, truth) <= Levenshtein.distance(whole.text, truth) + 1
        assert Levenshtein.distance(reading.text, whole.text) <= 0.02 * len(truth)
        frame = ctc.bundle.manifest.pixels_per_frame
        tokens, others = reading.alternatives[0].tokens, whole.alternatives[0].tokens
        moved = []
        for block in Levenshtein.opcodes(reading.text, whole.text):
            if block.tag == "equal":
                pairs = zip(
                    tokens[block.src_start : block.src_end], others[block.dest_start : block.dest_end], strict=True
                )
                moved += [abs(one.span[1] - other.span[1]) for one, other in pairs if one.span and other.span]
        # A network may write a symbol early or late, and does not decide that alike in every window.
        assert float(np.mean(np.array(moved) <= frame)) >= 0.9

    def test_text_is_cut_only_where_the_caller_asks(
        self, ctc: Recognizer, handwriting: list[tuple[NDArray[np.uint8], str]]
    ) -> None:
        line = join([pixels for pixels, _ in handwriting] * 3)
        line = np.concatenate([line] * (1 + 2500 // line.shape[1]), axis=1)
        reading = read(ctc, line, DecodingOptions(max_output_length=20))
        assert (len(reading.text), reading.truncated) == (20, True)

    def test_the_beam_reads_long_lines_too(
        self, ctc: Recognizer, handwriting: list[tuple[NDArray[np.uint8], str]]
    ) -> None:
        line = join([pixels for pixels, _ in handwriting])
        line = np.concatenate([line] * (1 + 9000 // line.shape[1]), axis=1)
        options = DecodingOptions("beam", 5, max_alternatives=3, token_details=True)
        reading, greedy = read(ctc, line, options), read(ctc, line)
        assert reading.alternatives[0].log_probability >= greedy.alternatives[0].log_probability - 1e-6
        assert len({alternative.text for alternative in reading.alternatives}) == 3
        for alternative in reading.alternatives:
            spans = [token.span for token in alternative.tokens]
            assert all(span is not None and 0 <= span[0] < span[1] <= line.shape[1] for span in spans)

    def test_windows_share_runs_of_bounded_size(self, ctc: Recognizer) -> None:
        manifest = ctc.bundle.manifest
        blank = np.full((manifest.image.height, 12_000), 255, np.uint8)
        timings = StageTimings()
        (reading,) = ctc.recognize([GreyImage(blank)], timings=timings)
        assert isinstance(reading, Reading) and reading.text == ""
        assert [size for size, _ in timings.batches] == [1, 1]
        assert columns_to_read(12_008, manifest) == 2 * WINDOW - 8


class TestLimits:
    def test_what_is_too_long_is_refused_with_both_numbers(self, recognizer: Recognizer) -> None:
        manifest = recognizer.bundle.manifest
        limit = widest_strip(manifest)
        padding = 2 * manifest.image.padding
        height = manifest.image.height
        assert readable_width(limit - padding, height, manifest) == limit
        with pytest.raises(ImageTooWideError, match=rf"{limit + 1} pixels wide .* the limit is {limit}"):
            readable_width(limit - padding + 1, height, manifest)
        pixels = np.full((4, (limit + 100) * 4 // height), 255, np.uint8)
        (outcome,) = recognizer.recognize([GreyImage(pixels)])
        assert isinstance(outcome, ImageTooWideError)

    def test_a_head_that_writes_step_by_step_names_the_other(self, recognizers: dict[str, Recognizer]) -> None:
        manifest = recognizers["attention"].bundle.manifest
        assert widest_strip(manifest) == manifest.image.max_width
        with pytest.raises(
            ImageTooWideError, match=f"the limit is 2048 .* a ctc model reads lines up to {LONGEST_LINE}"
        ):
            readable_width(10_000, 48, manifest)
        assert widest_strip(recognizers["ctc"].bundle.manifest) == LONGEST_LINE
