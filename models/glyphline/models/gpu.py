"""How ONNX Runtime is set up for NVIDIA's GPUs: its CUDA provider, and TensorRT before it where that is asked for.

What is said here is chosen, not left to defaults that differ from version to version:

- cuDNN picks the algorithm of a convolution by heuristics. ONNX Runtime's own default tries every algorithm for every
  new shape, which takes up to a second each. Shapes are few and all are run before a server is ready, so that memory
  does not grow afterwards.
- Memory is taken as it is asked for, not in powers of two, and at most as much as is allowed. It is kept: giving it
  back after every run would make every run take it again, and with few shapes there is nothing to win by it.
- Products are not rounded to TF32, whose 11 bits of precision would move confidences by thousandths against the CPU's,
  which the thresholds that people set are measured with.
"""

import hashlib
import importlib
import os
import sys
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

__all__ = [
    "CUDA",
    "LARGEST_ENGINE_BATCH",
    "TENSORRT",
    "EngineShapes",
    "cuda_options",
    "load_libraries",
    "tensorrt_cache",
    "tensorrt_options",
]

CUDA = "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"

LARGEST_ENGINE_BATCH = 32
"""Most images of one run with TensorRT. An engine sets aside memory for the largest shape that it is made for."""

_USUAL_BATCH = 8
_USUAL_WIDTH = 256
_NARROWEST = 32


@dataclass(frozen=True, slots=True)
class EngineShapes:
    """The shapes that a TensorRT engine is made for.

    Attributes:
        height: Of a strip.
        widest: Greatest width of a strip.
    """

    height: int
    widest: int

    def profile(self) -> dict[str, str]:
        """Returns the least, the usual and the greatest shape of the inputs, as TensorRT's provider takes them."""
        shapes = {
            "min": (1, min(_NARROWEST, self.widest)),
            "opt": (_USUAL_BATCH, min(_USUAL_WIDTH, self.widest)),
            "max": (LARGEST_ENGINE_BATCH, self.widest),
        }
        return {
            f"trt_profile_{kind}_shapes": f"images:{batch}x1x{self.height}x{width},widths:{batch}"
            for kind, (batch, width) in shapes.items()
        }


def cuda_options(number: int, memory: int | None = None) -> dict[str, str]:
    """Returns the options of the CUDA provider.

    Args:
        number: Which GPU.
        memory: Most bytes that a graph may keep on it; None for as many as it takes.
    """
    options = {
        "device_id": str(number),
        "arena_extend_strategy": "kSameAsRequested",
        "cudnn_conv_algo_search": "HEURISTIC",
        "cudnn_conv_use_max_workspace": "1",
        "use_tf32": "0",
    }
    return options if memory is None else options | {"gpu_mem_limit": str(memory)}


def tensorrt_options(number: int, path: Path, shapes: EngineShapes, memory: int | None = None) -> dict[str, str]:
    """Returns the options of the TensorRT provider, and makes the folder that its engines are kept in.

    Args:
        number: Which GPU.
        path: The graph.
        shapes: What the engine is made for.
        memory: Most bytes that making an engine may take; None for as many as it takes.

    Raises:
        OSError: If the graph cannot be read, or the folder cannot be made.
    """
    # An engine is found again by names within the graph, which two versions of a model share: each has its own folder.
    folder = tensorrt_cache() / hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    options = {
        "device_id": str(number),
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": str(folder),
        "trt_timing_cache_enable": "1",
        "trt_timing_cache_path": str(folder),
        "trt_fp16_enable": "0",
        **shapes.profile(),
    }
    return options if memory is None else options | {"trt_max_workspace_size": str(memory)}


def tensorrt_cache() -> Path:
    """Returns the folder of the engines: `glyphline/tensorrt` below `$XDG_CACHE_HOME`, or below `~/.cache`."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root, "glyphline", "tensorrt")


@lru_cache(maxsize=2)
def load_libraries(provider: str) -> None:
    """Loads the libraries of a provider from where pip put them, which is not where the loader looks by itself.

    What cannot be loaded so may still be found in the system; if not, opening a session says what is missing.

    Args:
        provider: `CUDA` or `TENSORRT`.
    """
    runtime: Any = importlib.import_module("onnxruntime")
    with redirect_stdout(sys.stderr):  # where readings go is no place for complaints about libraries
        if hasattr(runtime, "preload_dlls"):  # since version 1.21
            runtime.preload_dlls()
        if provider == TENSORRT:
            with suppress(ImportError):
                importlib.import_module("tensorrt")  # which loads its libraries
