"""From images to readings with the shipped bundles: what a caller may rely on."""

import gzip
import itertools
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from glyphline.models.bundle import Bundle, load_bundle, write_manifest
from glyphline.models.decoding import DecodingOptions, Reading
from glyphline.models.errors import (
    BundleError,
    EmptyImageError,
    ImageError,
    ImageTooLargeError,
    ImageTooWideError,
    ModelNotFoundError,
    OptionsError,
    UndecodableImageError,
)
from glyphline.models.image import GreyImage, ImageLimits, read_image
from glyphline.models.manifest import Manifest
from glyphline.models.recognizer import MAX_COLUMNS, Recognizer, StageTimings, bucket_width, load_recognizer
from glyphline.models.repository import pretrained_root

Encode = Callable[..., bytes]

BEAM = DecodingOptions(decoder="beam", beam_width=5, max_alternatives=3, token_details=True)
GREEDY = DecodingOptions(decoder="greedy", token_details=True)


@pytest.fixture(scope="session")
def contents(strips: list[tuple[Path, str]]) -> list[bytes]:
    """The real strips as files."""
    return [file.read_bytes() for file, _ in strips]


def readings(outcomes: Sequence[Reading | ImageError]) -> list[Reading]:
    """The outcomes, all of which must be readings."""
    assert all(isinstance(outcome, Reading) for outcome in outcomes)
    return [outcome for outcome in outcomes if isinstance(outcome, Reading)]


def agree(
    left: Sequence[Reading | ImageError], right: Sequence[Reading | ImageError], *, tolerance: float = 1e-3
) -> bool:
    """Whether readings are the same up to what the order of additions explains, or up to a given tolerance."""

    def numbers(reading: Reading) -> NDArray[np.float64]:
        spans = [token.span or () for alternative in reading.alternatives for token in alternative.tokens]
        confidences = [alternative.confidence for alternative in reading.alternatives]
        return np.array([*confidences, *itertools.chain(*spans)])

    def texts(reading: Reading) -> list[str]:
        return [alternative.text for alternative in reading.alternatives]

    return all(
        texts(one) == texts(other) and np.allclose(numbers(one), numbers(other), atol=tolerance)
        for one, other in zip(readings(left), readings(right), strict=True)
    )


def copy_bundle(bundle: Bundle, folder: Path, **changes: Any) -> Bundle:  # noqa: ANN401
    """Copies a bundle with another manifest."""
    shutil.copytree(bundle.path, folder)
    record = bundle.manifest.model_dump(mode="json") | changes
    write_manifest(folder, Manifest.model_validate(record))
    return load_bundle(folder)


def with_language_model(bundle: Bundle, folder: Path, content: str = "") -> Bundle:
    """Copies a bundle and gives it a language model, by default one that ends every text after a digit."""
    singles, pairs = "".join(f"-1.1 {n} -4\n" for n in range(10)), "".join(f"-0.0001 {n} </s>\n" for n in range(10))
    content = content or (
        f"\\data\\\nngram 1=12\nngram 2=10\n\\1-grams:\n-99 <s> 0\n-1.1 </s>\n{singles}\\2-grams:\n{pairs}\\end\\\n"
    )
    shutil.copytree(bundle.path, folder)
    (folder / "language_model.arpa.gz").write_bytes(gzip.compress(content.encode()))
    decoder = {
        "name": "beam",
        "beam_width": 6,
        "length_penalty": bundle.manifest.decoder.length_penalty,
        "language_model": "language_model.arpa.gz",
        "language_model_weight": 5.0,
    }
    record = bundle.manifest.model_dump(mode="json") | {"decoder": decoder}
    write_manifest(folder, Manifest.model_validate(record))
    return load_bundle(folder)


def white(width: int, height: int) -> NDArray[np.uint8]:
    """White paper."""
    return np.full((height, width), 255, dtype=np.uint8)


class TestReading:
    def test_both_heads_are_shipped(self, recognizers: dict[str, Recognizer]) -> None:
        assert set(recognizers) == {"ctc", "attention"}
        assert {recognizer.provider for recognizer in recognizers.values()} == {"CPUExecutionProvider"}

    def test_handwritten_digits_are_read(self, recognizer: Recognizer, strips: list[tuple[Path, str]]) -> None:
        mnist = [(file, text) for file, text in strips if file.name.startswith("mnist")]
        found = readings(recognizer.recognize([file.read_bytes() for file, _ in mnist]))
        assert [reading.text for reading in found] == [text for _, text in mnist]
        assert all(0.5 < reading.confidence <= 1.0 for reading in found)

    def test_most_real_strips_are_read(self, recognizer: Recognizer, strips: list[tuple[Path, str]]) -> None:
        found = readings(recognizer.recognize([file.read_bytes() for file, _ in strips]))
        right = sum(reading.text == text for reading, (_, text) in zip(found, strips, strict=True))
        assert right >= 0.6 * len(strips)

    def test_light_ink_reads_as_dark_ink_does(self, recognizer: Recognizer, contents: list[bytes]) -> None:
        images = [read_image(content) for content in contents]
        inverted = [GreyImage(255 - image.pixels) for image in images]
        # Scaling rounds halves up, so a grey level and its inverse's inverse may be one level apart. What the networks
        # make of one level of grey is a confidence that moves, by hundredths where they are unsure; nothing else may.
        assert agree(recognizer.recognize(images), recognizer.recognize(inverted), tolerance=5e-2)

    @pytest.mark.parametrize("level", [0, 128, 255])
    @pytest.mark.parametrize("size", [(1, 1), (40, 40), (300, 40), (20, 30)])
    def test_a_blank_strip_reads_as_nothing(self, recognizer: Recognizer, level: int, size: tuple[int, int]) -> None:
        blank = GreyImage(np.full(size[::-1], level, dtype=np.uint8))
        for options in (GREEDY, BEAM):
            (reading,) = readings(recognizer.recognize([blank], options))
            assert (reading.text, reading.truncated, reading.alternatives[0].tokens) == ("", False, ())
            assert 0.0 <= reading.confidence <= 1.0

    def test_confidences_are_probabilities(self, recognizer: Recognizer, contents: list[bytes]) -> None:
        for reading in readings(recognizer.recognize(contents, BEAM)):
            for alternative in reading.alternatives:
                assert 0.0 <= alternative.confidence <= 1.0
                assert alternative.log_probability <= 1e-6
                assert all(0.0 <= token.confidence <= 1.0 for token in alternative.tokens)

    def test_images_that_several_threads_decode_keep_their_places(
        self, bundle: Bundle, recognizer: Recognizer, contents: list[bytes]
    ) -> None:
        told = bundle.manifest
        several = Recognizer.load(bundle, threads=3).with_confidence(
            temperature=told.temperature, aggregate=told.confidence, odds=told.odds
        )
        assert several._decoders is not None
        mixed = [*contents[:6], b"no image", *contents[6:12]]
        ours, theirs = several.recognize(mixed), recognizer.recognize(mixed)
        assert [type(outcome) for outcome in ours] == [type(outcome) for outcome in theirs]
        assert agree([*ours[:6], *ours[7:]], [*theirs[:6], *theirs[7:]])

    def test_no_images_give_no_readings(self, recognizer: Recognizer) -> None:
        assert recognizer.recognize([]) == []


class TestOutcomes:
    def test_one_bad_image_harms_no_other(self, recognizer: Recognizer, contents: list[bytes], encode: Encode) -> None:
        good = contents[0]
        wide = encode(white(10_000, 10))
        found = recognizer.recognize([b"", good, b"no image", good[: len(good) // 2], wide, good])
        kinds = [EmptyImageError, Reading, UndecodableImageError, UndecodableImageError, ImageTooWideError, Reading]
        assert [type(outcome) for outcome in found] == kinds
        assert agree([found[1]], [found[5]])
        assert agree([found[1]], recognizer.recognize([good]))

    def test_limits_are_the_caller_s(self, recognizer: Recognizer, contents: list[bytes]) -> None:
        found = recognizer.recognize(contents, limits=ImageLimits(max_bytes=10))
        assert all(isinstance(outcome, ImageTooLargeError) for outcome in found)

    def test_a_decoded_image_reads_as_its_file_does(self, recognizer: Recognizer, contents: list[bytes]) -> None:
        assert recognizer.recognize(contents) == recognizer.recognize([read_image(content) for content in contents])


class TestCompany:
    @pytest.mark.parametrize("options", [GREEDY, BEAM])
    def test_complaint_04_an_image_reads_the_same_alone_and_in_any_company(
        self, recognizer: Recognizer, contents: list[bytes], options: DecodingOptions
    ) -> None:
        alone = [recognizer.recognize([content], options)[0] for content in contents]
        for max_batch in (1, 3, 32):
            assert agree(recognizer.recognize(contents, options, max_batch=max_batch), alone)
        order = list(range(len(contents)))
        random.Random(0).shuffle(order)
        shuffled = recognizer.recognize([contents[index] for index in order], options)
        assert agree(shuffled, [alone[index] for index in order])

    @pytest.mark.parametrize("options", [GREEDY, BEAM])
    def test_threads_read_what_one_would(
        self, recognizer: Recognizer, contents: list[bytes], options: DecodingOptions
    ) -> None:
        serial = recognizer.recognize(contents, options)
        with ThreadPoolExecutor(4) as pool:
            jobs = [pool.submit(recognizer.recognize, contents, options) for _ in range(4)]
            jobs += [pool.submit(recognizer.recognize, [content], options) for content in contents]
            together, lone = jobs[:4], jobs[4:]
            assert all(agree(job.result(), serial) for job in together)
            assert agree([job.result()[0] for job in lone], serial)

    def test_images_of_near_widths_share_a_run(self, recognizer: Recognizer) -> None:
        settings = recognizer.bundle.manifest.image
        widths = [width - 2 * settings.padding for width in (211, 48, 212, 209, 47)]
        timings = StageTimings()
        recognizer.recognize(
            [GreyImage(white(width, settings.height)) for width in widths], max_batch=2, timings=timings
        )
        assert [size for size, _ in timings.batches] == [2, 1, 2]
        assert [padding for _, padding in timings.batches] == pytest.approx([1 / 96, 3 / 212, 1 / 424])

    def test_wide_images_share_smaller_batches(self, recognizer: Recognizer) -> None:
        settings = recognizer.bundle.manifest.image
        strip = GreyImage(white(settings.max_width - 2 * settings.padding, settings.height))
        timings = StageTimings()
        recognizer.recognize([strip] * 6, timings=timings)
        assert max(size for size, _ in timings.batches) * settings.max_width <= MAX_COLUMNS

    def test_the_time_is_accounted_for(self, recognizer: Recognizer, contents: list[bytes]) -> None:
        timings = StageTimings()
        recognizer.recognize(contents, timings=timings)
        assert sum(size for size, _ in timings.batches) == len(contents)
        assert min(timings.decode_image, timings.infer, timings.search) > 0.0

    @given(st.integers(1, 5000), st.sampled_from([1, 8, 16, 48]))
    def test_a_bucket_is_the_least_multiple_that_holds_the_image(self, width: int, multiple: int) -> None:
        bucket = bucket_width(width, multiple)
        assert bucket % multiple == 0
        assert width <= bucket < width + multiple


class TestOptions:
    def test_a_beam_of_one_is_greedy(self, recognizer: Recognizer, contents: list[bytes]) -> None:
        one = DecodingOptions(decoder="beam", beam_width=1, token_details=True)
        assert recognizer.recognize(contents, one) == recognizer.recognize(contents, GREEDY)

    def test_alternatives_are_different_and_few_enough(self, recognizer: Recognizer, contents: list[bytes]) -> None:
        for reading in readings(recognizer.recognize(contents, BEAM)):
            texts = [alternative.text for alternative in reading.alternatives]
            assert 1 <= len(texts) == len(set(texts)) <= 3
            best = reading.alternatives[0]
            assert (reading.text, reading.confidence, reading.truncated) == (best.text, best.confidence, best.truncated)

    def test_ctc_alternatives_are_in_order_of_probability(
        self, recognizers: dict[str, Recognizer], contents: list[bytes]
    ) -> None:
        for reading in readings(recognizers["ctc"].recognize(contents, BEAM)):
            values = [alternative.log_probability for alternative in reading.alternatives]
            assert values == sorted(values, reverse=True)

    @pytest.mark.parametrize("options", [GREEDY, BEAM])
    @pytest.mark.parametrize("allowed", ["1", "0123", "7-€"])
    def test_only_allowed_characters_are_read(
        self, recognizer: Recognizer, contents: list[bytes], options: DecodingOptions, allowed: str
    ) -> None:
        found = readings(recognizer.recognize(contents, replace(options, allowed_characters=allowed)))
        for reading in found:
            assert all(set(alternative.text) <= set(allowed) for alternative in reading.alternatives)

    def test_an_impossible_option_is_refused_before_any_image_is_read(self, recognizer: Recognizer) -> None:
        for field, options in (
            ("allowed_characters", DecodingOptions(allowed_characters="€")),
            ("max_alternatives", DecodingOptions(decoder="beam", beam_width=2, max_alternatives=3)),
            ("beam_width", DecodingOptions(decoder="beam", beam_width=0)),
        ):
            with pytest.raises(OptionsError) as caught:
                recognizer.recognize([b"no image"], options)
            assert caught.value.field == field
        with pytest.raises(OptionsError, match="max_batch"):
            recognizer.recognize([], max_batch=0)

    @pytest.mark.parametrize("options", [GREEDY, BEAM])
    def test_a_long_text_is_cut_and_flagged(
        self, recognizer: Recognizer, contents: list[bytes], options: DecodingOptions
    ) -> None:
        whole = readings(recognizer.recognize(contents, GREEDY))
        cut = readings(recognizer.recognize(contents, replace(options, max_output_length=2)))
        assert any(reading.truncated for reading in cut)
        assert all(len(reading.text) <= 2 for reading in cut)
        if options is GREEDY:
            assert [reading.text for reading in cut] == [reading.text[:2] for reading in whole]
            assert [reading.truncated for reading in cut] == [len(reading.text) > 2 for reading in whole]

    def test_the_temperature_changes_confidences_only(self, recognizer: Recognizer, contents: list[bytes]) -> None:
        humble = recognizer.with_confidence(temperature=3.0, aggregate="mean")
        bold = recognizer.with_confidence(temperature=1.0, aggregate="mean")
        pairs = zip(readings(bold.recognize(contents, BEAM)), readings(humble.recognize(contents, BEAM)), strict=True)
        for plain, humbler in pairs:
            assert [a.text for a in plain.alternatives] == [a.text for a in humbler.alternatives]
            assert humbler.confidence <= plain.confidence + 1e-9


class TestPlaces:
    @pytest.mark.parametrize("options", [GREEDY, BEAM])
    def test_tokens_spell_the_text_from_left_to_right(
        self, recognizer: Recognizer, contents: list[bytes], options: DecodingOptions
    ) -> None:
        for content, reading in zip(contents, readings(recognizer.recognize(contents, options)), strict=True):
            width = read_image(content).width
            for alternative in reading.alternatives:
                assert "".join(token.text for token in alternative.tokens) == alternative.text
                for token in alternative.tokens:
                    assert token.span is not None
                    assert 0.0 <= token.span[0] < token.span[1] <= width

    def test_there_are_no_tokens_unless_asked_for(self, recognizer: Recognizer, contents: list[bytes]) -> None:
        for reading in readings(recognizer.recognize(contents)):
            assert all(alternative.tokens == () for alternative in reading.alternatives)

    @pytest.mark.parametrize("scale", [1, 2])
    def test_tokens_lie_in_their_part_of_the_strip(
        self, recognizer: Recognizer, strips: list[tuple[Path, str]], scale: int
    ) -> None:
        digit = read_image(next(file for file, text in strips if text == "3").read_bytes()).pixels
        picture = Image.fromarray(np.tile(digit, 4))
        picture = picture.resize((picture.width * scale, picture.height * scale))
        (reading,) = readings(recognizer.recognize([GreyImage(np.asarray(picture))], GREEDY))
        assert reading.text == "3333"
        step = digit.shape[1] * scale
        for position, token in enumerate(reading.alternatives[0].tokens):
            assert token.span is not None
            left, right = token.span
            assert position * step <= (left + right) / 2 <= (position + 1.25) * step
            assert 1.0 <= right - left <= 1.5 * step

    def test_a_ctc_place_covers_its_digit(
        self, recognizers: dict[str, Recognizer], strips: list[tuple[Path, str]]
    ) -> None:
        """Most of a digit's ink lies in its place; what does not is at its edge, in its neighbour's."""
        digit = read_image(next(file for file, text in strips if text == "3").read_bytes()).pixels
        ink = np.tile(digit > 127, 4)
        (reading,) = readings(recognizers["ctc"].recognize([GreyImage(np.tile(digit, 4))], GREEDY))
        step = digit.shape[1]
        for position, token in enumerate(reading.alternatives[0].tokens):
            assert token.span is not None
            columns = slice(*(round(edge) for edge in token.span))
            inside = np.zeros_like(ink)
            inside[:, columns] = ink[:, columns]
            own = slice(position * step, (position + 1) * step)
            assert inside[:, own].sum() >= 0.6 * ink[:, own].sum()


class TestLoading:
    def test_a_shipped_model_is_loaded_by_name(self) -> None:
        recognizer = load_recognizer()
        assert recognizer.bundle.manifest.name == "digits"
        assert recognizer.bundle.path.is_relative_to(pretrained_root())
        version = recognizer.bundle.manifest.version
        assert load_recognizer("digits", version=version).bundle == recognizer.bundle

    def test_a_bundle_is_loaded_from_its_folder(self, bundle: Bundle) -> None:
        assert load_recognizer(bundle.path).bundle == bundle
        assert load_recognizer(str(bundle.path)).bundle == bundle

    def test_an_unknown_model_is_an_error_that_lists_the_shipped_ones(self, tmp_path: Path) -> None:
        with pytest.raises(ModelNotFoundError, match="digits"):
            load_recognizer("digitz")
        with pytest.raises(ModelNotFoundError, match="digits"):
            load_recognizer("digits", version=10_000)
        with pytest.raises(BundleError, match=r"manifest\.json"):
            load_recognizer(tmp_path)

    def test_a_misread_probe_refuses_the_bundle(self, bundle: Bundle, tmp_path: Path) -> None:
        probe = bundle.manifest.probe
        other = copy_bundle(bundle, tmp_path / "text", probe=probe.model_dump() | {"text": probe.text + "1"})
        with pytest.raises(BundleError, match=rf"{probe.image}: the probe reads"):
            Recognizer.load(other)
        Recognizer.load(other, verify_probe=False)

        unsure = probe.model_dump() | {"confidence": abs(probe.confidence - 0.05)}
        other = copy_bundle(bundle, tmp_path / "confidence", probe=unsure)
        with pytest.raises(BundleError, match="the probe's confidence"):
            Recognizer.load(other)

        broken = tmp_path / "broken"
        shutil.copytree(bundle.path, broken)
        (broken / probe.image).write_bytes(b"no image")
        write_manifest(broken, bundle.manifest)
        with pytest.raises(BundleError, match=rf"{probe.image}: the probe cannot be read"):
            Recognizer.load(load_bundle(broken))

    def test_its_own_language_model_counts_where_all_is_left_to_the_bundle(
        self, recognizer: Recognizer, contents: list[bytes], tmp_path: Path
    ) -> None:
        bundle = with_language_model(recognizer.bundle, tmp_path / "bundle")
        guided = Recognizer.load(bundle, verify_probe=False)
        some = contents[:4]
        greedy = recognizer.recognize(some)
        assert any(len(reading.text) > 1 for reading in readings(greedy))
        for read in (guided.recognize(some), guided.with_confidence(temperature=2.0).recognize(some)):
            assert all(len(reading.text) <= 1 for reading in readings(read))
        for options in (
            DecodingOptions("greedy"),
            DecodingOptions("beam", 6),
            DecodingOptions(language_model=guided.language_model, language_model_weight=0.0),
        ):
            others = guided.recognize(some, options), recognizer.recognize(some, options)
            assert agree(*others)
        assert len(readings(guided.recognize(some, DecodingOptions(max_alternatives=6)))[0].alternatives) > 1
        with pytest.raises(BundleError, match=r"language_model\.arpa\.gz: .*no ARPA file"):
            Recognizer.load(with_language_model(recognizer.bundle, tmp_path / "damaged", "nothing"))

    def test_a_graph_that_does_not_fit_the_alphabet_is_refused(self, bundle: Bundle, tmp_path: Path) -> None:
        other = copy_bundle(bundle, tmp_path / "bundle", alphabet=[*bundle.manifest.alphabet, "%"])
        with pytest.raises(BundleError, match=r"\.onnx: the graph writes"):
            Recognizer.load(other, verify_probe=False)

    def test_a_graph_in_another_s_place_is_refused(self, recognizers: dict[str, Recognizer], tmp_path: Path) -> None:
        attention = recognizers["attention"].bundle
        graphs = attention.manifest.graphs
        swapped = {"encoder": graphs["decoder_step"], "decoder_step": graphs["encoder"]}
        other = copy_bundle(attention, tmp_path / "bundle", graphs=swapped)
        with pytest.raises(BundleError, match=r"decoder_step\.onnx: the graph lacks the input 'images'"):
            Recognizer.load(other)

    def test_a_state_that_the_graph_lacks_is_refused(self, recognizers: dict[str, Recognizer], tmp_path: Path) -> None:
        attention = recognizers["attention"].bundle
        states = [state.model_dump() for state in attention.manifest.states]
        other = copy_bundle(attention, tmp_path / "more", states=[*states, {"name": "mood", "kind": "frames"}])
        with pytest.raises(BundleError, match="mood"):
            Recognizer.load(other)

    def test_the_manifest_s_multiple_of_width_is_kept(
        self, recognizer: Recognizer, tmp_path: Path, contents: list[bytes]
    ) -> None:
        multiple = recognizer.bundle.manifest.width_multiple * 3
        other = copy_bundle(recognizer.bundle, tmp_path / "bundle", width_multiple=multiple)
        coarse = Recognizer.load(other, verify_probe=False)
        assert [reading.text for reading in readings(coarse.recognize(contents))] == [
            reading.text for reading in readings(recognizer.recognize(contents))
        ]

    def test_reading_needs_neither_torch_nor_grpc(self) -> None:
        script = (
            "import sys, json; from glyphline.models.recognizer import load_recognizer; load_recognizer();"
            "print(json.dumps([name for name in ('torch', 'grpc', 'onnx') if name in sys.modules]))"
        )
        done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
        assert json.loads(done.stdout) == []
