"""What a figure was measured on, and how it is printed: figures without their machine mean nothing."""

from __future__ import annotations

import os
import platform
from importlib.metadata import distributions, version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from glyphline.models.session import available_threads


def describe_machine() -> dict[str, str]:
    """Names the processor, the cores this process may use, the load and the versions that matter."""
    return {
        "processor": _processor(),
        "cores": str(available_threads()),
        "load": f"{os.getloadavg()[0]:.2f}",
        "python": platform.python_version(),
        **{package: version(package) for package in (_runtime(), "numpy", "pillow", "grpcio")},
    }


def print_report(table: Table, machine: dict[str, str]) -> None:
    """Prints a table and the machine below it, as wide as they are where no terminal sets the width."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    console.print(table)
    console.print(", ".join(f"{name} {value}" for name, value in machine.items()), soft_wrap=True)


def _runtime() -> str:
    """Returns which distribution of ONNX Runtime is installed."""
    return "onnxruntime" if any(distributions(name="onnxruntime")) else "onnxruntime-gpu"


def _processor() -> str:
    """Reads the processor's name, from Linux's own list where there is one."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def share_left(client_cores: float, processes: int) -> float:
    """Returns the share of the cores of so many processes that a client leaves them, which first takes what is free."""
    free = max(0, available_threads() - processes)
    return 1.0 - max(0.0, client_cores - free) / processes
