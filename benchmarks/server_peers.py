"""The servers that `servers.py` compares, each set up as its own guide says for this job.

All get the same bundle, number of workers, largest batch and, where they wait for a batch to fill, the same wait; each
worker has one thread, and none logs every call. What a server offers against overload is turned on: Glyphline's bounds
are its defaults; Ray Serve gets the same bound of its queue and, for an overload, the deadline as its time limit;
LitServe the latter; MLServer offers neither.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peer_processes import ONE_THREAD
from server import STOP_SECONDS, Server
from server_health import Check, GrpcCheck, HttpCheck

HERE = Path(__file__).parent
READY_SECONDS = 300.0
MAX_BATCH = 32
MAX_QUEUE = 1024
PROBE = """
import importlib.metadata, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


class ServerError(Exception):
    """A server does not start; the message holds the end of what it printed."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What all servers are started with.

    Attributes:
        root: Folder of models.
        bundle: Folder of the model, below it.
        model: Its name.
        workers: Processes that read.
        batch_wait: Seconds that a server may wait for a batch to fill, if it does.
        peer_python: Interpreter that has the peers.
    """

    root: Path
    bundle: Path
    model: str
    workers: int
    batch_wait: float
    peer_python: str


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the servers.

    Attributes:
        label: What it is called in tables.
        package: What is to be installed, by its distribution's name.
        protocol: How it is called, a key of `server_calls.CALLERS`.
        needs: Distributions that its client needs too.
    """

    label: str
    package: str
    protocol: str
    needs: tuple[str, ...] = ()


KINDS: Mapping[str, Kind] = {
    "glyphline": Kind("Glyphline", "glyphline", "glyphline"),
    "mlserver": Kind("MLServer", "mlserver", "inference"),
    "litserve": Kind("LitServe", "litserve", "http", ("aiohttp",)),
    "ray-serve": Kind("Ray Serve", "ray", "glyphline"),
}


def installed(python: str) -> dict[str, str]:
    """Returns the versions of what an interpreter has of all that is needed.

    Raises:
        ServerError: If it does not start.
    """
    names = {name for kind in KINDS.values() for name in (kind.package, *kind.needs)}
    try:
        done = subprocess.run([python, "-c", PROBE, *sorted(names)], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ServerError(f"{python} does not start: {error}") from error
    versions: dict[str, str] = json.loads(done.stdout)
    return versions


@contextmanager
def running(name: str, setup: Setup, time_limit: float) -> Iterator[tuple[Server, Check]]:
    """Starts a server on free ports, waits until it says that it is healthy, and stops it at the end.

    Args:
        name: Which.
        setup: What all are started with.
        time_limit: Seconds that a call may take, where a server has such a limit of its own.

    Yields:
        The server, and what asks for its health.

    Raises:
        ServerError: If it ends or is not healthy in time.
    """
    port, second, third = _free_ports(3)
    target = f"127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as log:
        command, check = _command(name, setup, time_limit, Path(folder), port, second, third)
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **ONE_THREAD} | ({} if name == "glyphline" else {"PYTHONPATH": str(HERE)}),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            try:
                _wait_until_healthy(process, check)
            except TimeoutError as error:
                log.seek(0)
                said = log.read().decode(errors="replace").strip()[-3000:]
                raise ServerError(f"{KINDS[name].label}: {error}:\n{said}") from None
            yield Server(process, target), check
        finally:
            check.close()
            _stop(process)


def _command(
    name: str, setup: Setup, time_limit: float, folder: Path, port: int, second: int, third: int
) -> tuple[list[str], Check]:
    """Returns what starts a server, and how it is asked for its health."""
    target = f"127.0.0.1:{port}"
    settings: dict[str, Any] = {"bundle": str(setup.bundle), "port": port, "workers": setup.workers}
    settings |= {"max_batch": MAX_BATCH, "batch_wait": setup.batch_wait, "timeout": time_limit}
    match name:
        case "glyphline":
            command = [sys.executable, "-m", "glyphline", "serve", "--host", "127.0.0.1", "--port", str(port)]
            command += ["--metrics-port", "0", "--workers", str(setup.workers), "--drain-seconds", "0"]
            command += ["--model-repository", str(setup.root), "--models", setup.model]
            command += ["--max-batch", str(MAX_BATCH), "--max-queue", str(MAX_QUEUE)]
            return command, GrpcCheck(target, "/grpc.health.v1.Health/Check", b"\x08\x01")
        case "mlserver":
            _write_mlserver(folder, setup, port, second, third)
            command = [setup.peer_python, "-c", "from mlserver.cli import main; main()", "start", str(folder)]
            return command, GrpcCheck(target, "/inference.GRPCInferenceService/ServerReady", b"\x08\x01")
        case "litserve":
            command = [setup.peer_python, "-m", "peer_servers.litserve_app", json.dumps(settings)]
            return command, HttpCheck(target, "/health")
        case "ray-serve":
            settings |= {"http_port": second, "max_queue": MAX_QUEUE}
            command = [setup.peer_python, "-m", "peer_servers.ray_serve_app", json.dumps(settings)]
            return command, GrpcCheck(target, "/ray.serve.RayServeAPIService/Healthz", b"success")
        case _:
            raise ValueError(f"no such server: {name}")


def _write_mlserver(folder: Path, setup: Setup, port: int, http_port: int, metrics_port: int) -> None:
    """Writes the two files of settings that MLServer starts from."""
    quiet = {"level": "WARNING"}
    settings = {
        "debug": False,
        "host": "127.0.0.1",
        "grpc_port": port,
        "http_port": http_port,
        "metrics_port": metrics_port,
        "parallel_workers": setup.workers,
        "logging_settings": {"version": 1, "disable_existing_loggers": False, "loggers": {"mlserver": quiet}},
    }
    model = {
        "name": setup.model,
        "implementation": "peer_servers.mlserver_runtime.GlyphlineRuntime",
        "max_batch_size": MAX_BATCH,
        "max_batch_time": setup.batch_wait,
        "parameters": {"uri": str(setup.bundle)},
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "model-settings.json").write_text(json.dumps(model))


def _wait_until_healthy(process: subprocess.Popen[bytes], check: Check) -> None:
    last = time.monotonic() + READY_SECONDS
    while process.poll() is None and time.monotonic() < last:
        if not check.ask(1.0):
            return
        time.sleep(0.1)
    raise TimeoutError(f"it did not become healthy (exit code {process.poll()})")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Asks a server to end, and then ends whatever is left of it."""
    process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _free_ports(count: int) -> list[int]:
    """Returns ports that nothing listens on."""
    listeners = [socket.socket() for _ in range(count)]
    try:
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [int(listener.getsockname()[1]) for listener in listeners]
    finally:
        for listener in listeners:
            listener.close()
