"""`glyphline transcribe --engine ray` where it cannot be had as asked; that it reads is tested with a cluster."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from glyphline.cli.exit_codes import ExitCode

Command = Callable[..., subprocess.CompletedProcess[str]]
RAY = ("--engine", "ray")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*RAY, "--server", "localhost:1"), "choose one"),
        (("--ray-address", "head:6379"), "--ray-address needs --engine ray"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    invoke: Command, strips_folder: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = invoke("transcribe", str(strips_folder), "-o", str(tmp_path / "out.jsonl"), *arguments)
    assert done.returncode == ExitCode.USAGE
    assert message in done.stderr
    assert not list(tmp_path.iterdir())


def test_without_ray_the_extra_is_named(strips_folder: Path, tmp_path: Path) -> None:
    command = ["glyphline", "transcribe", str(strips_folder), "-o", str(tmp_path / "out.jsonl"), *RAY]
    program = f"import sys; sys.modules['ray'] = None; sys.argv = {command!r}; from glyphline.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.USAGE
    assert "pip install 'glyphline[ray]'" in done.stderr
    assert not list(tmp_path.iterdir())
