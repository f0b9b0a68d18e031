"""The example clients read a real server's strips, say what they cannot read, and end with the right exit code."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLIENTS = ROOT / "examples" / "clients"
STRIPS = ROOT / "examples" / "strips"
LABELS = dict(line.split("\t") for line in (STRIPS / "labels.tsv").read_text(encoding="utf-8").splitlines())
IMAGES = [str(STRIPS / name) for name in LABELS]
MODULES = CLIENTS / "node" / "node_modules"
PROGRAMS = {
    "read.py": [sys.executable, "read.py"],
    "read_asyncio.py": [sys.executable, "read_asyncio.py"],
    "read_stream.py": [sys.executable, "read_stream.py"],
    "read_triton.py": [sys.executable, "read_triton.py"],
    "node": ["node", "node/read.js"],
    "shell": ["bash", "read.sh"],
}


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    """The address of a server that speaks both protocols."""
    options = ["--open-inference", "--models", "digits", "--workers", "1", "--log-level", "warning"]
    ports = ["--port", "0", "--metrics-port", "-1", "--drain-seconds", "0"]
    command = [sys.executable, "-m", "glyphline", "serve", *options, *ports]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.search(r" at (\S+:\d+);", server.stdout.readline())  # which it writes once it is ready
            assert found, "the server did not start"
            yield found[1]
        finally:
            server.send_signal(signal.SIGTERM)
    assert server.returncode == 0


def command_of(name: str) -> list[str]:
    """Returns the command of a client; what it needs and is not there skips the test."""
    program = PROGRAMS[name]
    hint = "npm ci --prefix examples/clients/node"
    if shutil.which(program[0]) is None:
        pytest.skip(f"{program[0]} is not installed (on Debian: apt-get install {program[0]})")
    if name == "read_triton.py" and find_spec("tritonclient") is None:
        pytest.skip("tritonclient is not installed (pip install 'glyphline[dev]')")
    if name == "node" and not (MODULES / "@grpc" / "grpc-js").is_dir():
        pytest.skip(f"@grpc/grpc-js is not installed ({hint})")
    if name == "shell" and shutil.which("buf") is None and not (MODULES / ".bin" / "buf").exists():
        pytest.skip(f"buf is not installed ({hint})")
    return program


def run(command: list[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*command, *arguments],
        cwd=CLIENTS,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def readings(name: str, output: str) -> list[str]:
    """Returns what a client printed that it read, in the order of its names."""
    if name == "shell":
        return re.findall(r'"alternatives":\s*\[\s*\{\s*"text":\s*"([^"]*)"', output)
    rows = [line.split("\t") for line in output.splitlines()]
    assert all(0 < float(confidence) <= 1 for _, _, confidence in rows)
    return [text for path, text, _ in sorted(rows, key=lambda row: IMAGES.index(row[0]))]


@pytest.mark.parametrize("name", PROGRAMS)
def test_clients_read_what_the_strips_say(target: str, name: str) -> None:
    done = run(command_of(name), target, *IMAGES)
    assert (done.returncode, done.stderr) == (0, "")
    assert readings(name, done.stdout) == list(LABELS.values())


@pytest.mark.parametrize("name", PROGRAMS)
def test_clients_say_what_they_cannot_read_and_read_the_rest(target: str, name: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no picture")
    done = run(command_of(name), target, str(bad), IMAGES[0])
    assert done.returncode == 1
    assert f"{bad}: " in done.stderr
    assert "Traceback" not in done.stderr
    assert readings(name, done.stdout) == [LABELS[Path(IMAGES[0]).name]]


def test_the_shell_client_names_the_address_that_does_not_answer() -> None:
    done = run(command_of("shell"), "127.0.0.1:1", IMAGES[0])
    assert done.returncode == 1
    assert done.stderr.startswith("127.0.0.1:1 does not answer")  # what the tool says comes behind, once
    assert done.stderr.count("\n") == 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_clients_are_short(name: str) -> None:
    lines = (CLIENTS / PROGRAMS[name][-1]).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 60


def test_the_page_on_the_protocol_reads_two_strips(target: str) -> None:
    """Its Python is a program as it stands, but for the address."""
    command_of("read_triton.py")
    page = (ROOT / "docs" / "open-inference.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    command = [sys.executable, "-c", program.replace("localhost:50051", target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("[b'43434' b'758']")
    assert done.stdout.endswith("[0 0]\n")
