"""OpenVINO reads as ONNX Runtime does: strips of different widths in one batch, on any thread, with both heads."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from glyphline.models.bundle import Bundle
from glyphline.models.decoding import Reading
from glyphline.models.errors import BundleError, DeviceError
from glyphline.models.manifest import Precision
from glyphline.models.recognizer import Recognizer
from glyphline.models.session import open_session

pytest.importorskip("openvino", reason="needs the openvino extra")


@pytest.fixture(scope="module")
def feeds() -> dict[str, NDArray[Any]]:
    """Strips of different widths, whose padding must not be read."""
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (3, 1, 48, 64)) * (random.random((3, 1, 48, 64)) < 0.2)
    widths = np.array([64, 41, 18], dtype=np.int64)
    images *= np.arange(64) < widths[:, None, None, None]
    return {"images": images.astype(np.uint8), "widths": widths}


def test_each_strip_of_a_batch_reads_as_with_onnx_runtime(
    recognizers: dict[str, Recognizer], feeds: dict[str, NDArray[Any]]
) -> None:
    file = recognizers["ctc"].bundle.file("network.onnx")
    session = open_session(file, provider="openvino")
    expected, lengths = open_session(file).run(["log_probabilities", "lengths"], feeds)
    found, counted = session.run(["log_probabilities", "lengths"], feeds)
    assert session.get_providers()[0].startswith("OpenVINO")
    assert np.array_equal(lengths, counted)
    for row, length in enumerate(lengths.tolist()):
        # bfloat16 has 8 bits; a strip that read its padding would be off by nearly 1
        assert np.abs(np.exp(found[row, :length]) - np.exp(expected[row, :length])).max() < 0.02


def test_a_result_stays_when_the_session_runs_again(
    recognizers: dict[str, Recognizer], feeds: dict[str, NDArray[Any]]
) -> None:
    session = open_session(recognizers["ctc"].bundle.file("network.onnx"), provider="openvino")
    [first] = session.run(["log_probabilities"], feeds)
    kept = first.copy()
    other: list[NDArray[Any]] = []
    thread = threading.Thread(target=lambda: other.extend(session.run(["log_probabilities"], feeds)))
    thread.start()
    thread.join()
    session.run(None, feeds | {"images": np.zeros_like(feeds["images"])})
    assert np.array_equal(first, kept)
    assert np.array_equal(other[0], kept)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_shipped_graphs_keep_the_names_of_what_goes_in_and_out(bundle: Bundle, precision: Precision) -> None:
    # the scaling of the images is merged into the input, which then has more than one name
    graphs = bundle.graphs(precision)
    graph = bundle.file(graphs["network" if "network" in graphs else "encoder"])
    plain, other = open_session(graph), open_session(graph, provider="openvino")
    assert [tensor.name for tensor in other.get_inputs()] == [tensor.name for tensor in plain.get_inputs()]
    assert [tensor.name for tensor in other.get_outputs()] == [tensor.name for tensor in plain.get_outputs()]


def test_both_heads_read_through_it(bundle: Bundle, recognizer: Recognizer, strips: list[tuple[Path, str]]) -> None:
    fast = Recognizer.load(bundle, provider="openvino")
    contents = [file.read_bytes() for file, _ in strips[:12]]
    pairs = list(zip(fast.recognize(contents), recognizer.recognize(contents), strict=True))
    texts = [(one.text, other.text) for one, other in pairs if isinstance(one, Reading) and isinstance(other, Reading)]
    assert len(texts) == len(contents)
    assert sum(one == other for one, other in texts) >= len(texts) - 1
    assert fast.provider.startswith("OpenVINO")


def test_what_it_cannot_do_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="runs on device 'cpu' only"):
        open_session(tmp_path / "network.onnx", "cuda", provider="openvino")
    (tmp_path / "network.onnx").write_bytes(b"no graph")
    with pytest.raises(BundleError, match="OpenVINO cannot open"):
        open_session(tmp_path / "network.onnx", provider="openvino")
