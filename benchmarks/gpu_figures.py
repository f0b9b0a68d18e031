"""What `gpu.py` finds: checks that pass, fail or are left out, speeds, and how much memory a device has in use."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from glyphline.models.devices import Device, gpu_number

MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that has to hold.

    Attributes:
        name: What.
        passed: Whether it does; None if it was left out.
        detail: By how much, or why it was left out.
    """

    name: str
    passed: bool | None
    detail: str


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast a network was run in one way.

    Attributes:
        model: Which.
        way: How.
        batch: Images of a run.
        width: Columns of each.
        images_per_second: By the clock.
    """

    model: str
    way: str
    batch: int
    width: int
    images_per_second: float


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is done: little on a CPU, to test the script itself, and enough on a GPU.

    Attributes:
        strips: Real strips that are read.
        widths: Widths of the sweep, in columns.
        lines: Widths of long lines, which only CTC heads read.
        batches: Random batches that memory is watched over.
        shapes: Images and width of the runs that are timed.
        seconds: How long each of them is timed.
        served_seconds: How long a server is called.
        callers: Calls at once.
    """

    strips: int
    widths: tuple[int, ...]
    lines: tuple[int, ...]
    batches: int
    shapes: tuple[tuple[int, int], ...]
    seconds: float
    served_seconds: float
    callers: int


SMALL = Scale(8, (24, 64, 129, 300), (2200,), 24, ((1, 64), (3, 96)), 0.02, 0.5, 4)
FULL = Scale(
    strips=512,
    widths=(24, 31, 32, 33, 64, 65, 100, 127, 128, 129, 200, 256, 257, 400, 513, 800, 1025, 1500, 2048),
    lines=(2049, 3000, 9000),
    batches=2000,
    shapes=((1, 128), (8, 128), (32, 128), (64, 128), (1, 512), (16, 512), (4, 2048)),
    seconds=0.2,
    served_seconds=5.0,
    callers=128,
)


def memory_in_use(device: Device) -> int | None:
    """Returns the bytes in use on a GPU by all processes, or by this process on the CPU; None if nobody can tell."""
    number = gpu_number(device)
    if number is None:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    used = _ask(number, "memory.used")
    return int(used) * MEBIBYTE if used.isdecimal() else None


def describe_device(device: Device) -> str:
    """Names a device, a GPU with its kind, memory and driver."""
    number = gpu_number(device)
    found = "" if number is None else _ask(number, "name,memory.total,driver_version")
    return f"{device} ({found})" if found else device


def _ask(number: int, what: str) -> str:
    """Asks NVIDIA's tool about a GPU; returns nothing if it does not answer."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")  # CUDA counts among these, the tool among all
    name = visible.split(",")[number] if visible else str(number)
    command = ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader,nounits", f"--id={name}"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
