import os
import subprocess
import sys

import pytest

from glyphline.cli.exit_codes import ExitCode

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
