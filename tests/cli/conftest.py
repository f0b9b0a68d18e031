import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from glyphline.cli import app

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """The environment of commands: nothing of the caller's settings, one thread, UTF-8."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GLYPHLINE_")}
    return kept | {"PYTHONUTF8": "1", "COLUMNS": "120"}


@pytest.fixture(scope="session")
def glyphline(environment: dict[str, str]) -> Command:
    """Returns a function that runs the command in a process of its own and waits for it."""

    def run(
        *arguments: str | Path, stdin: bytes | None = None, cwd: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "glyphline", *map(str, arguments)],
            input=stdin if stdin is not None else b"",
            capture_output=True,
            cwd=cwd,
            env=environment | variables,
            check=False,
        )
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Command:
    """Returns a function like `glyphline` that runs the command in this process, which is quicker."""
    for name in [name for name in os.environ if name.startswith("GLYPHLINE_")]:
        monkeypatch.delenv(name)

    def run(*arguments: str | Path, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        with monkeypatch.context() as patch:
            patch.chdir(cwd or Path.cwd())
            result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    """A file that is called a picture and is none."""
    path = tmp_path / "text.png"
    path.write_text("not a picture")
    return path
