import os
import subprocess
import sys

import pytest

from glyphline.cli.exit_codes import ExitCode
from glyphline.cli.group import _message
from glyphline.models.errors import DeviceError

PROGRAM = """
import os
import typer
from glyphline.cli.group import CommandGroup

app = typer.Typer(cls=CommandGroup)

@app.callback()
def options() -> None: ...

@app.command()
def send() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    os.write(theirs, b"orders")

app(["send"], prog_name="glyphline")
"""


def test_only_a_broken_pipe_on_the_standard_output_is_its_readers_leave() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (ExitCode.SYSTEM, "glyphline send: Broken pipe\n")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes cannot be polled there")
def test_a_standard_output_that_nobody_reads_ends_the_command_quietly() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "wb") as output:
        done = subprocess.run([sys.executable, "-c", PROGRAM], stdout=output, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (ExitCode.PIPE_CLOSED, b"")


def test_the_option_that_helps_is_named_where_there_is_one() -> None:
    error = DeviceError("device 'cuda' is not available; or choose device 'cpu', or allow falling back to the CPU")
    assert _message(error, {"--device"}) == "device 'cuda' is not available; or choose device 'cpu'"
    assert _message(error, {"--allow-cpu-fallback"}).endswith("'cpu', or pass --allow-cpu-fallback")
