"""Sessions run where they were told to, on as many threads as there are cores for them."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from glyphline.models import session as session_module
from glyphline.models.errors import BundleError, DeviceError
from glyphline.models.gpu import EngineShapes
from glyphline.models.session import available_threads, check_runtime, open_session, session_device

# y = -x for a vector of any length, as an ONNX model of opset 18.
NEGATION = bytes.fromhex(
    "080912003a340a0b0a017812017922034e65671201675a100a0178120b0a0908"
    "0112050a0312016e62100a0179120b0a09080112050a0312016e42040a001012"
)

CORES = len(os.sched_getaffinity(0))


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "negation.onnx"
    path.write_bytes(NEGATION)
    return path


@pytest.fixture
def fresh_check() -> Iterator[None]:
    """Lets the check of the installed runtime look again, now and afterwards."""
    check_runtime.cache_clear()
    yield
    check_runtime.cache_clear()


class TestThreads:
    @staticmethod
    def count(tmp_path: Path, groups: str) -> int:
        (tmp_path / "self").write_text(groups)
        return available_threads(cgroup_root=tmp_path / "cgroup", cgroup_file=tmp_path / "self")

    @staticmethod
    def write(tmp_path: Path, name: str, content: str) -> None:
        file = tmp_path / "cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)

    def test_without_control_groups_the_affinity_counts(self, tmp_path: Path) -> None:
        assert available_threads(cgroup_root=tmp_path, cgroup_file=tmp_path / "nothing") == CORES

    def test_the_affinity_is_that_of_the_process(self, tmp_path: Path) -> None:
        allowed = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, {min(allowed)})
            assert available_threads(cgroup_root=tmp_path, cgroup_file=tmp_path / "nothing") == 1
        finally:
            os.sched_setaffinity(0, allowed)

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ("100000 100000\n", 1),
            ("190000 100000\n", 1),
            ("20000 100000\n", 1),
            ("max 100000\n", CORES),
            (f"{(CORES + 3) * 100000} 100000\n", CORES),
            ("", CORES),
            ("many 100000\n", CORES),
            ("100000 0\n", CORES),
        ],
    )
    def test_a_quota_of_version_2_binds(self, tmp_path: Path, content: str, expected: int) -> None:
        self.write(tmp_path, "cpu.max", content)
        assert self.count(tmp_path, "0::/\n") == expected

    def test_a_quota_of_an_ancestor_binds(self, tmp_path: Path) -> None:
        self.write(tmp_path, "machine/cpu.max", "100000 100000\n")
        self.write(tmp_path, "machine/job/cpu.max", "max 100000\n")
        assert self.count(tmp_path, "0::/machine/job\n") == 1
        assert self.count(tmp_path, "0::/elsewhere\n") == CORES

    @pytest.mark.parametrize("mount", ["cpu", "cpu,cpuacct"])
    @pytest.mark.parametrize("group", ["", "docker/abc/"])
    @pytest.mark.parametrize(("quota", "expected"), [("100000", 1), ("-1", CORES), ("50000", 1)])
    def test_a_quota_of_version_1_binds(
        self, tmp_path: Path, mount: str, group: str, quota: str, expected: int
    ) -> None:
        self.write(tmp_path, f"{mount}/{group}cpu.cfs_quota_us", quota)
        self.write(tmp_path, f"{mount}/{group}cpu.cfs_period_us", "100000")
        groups = "12:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n"
        assert self.count(tmp_path, groups) == expected

    def test_a_group_never_leads_out_of_the_mount(self, tmp_path: Path) -> None:
        (tmp_path / "cpu.max").write_text("100000 100000\n")
        (tmp_path / "cgroup").mkdir()
        assert self.count(tmp_path, "0::/../\nnonsense\n") == CORES

    def test_there_is_always_a_thread_on_this_machine(self) -> None:
        assert 1 <= available_threads() <= CORES


class TestOpening:
    def test_a_session_runs_on_the_cpu_without_spinning(self, graph: Path) -> None:
        session = open_session(graph, "cpu", threads=2)
        assert session_device(session) == "CPUExecutionProvider"
        assert isinstance(session, onnxruntime.InferenceSession)
        options = session.get_session_options()
        assert (options.intra_op_num_threads, options.inter_op_num_threads) == (2, 1)
        assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
        assert options.get_session_config_entry("session.inter_op.allow_spinning") == "0"
        assert options.get_session_config_entry("session.use_env_allocators") == "1"  # one memory for all of a process
        (result,) = session.run(None, {"x": np.array([1.0, 2.0], dtype=np.float32)})
        assert result.tolist() == [-1.0, -2.0]

    @pytest.mark.parametrize("content", [b"", b"not a graph", NEGATION[:40]])
    def test_a_broken_graph_is_an_error_that_names_the_file(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "broken.onnx"
        path.write_bytes(content)
        with pytest.raises(BundleError, match=r"broken\.onnx"):
            open_session(path)
        with pytest.raises(BundleError, match="nowhere"):
            open_session(tmp_path / "nowhere.onnx")

    def test_an_unknown_device_is_an_error(self, graph: Path) -> None:
        with pytest.raises(DeviceError, match="unknown device 'tpu'"):
            open_session(graph, "tpu")
        with pytest.raises(DeviceError, match="'cuda:0,1' is several"):
            open_session(graph, "cuda:0,1")

    def test_tensorrt_needs_a_gpu_and_shapes(self, graph: Path) -> None:
        with pytest.raises(DeviceError, match="runs on a GPU only"):
            open_session(graph, "cpu", provider="tensorrt", shapes=EngineShapes(48, 2048))
        with pytest.raises(ValueError, match="shapes"):
            open_session(graph, "cuda", provider="tensorrt")


@pytest.mark.skipif("CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="there may be a GPU")
class TestWithoutGpu:
    def test_cuda_that_would_end_on_the_cpu_is_an_error(self, graph: Path) -> None:
        with pytest.raises(DeviceError, match=r"'cuda' is not available.*CPUExecutionProvider"):
            open_session(graph, "cuda")

    @pytest.mark.parametrize("device", ["cuda", "cuda:1"])
    def test_tensorrt_that_is_not_there_says_what_it_needs(self, graph: Path, device: str) -> None:
        with pytest.raises(DeviceError, match=r"'tensorrt' is not available.*glyphline\[gpu\].*leave --provider out"):
            open_session(graph, device, provider="tensorrt", shapes=EngineShapes(48, 2048))

    def test_falling_back_has_to_be_allowed_and_shows(self, graph: Path, capfd: pytest.CaptureFixture[str]) -> None:
        session = open_session(graph, "cuda", allow_cpu_fallback=True)
        assert session_device(session) == "CPUExecutionProvider"
        assert capfd.readouterr().out == ""


@pytest.mark.gpu
class TestWithGpu:
    def test_a_session_runs_on_the_gpu(self, graph: Path, gpu: str) -> None:
        assert session_device(open_session(graph, gpu)) == "CUDAExecutionProvider"

    def test_a_gpu_that_is_not_there_is_an_error(self, graph: Path, gpu: str) -> None:
        with pytest.raises(DeviceError, match="'cuda:999' is not available"):
            open_session(graph, "cuda:999")

    def test_a_broken_graph_is_no_fault_of_the_device(self, tmp_path: Path, gpu: str) -> None:
        path = tmp_path / "broken.onnx"
        path.write_bytes(b"not a graph")
        with pytest.raises(BundleError, match=r"broken\.onnx"):
            open_session(path, gpu)


@pytest.mark.usefixtures("fresh_check")
class TestRuntime:
    def test_the_installed_runtime_is_fine(self) -> None:
        check_runtime()

    def test_two_distributions_overwrite_each_other(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("onnxruntime", "onnxruntime_gpu"):
            info = tmp_path / f"{name}-1.20.0.dist-info"
            info.mkdir()
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.20.0\n")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(DeviceError, match="pip uninstall onnxruntime onnxruntime-gpu"):
            check_runtime()

    def test_a_missing_runtime_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch, graph: Path) -> None:
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
        with pytest.raises(DeviceError, match=r"pip install 'glyphline\[cpu\]'"):
            open_session(graph)


def test_importing_the_module_does_not_import_the_runtime() -> None:
    assert not hasattr(session_module, "onnxruntime")
