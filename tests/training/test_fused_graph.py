"""The fused graph against the loop over the step, for small random decoders of both kinds."""

from __future__ import annotations

import copy
import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from glyphline.models.binding import Binder
from glyphline.models.bundle import load_bundle, write_manifest
from glyphline.models.decoding import Hypothesis, ResolvedOptions
from glyphline.models.decoding.fused import fused_inputs
from glyphline.models.errors import GlyphlineError
from glyphline.models.heads import StepHead
from glyphline.models.manifest import Manifest
from glyphline.models.recognizer import Recognizer
from glyphline.models.repository import ModelRepository, pretrained_root
from glyphline.models.session import open_session
from glyphline.models.timings import StageTimings
from glyphline.training import fuse
from glyphline.training.errors import ExportError
from glyphline.training.fuse import FUSED_NAME, check_fused, fuse_bundle
from glyphline.training.fused_graph import fuse as fuse_step

HEIGHT, SIZE = 3, 5

Tensors = list[tuple[str, int, list[str | int]]]
"""Names, kinds and axes of a graph's inputs or outputs."""


def make_step(random: np.random.Generator, symbols: int, *, looks: bool) -> onnx.ModelProto:
    """Makes a recurrent decoder; one that looks attends by content, away from where it looked before."""
    weights = {
        "embedding": random.normal(0, 1, (symbols + 1, SIZE)),
        "recurrence": random.normal(0, 1, (SIZE, SIZE)),
        "output": random.normal(0, 2, (SIZE, symbols)),
        "read": random.normal(0, 0.02, (HEIGHT, SIZE)),
        "bias": np.eye(symbols)[0] * 2,  # or hardly any text would end
    }
    initial = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
    initial += [numpy_helper.from_array(np.array([axis]), f"axis_{axis}") for axis in (1, 2)]
    nodes = [
        helper.make_node("Gather", ["embedding", "symbols"], ["written"]),
        helper.make_node("MatMul", ["hidden", "recurrence"], ["kept"]),
        helper.make_node("Add", ["written", "kept"], ["both"]),
    ]
    number, real = TensorProto.INT64, TensorProto.FLOAT
    inputs: Tensors = [("symbols", number, ["rows"]), ("hidden", real, ["rows", SIZE])]
    outputs: Tensors = [("log_probabilities", real, ["rows", symbols]), ("next_hidden", real, ["rows", SIZE])]
    if looks:
        initial += [numpy_helper.from_array(np.array(-1e9, dtype=np.float32), "never")]
        initial += [numpy_helper.from_array(np.array(value), f"number_{value}") for value in (0, 1)]
        nodes += [
            helper.make_node("Unsqueeze", ["hidden", "axis_2"], ["query"]),
            helper.make_node("MatMul", ["keys", "query"], ["raw"]),
            helper.make_node("Squeeze", ["raw", "axis_2"], ["likeness"]),
            helper.make_node("Sub", ["likeness", "covered"], ["left"]),
            # Which frames are the image's own: the same at every step.
            helper.make_node("Shape", ["covered"], ["width"], start=1, end=2),
            helper.make_node("Squeeze", ["width"], ["frames"]),
            helper.make_node("Range", ["number_0", "frames", "number_1"], ["places"]),
            helper.make_node("Unsqueeze", ["lengths", "axis_1"], ["ends"]),
            helper.make_node("Less", ["places", "ends"], ["valid"]),
            helper.make_node("Where", ["valid", "left", "never"], ["masked"]),
            helper.make_node("Softmax", ["masked"], ["attention"], axis=1),
            helper.make_node("Add", ["covered", "attention"], ["next_covered"]),
            helper.make_node("Unsqueeze", ["attention", "axis_1"], ["row"]),
            helper.make_node("MatMul", ["row", "memory"], ["context"]),
            helper.make_node("Squeeze", ["context", "axis_1"], ["seen"]),
            helper.make_node("MatMul", ["seen", "read"], ["told"]),
            helper.make_node("Add", ["both", "told"], ["summed"]),
        ]
        inputs[1:1] = [
            ("memory", real, ["rows", "frames", HEIGHT]),
            ("keys", real, ["rows", "frames", SIZE]),
            ("lengths", number, ["rows"]),
        ]
        inputs.append(("covered", real, ["rows", "frames"]))
        outputs[1:1] = [("attention", real, ["rows", "frames"])]
        outputs.append(("next_covered", real, ["rows", "frames"]))
    else:
        nodes.append(helper.make_node("Identity", ["both"], ["summed"]))
    nodes += [
        helper.make_node("Tanh", ["summed"], ["next_hidden"]),
        helper.make_node("MatMul", ["next_hidden", "output"], ["plain"]),
        helper.make_node("Add", ["plain", "bias"], ["scores"]),
        helper.make_node("LogSoftmax", ["scores"], ["log_probabilities"], axis=1),
    ]
    return make_model(nodes, inputs, outputs, initial)


def make_encoder(random: np.random.Generator, *, looks: bool) -> onnx.ModelProto:
    """Makes an encoder whose frames are the columns of the image."""
    weights = {"key": random.normal(0, 0.01, (HEIGHT, SIZE)), "start": random.normal(0, 0.004, (HEIGHT, SIZE))}
    initial = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
    initial += [numpy_helper.from_array(np.array([1]), "axis_1")]
    nodes = [
        helper.make_node("Squeeze", ["images", "axis_1"], ["grey"]),
        helper.make_node("Cast", ["grey"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Transpose", ["numbers"], ["memory"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["memory", "key"], ["keys"]),
        helper.make_node("Identity", ["widths"], ["lengths"]),
        helper.make_node("ReduceMean", ["memory", "axis_1"], ["mean"], keepdims=0),
        helper.make_node("MatMul", ["mean", "start"], ["initial_hidden"]),
        helper.make_node("ReduceMean", ["memory", "axis_2"], ["level"], keepdims=0),
        helper.make_node("Sub", ["level", "level"], ["initial_covered"]),
    ]
    initial += [numpy_helper.from_array(np.array([2]), "axis_2")]
    number, real = TensorProto.INT64, TensorProto.FLOAT
    inputs: Tensors = [("images", TensorProto.UINT8, ["batch", 1, HEIGHT, "width"]), ("widths", number, ["batch"])]
    outputs: Tensors = [("lengths", number, ["batch"]), ("initial_hidden", real, ["batch", SIZE])]
    if looks:
        outputs += [("memory", real, ["batch", "width", HEIGHT]), ("keys", real, ["batch", "width", SIZE])]
        outputs.append(("initial_covered", real, ["batch", "width"]))
    return make_model(nodes, inputs, outputs, initial)


def make_model(
    nodes: Sequence[onnx.NodeProto], inputs: Tensors, outputs: Tensors, initial: Sequence[TensorProto]
) -> onnx.ModelProto:
    given, written = ([helper.make_tensor_value_info(*each) for each in part] for part in (inputs, outputs))
    graph = helper.make_graph(nodes, "graph", given, written, initial)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return model


def open_head(folder: Path, seed: int, symbols: int, *, looks: bool) -> StepHead:
    """Makes a random head with its fused graph."""
    random = np.random.default_rng(seed)
    step = make_step(random, symbols, looks=looks)
    models = {"encoder": make_encoder(random, looks=looks), "step": step, "decode": fuse_step(step)}
    sessions = {}
    for name, model in models.items():
        onnx.save(model, folder / f"{name}.onnx")
        sessions[name] = open_session(folder / f"{name}.onnx")
    states = ["hidden", "covered"] if looks else ["hidden"]
    encoder, step_session = sessions["encoder"], sessions["step"]
    return StepHead(encoder, step_session, states, symbols, looks_at_frames=looks, decode=sessions["decode"])


def read(
    head: StepHead, images: NDArray[np.uint8], options: ResolvedOptions, temperature: float = 1.0, *, fused: bool
) -> list[list[Hypothesis]]:
    widths = np.array([images.shape[3] - index % 3 for index in range(len(images))], dtype=np.int64)
    timings = StageTimings()
    return head.decode(head.encode(images, widths, timings), options, temperature, timings, fused=fused)


def make_images(seed: int, count: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (count, 1, HEIGHT, 6)).astype(np.uint8)


def assert_equal(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    """Compares all there is to hypotheses: what is read exactly, numbers up to the rounding of single precision."""

    def numbers(hypothesis: Hypothesis) -> list[float]:
        closing = hypothesis.closing_log_probability
        values = [hypothesis.score, hypothesis.log_probability, *hypothesis.symbol_log_probabilities]
        return values if closing is None else [*values, closing]

    assert len(found) == len(expected)
    for ours, theirs in zip(itertools.chain(*found), itertools.chain(*expected), strict=True):
        assert (ours.symbols, ours.truncated, ours.spans) == (theirs.symbols, theirs.truncated, theirs.spans)
        assert numbers(ours) == pytest.approx(numbers(theirs), rel=1e-6, abs=1e-6)


@pytest.fixture(scope="module", params=[True, False], ids=["attention", "vector"])
def heads(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[StepHead]:
    """Heads of a few symbols that look at frames, and such that do not."""
    return [
        open_head(tmp_path_factory.mktemp("head"), seed, symbols, looks=request.param)
        for seed, symbols in enumerate((3, 5, 8))
    ]


SEARCHES = st.builds(
    ResolvedOptions,
    beam_width=st.sampled_from([1, 1, 2, 3, 7, 20]),
    length_penalty=st.sampled_from([0.0, 0.6, 1.0, 2.0]),
    max_output_length=st.integers(1, 12),
    token_details=st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2), st.integers(0, 2**32), st.integers(1, 9), SEARCHES, st.integers(1, 9), st.floats(0.5, 3.0),
    st.lists(st.booleans(), min_size=7, max_size=7).filter(lambda allowed: any(allowed[:2])),
)  # fmt: skip
def test_the_fused_graph_gives_what_the_loop_gives(
    heads: list[StepHead],
    which: int,
    seed: int,
    count: int,
    options: ResolvedOptions,
    most: int,
    temperature: float,
    allowed: list[bool],
) -> None:
    head = heads[which]
    mask = None if all(allowed) else np.array([True, *allowed])[: (3, 5, 8)[which]]
    options = ResolvedOptions(
        beam_width=options.beam_width,
        max_alternatives=min(most, options.beam_width),
        length_penalty=options.length_penalty,
        max_output_length=options.max_output_length,
        allowed=mask,
        token_details=options.token_details,
    )
    images = make_images(seed, count)
    assert_equal(
        read(head, images, options, temperature, fused=True), read(head, images, options, temperature, fused=False)
    )


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2), st.integers(0, 2**32), st.integers(1, 9), SEARCHES, st.booleans())
def test_tensors_that_stay_on_the_device_change_nothing(
    heads: list[StepHead], which: int, seed: int, count: int, options: ResolvedOptions, fused: bool
) -> None:
    head = copy.copy(heads[which])
    head._binder = Binder("cpu")
    images = make_images(seed, count)
    assert read(head, images, options, fused=fused) == read(heads[which], images, options, fused=fused)


def test_it_stops_with_the_longest_text(heads: list[StepHead]) -> None:
    counts: list[int] = []
    for seed, width, fused in itertools.product(range(5), (1, 3), heads):
        assert fused._decode is not None
        options = ResolvedOptions(beam_width=width, max_output_length=40)
        encoded = fused.encode(make_images(seed, 3), np.full(3, 6), StageTimings())
        found = fused.decode(encoded, options, 1.0, StageTimings(), fused=True)
        inputs = {name: encoded[name] for name in fused.decode_inputs if name in encoded}
        [symbols] = fused._decode.run(["symbols"], inputs | fused_inputs(options, fused._start))
        longest = max(len(best.symbols) + 1 for best, *_ in found)
        assert len(symbols) == longest if width == 1 else longest <= len(symbols) <= 41
        counts.append(len(symbols))
    assert len(set(counts)) > 2, "texts of several lengths"


def test_no_images_give_no_readings(heads: list[StepHead]) -> None:
    for fused in (True, False):
        assert read(heads[0], make_images(0, 0), ResolvedOptions(max_output_length=3), fused=fused) == []


def test_the_faster_way_is_taken(heads: list[StepHead]) -> None:
    [head, *_] = heads
    greedy, beam = ResolvedOptions(), ResolvedOptions(beam_width=5)
    assert [head.fuses(greedy, images) for images in (1, 4, 5, 32)] == [True] * 4
    assert [head.fuses(beam, images) for images in (1, 4, 5, 32)] == [True, True, False, False]


class TestBundles:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        """A copy of the shipped bundle with an attention head, without its fused graph."""
        shipped = ModelRepository([pretrained_root()]).load("digits")
        bundle = shipped.without("decode")
        path = tmp_path / "digits" / "9"
        path.mkdir(parents=True)
        for name in set(shipped.manifest.files) - {FUSED_NAME}:
            shutil.copy2(shipped.path / name, path / name)
        write_manifest(path, bundle.manifest)
        return path

    def test_a_bundle_is_given_the_graph_once_or_again(self, path: Path) -> None:
        before = load_bundle(path).manifest
        assert "decode" not in before.graphs
        for _ in range(2):
            fuse_bundle(path)
            after = load_bundle(path).manifest
            assert after.graphs == before.graphs | {"decode": FUSED_NAME}
            assert set(after.files) == set(before.files) | {FUSED_NAME}
            assert {name: after.files[name] for name in before.files} == before.files
        assert [folder.name for folder in path.parent.iterdir()] == ["9"]
        Recognizer.load(load_bundle(path))

    def test_a_graph_that_reads_otherwise_is_refused(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def write_other(step: Path, target: Path) -> None:
            model = onnx.load(step)
            [bias] = [each for each in model.graph.initializer if each.name.endswith("project.bias")]
            changed = numpy_helper.to_array(bias).copy()
            changed[2] += 0.01
            bias.CopyFrom(numpy_helper.from_array(changed, bias.name))
            onnx.save(fuse_step(model), target)

        monkeypatch.setattr(fuse, "write_fused", write_other)
        before = load_bundle(path).manifest
        with pytest.raises(ExportError, match="does not read as the decoder's loop"):
            fuse_bundle(path)
        assert load_bundle(path).manifest == before

    def test_a_graph_of_another_alphabet_is_refused(self, path: Path) -> None:
        fuse_bundle(path)
        record = load_bundle(path).manifest.model_dump(mode="json")
        record["alphabet"] = record["alphabet"][:-1]
        write_manifest(path, Manifest.model_validate(record))
        with pytest.raises(GlyphlineError, match="classes, but the alphabet"):
            Recognizer.load(load_bundle(path), verify_probe=False)

    def test_a_ctc_head_has_none(self, tmp_path: Path) -> None:
        shipped = ModelRepository([pretrained_root()]).load("digits-ctc")
        with pytest.raises(ExportError, match="no steps to fuse"):
            fuse_bundle(shipped.path)

    def test_it_is_as_the_loop_on_made_up_strips(self, path: Path) -> None:
        fuse_bundle(path)
        assert check_fused(load_bundle(path)) < 1e-5
