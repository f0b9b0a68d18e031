"""Somebody who types what a document says, command after command, in a folder of their own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from belongings import shrink
from console import Call, Step, call_of
from typer.testing import CliRunner

from glyphline.cli import app

__all__ = ["Newcomer", "Serving", "serving"]

PATIENCE_SECONDS = 300  # far more than anything takes

SHARED = {("serve",), ("serve", "--open-inference")}
"""Servers that all pages share, as they need nothing of a page's own."""

QUICKER = {"study": ("--quick",)}
"""Options that make a command take seconds; its figures mean nothing then."""

# Servers take free ports, as others may run on this machine, one worker, and one of the shipped models.
VARIABLES = {
    "COLUMNS": "120",
    "GLYPHLINE_DRAIN_SECONDS": "0",
    "GLYPHLINE_HEARTBEAT_SECONDS": "60",
    "GLYPHLINE_METRICS_PORT": "0",
    "GLYPHLINE_MODELS": "digits",
    "GLYPHLINE_PORT": "0",
    "GLYPHLINE_START_SECONDS": "600",
    "GLYPHLINE_WORKERS": "1",
    "OMP_NUM_THREADS": "1",
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "PYTHONUTF8": "1",
}

_READY = re.compile(r"serving .+ at \S+:(\d+)(?: over TLS)?; metrics at http://\S+:(\d+)/\S*\n")
_ADDRESS = re.compile(r"\b(?:localhost|127\.0\.0\.1|host):(?:50051|50052)\b")
_METRICS = re.compile(r"\b(?:localhost|127\.0\.0\.1):9090\b")


@dataclass(frozen=True)
class Serving:
    """A server that runs.

    Attributes:
        port: Of gRPC.
        metrics_port: Of its metrics.
    """

    port: str
    metrics_port: str


def _environment(arguments: tuple[str, ...]) -> dict[str, str]:
    """The environment of a server. It loads all of a folder's models, and with a lexicon one that has letters."""
    environment = {**os.environ, **VARIABLES}
    if "--model-repository" in arguments:
        del environment["GLYPHLINE_MODELS"]
    elif "--lexicon" in arguments:
        environment["GLYPHLINE_MODELS"] = "words"
    return environment


@contextmanager
def serving(arguments: tuple[str, ...], folder: Path) -> Iterator[Serving]:
    """Runs `glyphline serve`, which must end in order when it is told to.

    Args:
        arguments: What comes after `glyphline`.
        folder: Where it is typed.
    """
    log = folder / "server.log"
    with log.open("wb") as messages:
        process = subprocess.Popen(
            [sys.executable, "-m", "glyphline", *arguments],
            cwd=folder,
            env=_environment(arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=messages,
            text=True,
        )
    with process:
        try:
            assert process.stdout is not None
            match = _READY.fullmatch(process.stdout.readline())
            assert match, log.read_text(encoding="utf-8")
            yield Serving(*match.groups())
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_SECONDS) == 0, log.read_text(encoding="utf-8")
        finally:
            process.kill()


@dataclass
class Newcomer:
    """The reader of one page.

    Attributes:
        folder: Where everything is typed.
        shared: Returns a server that all pages share, by what comes after `glyphline`.
        patch: Undoes what is changed of this process.
    """

    folder: Path
    shared: Callable[[tuple[str, ...]], Serving]
    patch: pytest.MonkeyPatch
    _server: Serving | None = None
    _stack: ExitStack = field(default_factory=ExitStack)
    _jobs: dict[str, list[str]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        """Goes into the folder."""
        for name in [name for name in os.environ if name.startswith("GLYPHLINE_")]:
            self.patch.delenv(name)
        for name, value in {**VARIABLES, "HOME": str(self.folder / "home")}.items():
            self.patch.setenv(name, value)
        self.patch.chdir(self.folder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stops the page's own server."""
        self._stack.__exit__(kind, error, traceback)

    def type(self, step: Step) -> None:
        """Does what a page says; it must succeed."""
        text = self._here(step.text)
        call = call_of(text, self.folder) if step.language == "console" else None
        if call is not None and call.arguments[:1] == ("serve",):
            self._serve(call.arguments)
        elif call is not None:
            self._call(call)
        elif step.language == "console":
            self._shell(text)
        else:
            self._python(text, step.page)

    def _here(self, text: str) -> str:
        """Puts the address of the page's server, or of `glyphline serve`'s, where a text names the usual address."""
        if _ADDRESS.search(text) or _METRICS.search(text):
            server = self._server or self.shared(("serve",))
            text = _ADDRESS.sub(f"localhost:{server.port}", text)
            text = _METRICS.sub(f"localhost:{server.metrics_port}", text)
        return text

    def _serve(self, arguments: tuple[str, ...]) -> None:
        self._stack.close()
        if arguments in SHARED:
            self._server = self.shared(arguments)
        else:
            self._server = self._stack.enter_context(serving(arguments, self.folder))

    def _call(self, call: Call) -> None:
        """Runs a command in this process, which is much quicker than one of its own."""
        command = call.arguments[0]
        if command == "train":
            shrink(self._own(call.arguments[1]))
        if command == "transcribe":
            self._begin_job(list(call.arguments))
        result = CliRunner().invoke(app, [*call.arguments, *QUICKER.get(command, ())])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == 0, f"{' '.join(call.arguments)}: {result.exit_code}\n{result.output}"
        if call.output is not None:
            self._own(call.output).write_text(result.stdout, encoding="utf-8")

    def _own(self, name: str) -> Path:
        """Returns the path of something that is changed here, and so must be the newcomer's own."""
        path = (self.folder / name).resolve()
        assert path != self.folder.resolve() and path.is_relative_to(self.folder.resolve()), f"{name} is not theirs"
        return path

    def _begin_job(self, arguments: list[str]) -> None:
        """Clears away what another job has written: a page shows jobs to choose from, not one after the other."""
        output = arguments[arguments.index("--output") + 1]
        settings = [argument for argument in arguments if argument != "--resume"]
        if settings == arguments or self._jobs.get(output) != settings:
            for path in (self._own(output), self._own(f"{output}.job")):
                if path.is_dir():
                    shutil.rmtree(path)
                path.unlink(missing_ok=True)
        self._jobs[output] = settings

    def _python(self, text: str, page: str) -> None:
        """Runs Python here; what brings messages of its own, which ours may not meet, in a process of its own."""
        if "tritonclient" not in text:
            exec(compile(text, page, "exec"), {"__name__": "__main__"})
            return
        command = [sys.executable, "-c", text]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        assert done.returncode == 0, f"{page}: {done.stderr}"

    def _shell(self, command: str) -> None:
        """Has bash run what is more than a command of Glyphline."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
