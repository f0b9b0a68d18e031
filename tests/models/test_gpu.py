"""What ONNX Runtime is told of a GPU; and on a machine with one, that reading there is reading as on the CPU."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from glyphline.models.bundle import Bundle
from glyphline.models.decoding import DecodingOptions, Reading
from glyphline.models.errors import ImageError
from glyphline.models.gpu import CUDA, EngineShapes, cuda_options, load_libraries, tensorrt_options
from glyphline.models.image import GreyImage
from glyphline.models.recognizer import Recognizer

GREEDY = DecodingOptions(decoder="greedy", token_details=True)
BEAM = DecodingOptions(decoder="beam", beam_width=5, max_alternatives=3)


def test_complaint_32_a_gpu_does_not_try_every_algorithm_for_every_shape() -> None:
    """cuDNN's exhaustive search, the default of ONNX Runtime, holds up the first image of every new shape."""
    assert cuda_options(0)["cudnn_conv_algo_search"] == "HEURISTIC"


def test_complaint_29_a_gpu_s_memory_is_taken_as_it_is_needed_and_can_be_bounded() -> None:
    assert cuda_options(2)["arena_extend_strategy"] == "kSameAsRequested"
    assert "gpu_mem_limit" not in cuda_options(2)
    assert cuda_options(2, 2**30)["gpu_mem_limit"] == str(2**30)
    assert cuda_options(2)["device_id"] == "2"


def test_products_are_not_rounded() -> None:
    assert cuda_options(0)["use_tf32"] == "0"


def test_an_engine_has_a_folder_for_its_graph_and_a_range_of_shapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    graphs = [tmp_path / "one.onnx", tmp_path / "other.onnx"]
    for graph in graphs:
        graph.write_text(graph.name)
    first, second = (tensorrt_options(1, graph, EngineShapes(48, 2048), 2**31) for graph in graphs)
    folders = [Path(options["trt_engine_cache_path"]) for options in (first, second)]
    assert len(set(folders)) == 2
    assert all(folder.is_dir() and folder.is_relative_to(tmp_path / "cache" / "glyphline") for folder in folders)
    assert first["trt_profile_min_shapes"] == "images:1x1x48x32,widths:1"
    assert first["trt_profile_opt_shapes"] == "images:8x1x48x256,widths:8"
    assert first["trt_profile_max_shapes"] == "images:32x1x48x2048,widths:32"
    assert (first["device_id"], first["trt_max_workspace_size"]) == ("1", str(2**31))
    tensorrt_options(1, graphs[0], EngineShapes(48, 2048))  # the folder may be there


def test_an_engine_for_narrow_strips_has_no_wider_ones_in_its_range() -> None:
    assert re.findall(r"x(\d+),", str(EngineShapes(32, 24).profile())) == ["24", "24", "24"]


def test_what_libraries_say_is_no_reading(capfd: pytest.CaptureFixture[str]) -> None:
    load_libraries(CUDA)
    assert capfd.readouterr().out == ""


def readings(outcomes: list[Reading | ImageError]) -> list[Reading]:
    found = [outcome for outcome in outcomes if isinstance(outcome, Reading)]
    assert len(found) == len(outcomes)
    return found


def assert_alike(ours: list[Reading], theirs: list[Reading], tolerance: float) -> None:
    assert [reading.text for reading in ours] == [reading.text for reading in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one.confidence == pytest.approx(other.confidence, abs=tolerance)


@pytest.mark.gpu
class TestReading:
    @pytest.fixture(scope="class")
    def fast(self, recognizers: dict[str, Recognizer], gpu: str) -> dict[str, Recognizer]:
        return {head: Recognizer.load(one.bundle, device=gpu, threads=2) for head, one in recognizers.items()}

    @pytest.fixture
    def contents(self, strips: list[tuple[Path, str]]) -> list[bytes]:
        return [file.read_bytes() for file, _ in strips]

    @pytest.mark.parametrize("options", [GREEDY, BEAM], ids=["greedy", "beam"])
    def test_it_reads_as_the_cpu_does(
        self,
        fast: dict[str, Recognizer],
        bundle: Bundle,
        recognizer: Recognizer,
        contents: list[bytes],
        options: DecodingOptions,
    ) -> None:
        ours = readings(fast[bundle.manifest.head].recognize(contents, options))
        assert_alike(ours, readings(recognizer.recognize(contents, options)), 5e-3)

    def test_complaint_04_an_image_reads_the_same_alone_and_in_any_company_on_a_gpu(
        self, fast: dict[str, Recognizer], bundle: Bundle, contents: list[bytes]
    ) -> None:
        one = fast[bundle.manifest.head]
        alone = [reading for content in contents[:12] for reading in readings(one.recognize([content], GREEDY))]
        assert_alike(readings(one.recognize(contents, GREEDY))[:12], alone, 1e-3)

    def test_complaint_29_a_gpu_s_memory_stays_as_it_is_whatever_is_read(
        self, fast: dict[str, Recognizer], bundle: Bundle
    ) -> None:
        """Once every shape has been run, nothing more is taken; so there is no stall for a new shape (complaint 32)."""
        one, random, height = fast[bundle.manifest.head], np.random.default_rng(29), bundle.manifest.image.height

        def strips(count: int, width: int) -> list[GreyImage]:
            return [GreyImage(np.full((height, max(1, width - 8)), 255, dtype=np.uint8))] * count

        for count, width in one.shapes(8):
            one.recognize(strips(count, width), GREEDY, max_batch=8)
        before = gpu_memory()
        for _ in range(200):
            count, width = int(random.integers(1, 9)), int(2 ** random.uniform(4, 10.9))
            one.recognize(strips(count, width), GREEDY, max_batch=8)
        assert gpu_memory() <= before + 64 * 2**20


def gpu_memory() -> int:
    """Bytes in use on the first GPU."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) * 2**20
