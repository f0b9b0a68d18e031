"""ONNX Runtime sessions that run where they were told to, on no more threads than there are cores for them.

Two silent faults are made loud here: a session asked for on a GPU that ends up on the CPU, and thread pools sized for
the host inside a container that owns a fraction of it.
"""

import importlib.metadata
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

from glyphline.models.devices import Device, gpu_number
from glyphline.models.errors import BundleError, DeviceError
from glyphline.models.gpu import CUDA, TENSORRT, EngineShapes, cuda_options, load_libraries, tensorrt_options

__all__ = [
    "Device",
    "Provider",
    "Session",
    "available_threads",
    "check_runtime",
    "most_workers",
    "open_session",
    "session_device",
    "session_options",
]

_MOST_WORKERS_A_CORE = 16

Provider = Literal["onnxruntime", "openvino", "tensorrt"]
"""What runs graphs on the device: ONNX Runtime's own kernels; on the CPU OpenVINO, on a GPU TensorRT."""

_CPU = "CPUExecutionProvider"
_DISTRIBUTIONS = ("onnxruntime", "onnxruntime-gpu")
_ERRORS_ONLY = 3  # of ONNX Runtime's severities
_FAULTS_OF_FILES = ("InvalidGraph", "InvalidProtobuf", "NoModel", "NoSuchFile")  # names of ONNX Runtime's errors
_SAME_AS_REQUESTED = 1  # of ONNX Runtime's ways to extend an arena
_DEFAULT = -1


class Session(Protocol):
    """An opened graph. It may be run from several threads at once."""

    def get_inputs(self) -> Sequence[Any]:
        """Lists the inputs, each with `name` and `shape`."""

    def get_outputs(self) -> Sequence[Any]:
        """Lists the outputs, each with `name` and `shape`."""

    def get_providers(self) -> Sequence[str]:
        """Names what really runs the graph, first of all what runs most of it."""

    def run(self, outputs: Sequence[str] | None, inputs: Mapping[str, NDArray[Any]], /) -> list[NDArray[Any]]:
        """Runs the graph and returns the outputs wanted, in order; all of them for None."""


def available_threads(
    *, cgroup_root: Path = Path("/sys/fs/cgroup"), cgroup_file: Path = Path("/proc/self/cgroup")
) -> int:
    """Counts the cores this process may keep busy: by its CPU affinity and by the quota of its control groups.

    Args:
        cgroup_root: Where the control groups are mounted, of version 1 or 2.
        cgroup_file: Lists the control groups of this process.

    Returns:
        At least 1. A quota of two and a half cores gives 2: more threads would only be stopped in turn.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # not every system has affinities
        cores = os.cpu_count() or 1
    quotas = _quotas(cgroup_root, _groups(cgroup_file))
    return max(1, int(min([cores, *quotas])))


def most_workers() -> int:
    """Returns how many processes that read may be asked for: far more than are of use, fewer than fill the memory."""
    return _MOST_WORKERS_A_CORE * available_threads()


def _groups(cgroup_file: Path) -> dict[str, PurePosixPath]:
    """Reads the control groups of this process by controller; version 2 has one, under the empty name."""
    groups = {}
    try:
        lines = cgroup_file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, separator, path = rest.partition(":")
        if separator:
            for controller in controllers.split(","):
                groups[controller] = PurePosixPath(path)
    return groups


def _quotas(root: Path, groups: dict[str, PurePosixPath]) -> Iterator[float]:
    """Yields every CPU quota that binds this process, in cores. A quota of any ancestor group binds, too."""
    for folder in _with_ancestors(root, groups.get("")):
        try:
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
            if quota != "max":
                yield int(quota) / int(period)
        except (OSError, ValueError, ZeroDivisionError):
            pass
    for mount in ("cpu", "cpu,cpuacct"):
        for folder in _with_ancestors(root / mount, groups.get("cpu")):
            try:
                quota = (folder / "cpu.cfs_quota_us").read_text(encoding="ascii")
                period = (folder / "cpu.cfs_period_us").read_text(encoding="ascii")
                if int(quota) > 0:  # -1 is no quota
                    yield int(quota) / int(period)
            except (OSError, ValueError, ZeroDivisionError):
                pass


def _with_ancestors(mount: Path, group: PurePosixPath | None) -> Iterator[Path]:
    """Yields a group's folder and those above it. Inside a container the mount itself is the container's own group."""
    yield mount
    parts = [part for part in (group.parts if group else ()) if part not in ("/", "..")]
    for depth in range(1, len(parts) + 1):
        yield mount.joinpath(*parts[:depth])


@lru_cache(maxsize=1)
def check_runtime() -> None:
    """Makes sure that there is one ONNX Runtime, and only one.

    Raises:
        DeviceError: If it is missing, or if two distributions of it overwrite each other.
    """
    found = [name for name in _DISTRIBUTIONS if _is_installed(name)]
    if len(found) > 1:
        raise DeviceError(
            f"{' and '.join(found)} are both installed, but they overwrite each other's files; remove both with "
            f"'pip uninstall {' '.join(found)}' and install glyphline[cpu] or glyphline[gpu]"
        )
    try:
        import onnxruntime  # noqa: F401, PLC0415  (optional)
    except ImportError as error:
        raise DeviceError(
            f"ONNX Runtime cannot be imported ({error}); pip install 'glyphline[cpu]', or 'glyphline[gpu]' for CUDA"
        ) from error


def _is_installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def open_session(
    path: Path,
    device: Device = "cpu",
    threads: int = 1,
    *,
    allow_cpu_fallback: bool = False,
    provider: Provider = "onnxruntime",
    memory: int | None = None,
    shapes: EngineShapes | None = None,
) -> Session:
    """Opens a graph for inference.

    Args:
        path: The ONNX file.
        device: Where it has to run: `cpu`, `cuda`, or `cuda:1` and so on.
        threads: Threads a single run may use.
        allow_cpu_fallback: Whether a graph meant for a GPU may run on the CPU if there is no GPU to be had.
        provider: What runs it there.
        memory: Most bytes that the graph may keep on a GPU; None for as many as it takes.
        shapes: What it will be given; only TensorRT has to know beforehand.

    Returns:
        The session. It may be run from several threads at once.

    Raises:
        DeviceError: If what should run it is missing, or the session would not run on the device.
        BundleError: If the file holds no graph that can be opened.
    """
    number = gpu_number(device)
    if provider == "openvino":
        if number is not None:
            raise DeviceError(f"provider 'openvino' runs on device 'cpu' only, not on {device!r}")
        # What it takes to load is spent only where it is used.
        from glyphline.models.openvino_session import OpenVinoSession  # noqa: PLC0415

        return OpenVinoSession(path, threads)
    if provider == "tensorrt":
        if number is None:
            raise DeviceError("provider 'tensorrt' runs on a GPU only; choose device 'cuda'")
        if shapes is None:
            raise ValueError("TensorRT has to know the shapes beforehand")
    elif provider != "onnxruntime":
        raise DeviceError(f"unknown provider {provider!r}; there is onnxruntime, openvino, tensorrt")
    first = _CPU if number is None else TENSORRT if provider == "tensorrt" else CUDA
    return _open_onnxruntime(path, device, threads, first, allow_cpu_fallback, memory, shapes)


def session_device(session: Session) -> str:
    """Returns what a session really runs on, such as `CPUExecutionProvider` or `OpenVINO (bf16)`."""
    return str(session.get_providers()[0])


def _open_onnxruntime(
    path: Path,
    device: Device,
    threads: int,
    first: str,
    allow_cpu_fallback: bool,
    memory: int | None,
    shapes: EngineShapes | None,
) -> Session:
    """Opens a graph with ONNX Runtime, and `first` of its providers."""
    check_runtime()
    import onnxruntime  # noqa: PLC0415  (optional)

    number = gpu_number(device)
    fallback = allow_cpu_fallback and number is not None
    available = onnxruntime.get_available_providers()
    if first not in available:
        if not fallback or CUDA in available:
            raise DeviceError(_explain_missing(device, first, f"this ONNX Runtime offers {', '.join(available)}"))
        first, number = _CPU, None
    providers: list[str | tuple[str, dict[str, str]]] = [_CPU]  # on a GPU, too, for the few operators that it lacks
    if number is not None:
        load_libraries(first)
        providers.insert(0, (CUDA, cuda_options(number, memory)))
        if shapes is not None and first == TENSORRT:
            providers.insert(0, (TENSORRT, _engine(number, path, shapes, memory)))
    # With `enable_fallback`, a GPU that cannot be initialised is replaced by the CPU with no more than a printed line.
    # ONNX Runtime's own `session.disable_cpu_ep_fallback` is of no use: it refuses every graph with dynamic shapes,
    # because ONNX Runtime always computes shapes on the CPU.
    options = session_options(threads)
    if number is None:
        _share_memory()
        options.add_session_config_entry("session.use_env_allocators", "1")
    try:
        session: Session = onnxruntime.InferenceSession(
            path, options, providers=providers, enable_fallback=int(fallback)
        )
    except Exception as error:
        if number is not None and type(error).__name__ not in _FAULTS_OF_FILES:
            raise DeviceError(_explain_missing(device, first, str(error))) from error
        raise BundleError(f"{path}: ONNX Runtime cannot open this graph: {error}") from error
    used = session.get_providers()[0]
    if used != first and not fallback:
        reason = f"the session came up on {used}; ONNX Runtime says above what it lacks (does nvidia-smi work?)"
        raise DeviceError(_explain_missing(device, first, reason))
    return session


def session_options(threads: int) -> Any:  # noqa: ANN401  (ONNX Runtime has no types)
    """Returns the options of every session of ONNX Runtime, on whatever device; a run may use so many threads."""
    import onnxruntime  # noqa: PLC0415  (optional)

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    # For every shape that it meets, ONNX Runtime would keep a plan of where in memory everything goes, for ever. Strips
    # have thousands of shapes; without plans memory stays as it is, and nothing takes longer.
    options.enable_mem_pattern = False
    # A thread that spins while it waits takes the core from whatever else could use it.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    return options


@lru_cache(maxsize=1)
def _share_memory() -> None:
    """Gives all graphs that this process runs on the CPU one arena to compute in. Once a process is enough.

    An arena keeps what the largest run ever took. Where each graph has one of its own, a process that reads with four
    models takes four times as much, and takes it anew for every model that is exchanged.
    """
    import onnxruntime  # noqa: PLC0415  (optional)

    where = onnxruntime.OrtMemoryInfo(
        "Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT
    )
    # ONNX Runtime's usual way doubles what it takes each time.
    arena = onnxruntime.OrtArenaCfg(0, _SAME_AS_REQUESTED, _DEFAULT, _DEFAULT)
    onnxruntime.create_and_register_allocator(where, arena)


def _engine(number: int, path: Path, shapes: EngineShapes, memory: int | None) -> dict[str, str]:
    try:
        return tensorrt_options(number, path, shapes, memory)
    except OSError as error:
        raise DeviceError(f"TensorRT's engines cannot be kept: {error}; $XDG_CACHE_HOME says where") from error


def _explain_missing(device: Device, provider: str, reason: str) -> str:
    if provider == TENSORRT:
        return (
            f"provider 'tensorrt' is not available: {reason}. It needs 'glyphline[gpu]' and the TensorRT that ONNX "
            "Runtime was built with, as in 'pip install \"tensorrt-cu13<11\"'; or leave --provider out"
        )
    return (
        f"device {device!r} is not available: {reason}. It needs an NVIDIA GPU that nvidia-smi lists, and"
        " ONNX Runtime for it: pip uninstall onnxruntime, then pip install 'glyphline[gpu]'; or choose device 'cpu', or"
        " allow falling back to the CPU"
    )
