"""A real `glyphline serve` for the length of a benchmark."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from glyphline.service.client import Client, RecognitionError

READY_SECONDS = 300.0
STOP_SECONDS = 60.0
_UNTRIED_PORTS = random.SystemRandom().sample(range(20_000, 32_000), 12_000)


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs.

    Attributes:
        process: The front process.
        target: Its address, `host:port`.
    """

    process: subprocess.Popen[bytes]
    target: str

    def cpu_seconds(self) -> float:
        """Returns the CPU time that the front process and its workers have taken so far (Linux)."""
        return sum(_cpu_seconds(process) for process in family(self.process.pid))

    def front_cpu_seconds(self) -> float:
        """Returns the front process's part of it: gRPC, the queue, metrics."""
        return _cpu_seconds(self.process.pid)

    def worker_pids(self) -> list[int]:
        """Returns the worker processes: children that Python's spawn began (Linux)."""
        workers = []
        for process in family(self.process.pid)[1:]:
            try:
                command = Path(f"/proc/{process}/cmdline").read_bytes()
            except OSError:
                continue
            if b"spawn_main" in command:
                workers.append(process)
        return workers

    def resident_bytes(self) -> int:
        """Returns the memory that the front process and its workers hold, shared pages split between them (Linux)."""
        return sum(resident_bytes(process) for process in family(self.process.pid))

    def settled_bytes(self, workers: int) -> int:
        """Returns the memory of its own that the server holds when none of its workers is being replaced (Linux).

        That is the front process's and so many times the largest worker's, as they all come to be: a worker that has
        died or is loading makes it neither less nor more.
        """
        sizes = [_memory(process, "Anonymous") for process in self.worker_pids()]
        return _memory(self.process.pid, "Anonymous") + workers * max(sizes, default=0)


@contextmanager
def serving(
    workers: int, arguments: Sequence[str] = (), credentials: grpc.ChannelCredentials | None = None
) -> Iterator[Server]:
    """Starts `glyphline serve` on free ports, waits until it is ready, and stops it with SIGTERM at the end.

    Args:
        workers: Worker processes.
        arguments: Further ones of the command line.
        credentials: How to connect to it; None where the arguments do not ask for TLS.
    """
    port = free_port()
    command = [sys.executable, "-m", "glyphline", "serve", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--metrics-port", "0", "--workers", str(workers), *arguments]
    command += ["--drain-seconds", "0"]  # nobody else calls this server
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            server = Server(process, f"127.0.0.1:{port}")
            try:
                _wait_until_ready(server, credentials)
            except TimeoutError as error:
                log.seek(0)
                raise SystemExit(f"{error}:\n{log.read().decode(errors='replace')}") from None
            yield server
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_ready(server: Server, credentials: grpc.ChannelCredentials | None) -> None:
    """Waits until the server says that it can be used, or has ended."""
    last = time.monotonic() + READY_SECONDS
    with Client(server.target, credentials=credentials) as client:
        while server.process.poll() is None and time.monotonic() < last:
            try:
                client.wait_until_ready(timeout=1)
            except RecognitionError:
                continue
            return
    raise TimeoutError(f"the server did not become ready (exit code {server.process.poll()})")


def free_port() -> int:
    """Returns a port that nothing listens on; never one twice, and none that the kernel gives to connections."""
    while True:
        port = _UNTRIED_PORTS.pop()
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def family(root: int) -> list[int]:
    """Returns a process and all its descendants."""
    children: dict[int, list[int]] = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*"):
        try:
            children[int(_stat(int(path.name))[1])].append(int(path.name))
        except OSError:
            continue  # it ended while we looked
    found = [root]
    for process in found:
        found.extend(children[process])
    return found


def _stat(process: int) -> list[str]:
    """Returns the fields of /proc/<pid>/stat from the third on: the second is a name that may hold spaces."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def _cpu_seconds(process: int) -> float:
    try:
        fields = _stat(process)
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(process: int) -> int:
    """Returns the memory that a process holds, its share of shared pages included (Linux)."""
    return _memory(process, "Pss")


def _memory(process: int, kind: str) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{kind}:")), 0)
