import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from glyphline.cli import stopping
from glyphline.cli.exit_codes import CommandError, ExitCode
from glyphline.cli.stopping import Terminated, stoppable

CONFIG = """
name = "long"
alphabet = "0123456789.,:/-+ "

[image]
height = 16

[network]
heads = ["ctc"]
channels = [8, 8, 16, 16]
encoder_cell = "gru"
encoder_size = 16
encoder_layers = 1

[loop]
epochs = 100000
strips_per_epoch = 96
batch_columns = 1024
workers = 1
validate_every = 1
precision = "fp32"

[[sources]]
kind = "real"
path = "strips"

[validation.strips]
kind = "folder"
path = "strips"
"""


@pytest.mark.parametrize(
    ("number", "name", "code"),
    [(signal.SIGTERM, "SIGTERM", ExitCode.TERMINATED), (signal.SIGINT, "Ctrl-C", ExitCode.INTERRUPTED)],
)
@pytest.mark.parametrize("fate", ["raised", "swallowed", "another error"])
def test_a_signal_is_told_whatever_becomes_of_it(number: signal.Signals, name: str, code: ExitCode, fate: str) -> None:
    before = signal.getsignal(number)
    with pytest.raises(CommandError) as error, stoppable(lambda: "go on"):
        try:
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)  # as `timeout` does; it must not end what the first one began
        except (KeyboardInterrupt, Terminated):
            if fate == "raised":
                raise
            if fate == "another error":
                raise RuntimeError("a worker process was killed") from None
    assert str(error.value) == f"stopped by {name}; go on"
    assert error.value.code is code
    assert signal.getsignal(number) == before


def test_what_python_drops_is_raised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "_PATIENCE", 1.1)
    begun = time.monotonic()
    with pytest.raises(CommandError, match="SIGTERM"), stoppable(lambda: "go on"):
        with suppress(Terminated):
            os.kill(os.getpid(), signal.SIGTERM)
        while time.monotonic() - begun < 30:
            time.sleep(0.02)
    assert time.monotonic() - begun < 25


def test_without_a_signal_errors_stay_what_they_are() -> None:
    with pytest.raises(RuntimeError, match="else"), stoppable(lambda: "go on"):
        raise RuntimeError("something else")


def test_where_a_signal_is_ignored_it_stays_ignored() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with stoppable(lambda: "go on"):
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are otherwise there")
@pytest.mark.parametrize("module", ["typer", "glyphline.cli.serve", "asyncio", "glyphline.service.server"])
def test_ctrl_c_while_the_program_loads_shows_no_traceback(environment: dict[str, str], module: str) -> None:
    program = (
        "import os, signal, sys\n"
        "from glyphline.cli import main\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "sys.argv = ['glyphline', 'serve', '--port', '0', '--metrics-port', '0']\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False, timeout=120
    )
    assert done.returncode == ExitCode.INTERRUPTED, done.stderr
    assert done.stderr in ("glyphline: stopped\n", "glyphline serve: stopped\n")


class Training:
    """A training in a process of its own, whose messages are gathered."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        self.lines: list[str] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr:
            self.lines.extend(self.process.stderr)

    def stop(self, number: signal.Signals, when: Callable[[list[str]], bool]) -> tuple[int, list[str]]:
        """Sends a signal as soon as something is the case; returns the exit code and all messages."""
        try:
            end = time.monotonic() + 120
            while not when(self.lines):
                assert self.process.poll() is None, self.lines
                assert time.monotonic() < end, self.lines
                time.sleep(0.02)
            self.process.send_signal(number)
            code = self.process.wait(60)
        finally:
            self.process.kill()
            self.process.wait()
        self.reader.join(10)
        return code, self.lines


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra `train`")
def test_a_stopped_training_says_how_to_go_on(strips_folder: Path, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(CONFIG)
    run = tmp_path / "run"
    last = run / "checkpoints" / "last.ckpt"
    command = [sys.executable, "-u", "-m", "glyphline", "train", str(tmp_path / "long.toml"), "--output", str(run)]
    command += ["--data-root", str(strips_folder.parent)]

    code, lines = Training(command, environment).stop(signal.SIGINT, bool)  # at the start
    assert code == 130, lines
    assert lines[0].startswith("long: trained on real strips (26 strips); validated on strips (26 strips)")
    assert lines[-1].startswith(f"glyphline train: stopped by Ctrl-C; no checkpoint yet in {run}")

    code, lines = Training(command, environment).stop(signal.SIGTERM, lambda _: last.exists())
    assert code == 143, lines
    assert any("strips an epoch × 100,000 epochs" in line and "on cpu in fp32" in line for line in lines)
    assert any("strips_seen" in line for line in lines)
    assert lines[-1] == f"glyphline train: stopped by SIGTERM; run the same command again to go on from {last}\n"
