"""Data sets in numbers."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from PIL import Image

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_stats(invoke: Command, data: Path) -> None:
    done = invoke("data", "stats", data / "strips", "--plot", data / "plots" / "stats.png", "--json", "--quiet")
    [stats] = json.loads(done.stdout)
    assert (stats["strips"], stats["unreadable"], stats["characters"]["1"]) == (26, 0, 16)
    with Image.open(data / "plots" / "stats.png") as plot:
        assert plot.width > 1000
    assert "1\t16" in invoke("data", "stats", data / "strips", "--quiet").stdout
