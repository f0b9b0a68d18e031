"""A real server in a process of its own, as the tests of this folder need it: started, watched, asked and stopped."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
from prometheus_client.parser import text_string_to_metric_families

from glyphline.models.bundle import load_bundle
from glyphline.models.recognizer import Recognizer
from glyphline.models.repository import ModelRepository, pretrained_root
from glyphline.service.client import Client

PATIENCE_SECONDS = 60.0  # how long a test waits for what must come; far more than it takes
POLL_SECONDS = 0.02  # between two questions, lest asking be all that the server does
_UNTRIED_PORTS = random.SystemRandom().sample(range(20_000, 32_000), 12_000)
PROGRAM = """
from glyphline.service.server import run
from glyphline.service.settings import ServerSettings
raise SystemExit(run(ServerSettings()))
"""


@dataclass
class ServerProcess:
    """A server, its log, and its metrics."""

    process: subprocess.Popen[str]
    lines: list[dict[str, Any]] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    news: threading.Condition = field(default_factory=threading.Condition)
    reader: threading.Thread | None = None

    @classmethod
    def start(cls, **settings: object) -> Self:
        """Starts a server on free ports; every setting is passed as a variable of the environment."""
        chosen = {
            "port": 0,
            "metrics_port": 0,
            "workers": 1,
            "drain_seconds": 0,
            "log_format": "json",
            "heartbeat_seconds": 60,
        } | settings
        environment = {f"GLYPHLINE_{name.upper()}": str(value) for name, value in chosen.items()}
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        server = cls(process)
        server.reader = threading.Thread(target=server._read_log, daemon=True)
        server.reader.start()
        return server

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for text in self.process.stderr:
            with self.news:
                self.raw.append(text)
                if text.startswith("{"):
                    self.lines.append(json.loads(text))
                self.news.notify_all()
        with self.news:
            self.news.notify_all()

    def wait_for_line(self, message: str, count: int = 1) -> dict[str, Any]:
        """Waits for the log line with a message, or for its `count`th, and returns it."""

        def found() -> list[dict[str, Any]]:
            return [line for line in self.lines if line["message"].startswith(message)]

        with self.news:
            self.news.wait_for(lambda: len(found()) >= count or self.process.poll() is not None, PATIENCE_SECONDS)
            assert len(found()) >= count, f"no {message!r} in\n{''.join(self.raw)}"
            return found()[count - 1]

    @property
    def target(self) -> str:
        """Address for clients."""
        return f"127.0.0.1:{self.wait_for_line('listening')['port']}"

    @property
    def metrics_url(self) -> str:
        """Address for Prometheus."""
        return f"http://127.0.0.1:{self.wait_for_line('listening')['metrics_port']}/metrics"

    @property
    def worker_pids(self) -> list[int]:
        """The workers that the server began with."""
        pids: list[int] = self.wait_for_line("ready")["workers"]
        return pids

    def metrics_text(self) -> str:
        """What `/metrics` says."""
        with urllib.request.urlopen(self.metrics_url, timeout=PATIENCE_SECONDS) as answer:
            text: str = answer.read().decode()
        return text

    def metric(self, name: str, **labels: str) -> float:
        """Sum of the samples of a name that have all of some labels."""
        return sum(
            sample.value
            for family in text_string_to_metric_families(self.metrics_text())
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def wait_for_metric(self, name: str, value: float, **labels: str) -> None:
        """Asks `/metrics` until a sum has a value."""
        wait_until(lambda: self.metric(name, **labels) == value, f"{name}{labels} == {value}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Sends a signal and returns the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Waits for the end and returns the exit code."""
        return self.process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        """Ends whatever is left."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.reader is not None:
            self.reader.join(PATIENCE_SECONDS)  # whoever closes what it reads from makes it fail
        assert self.process.stderr is not None
        self.process.stderr.close()


def start_light(**settings: object) -> ServerProcess:
    """Starts a server that holds two models, unless it is told which: with all of them it takes thrice as long."""
    if "model_repository" not in settings and "GLYPHLINE_MODEL_REPOSITORY" not in os.environ:
        settings = {"models": "digits,digits-ctc"} | settings
    return ServerProcess.start(**settings)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Asks again and again until something holds."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(POLL_SECONDS)


@contextmanager
def stopped(pids: list[int]) -> Iterator[None]:
    """Holds worker processes still for a while, so that what is asked of them waits."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


@pytest.fixture(scope="session")
def model_root() -> Path:
    """The models that are served: those that come with Glyphline, or those that the environment names."""
    return Path(os.environ.get("GLYPHLINE_MODEL_REPOSITORY") or pretrained_root())


@pytest.fixture(scope="session")
def recognizers(model_root: Path) -> dict[str, Recognizer]:
    """The served models in this process, by name."""
    repository = ModelRepository([model_root])
    return {name: Recognizer.load(load_bundle(repository.resolve(name))) for name in repository.names()}


@pytest.fixture(scope="session")
def images(strips: list[tuple[Path, str]]) -> list[bytes]:
    """The files of real strips, of many widths."""
    return [path.read_bytes() for path, _ in strips]


@pytest.fixture
def start() -> Iterator[Callable[..., ServerProcess]]:
    """Starts servers for one test; whatever is left of them is ended after it."""
    servers: list[ServerProcess] = []

    def start_server(**settings: object) -> ServerProcess:
        servers.append(start_light(**settings))
        return servers[-1]

    yield start_server
    for server in servers:
        server.close()


@pytest.fixture(scope="session")
def start_process() -> Callable[..., ServerProcess]:
    """Starts servers for fixtures of wider scope, which must end them."""
    return start_light


@pytest.fixture(scope="module")
def launch() -> Iterator[Callable[..., ServerProcess]]:
    """Starts servers that the tests of a module share; each must end in order."""
    servers: list[ServerProcess] = []

    def start_server(**settings: object) -> ServerProcess:
        servers.append(start_light(**settings))
        return servers[-1]

    try:
        yield start_server
        for server in servers:
            assert server.stop() == 0, "".join(server.raw)
    finally:
        for server in servers:
            server.close()


@pytest.fixture(scope="session")
def guide_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two lexicons, of which one suits no digits, and a language model that ends texts after a digit."""
    folder = tmp_path_factory.mktemp("guides")
    (folder / "codes.txt").write_text("7777\n123\n90\n", encoding="utf-8")
    (folder / "words.txt").write_text("alpha\nbeta\n", encoding="utf-8")
    singles, pairs = "".join(f"-1.1 {n} -4\n" for n in range(10)), "".join(f"-0.0001 {n} </s>\n" for n in range(10))
    (folder / "one.arpa").write_text(
        f"\\data\\\nngram 1=12\nngram 2=10\n\\1-grams:\n-99 <s> 0\n-1.1 </s>\n{singles}\\2-grams:\n{pairs}\\end\\\n",
        encoding="utf-8",
    )
    return folder


@pytest.fixture(scope="session")
def server(guide_files: Path) -> Iterator[ServerProcess]:
    """A server with two workers that all tests share; none of them harms it. It must end in order."""
    process = ServerProcess.start(
        workers=2,
        lexicons=f"codes={guide_files / 'codes.txt'},words={guide_files / 'words.txt'}",
        language_models=f"one={guide_files / 'one.arpa'}",
    )
    try:
        process.wait_for_line("ready")
        yield process
        assert process.stop() == 0, "".join(process.raw)
        assert not [line for line in process.lines if line["level"] == "error"]
    finally:
        process.close()


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    """A client of the shared server."""
    with Client(server.target, timeout=PATIENCE_SECONDS) as connected:
        yield connected


@pytest.fixture(scope="session")
def hold() -> Callable[[list[int]], Any]:
    """Returns the context manager that holds workers still."""
    return stopped


@pytest.fixture(scope="session")
def until() -> Callable[[Callable[[], bool], str], None]:
    """Returns the function that waits until something holds."""
    return wait_until


@pytest.fixture
def server_target(server: ServerProcess) -> str:
    """Address of the shared server."""
    return server.target


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


@pytest.fixture(scope="session")
def unused_port() -> Callable[[], int]:
    """Returns the function that finds a port."""
    return free_port


@pytest.fixture(scope="module")
def start_envoy(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[dict[str, Any]], subprocess.Popen[bytes]]]:
    """Starts real Envoys with the configuration that is given, which the tests of a module share."""
    envoy = shutil.which("envoy", path=str(Path(sys.executable).parent)) or shutil.which("envoy")
    assert envoy, "Envoy is part of the development tools: pip install 'glyphline[dev]'"
    processes: list[subprocess.Popen[bytes]] = []

    def start_process(configuration: dict[str, Any]) -> subprocess.Popen[bytes]:
        folder = tmp_path_factory.mktemp("envoy")
        file = folder / "envoy.json"
        file.write_text(json.dumps(configuration), encoding="utf-8")
        command = [envoy, "-c", str(file), "--concurrency", "1", "--disable-hot-restart", "-l", "error"]
        processes.append(subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL))
        return processes[-1]

    yield start_process
    for process in processes:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        process.wait(PATIENCE_SECONDS)
