"""One server measured after the other, on the same terms: what `servers.py` has the client do in each round."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
from argparse import Namespace
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Any, Self

from peer_processes import ONE_THREAD
from rich.console import Console
from server import Server
from server_client import LONGEST_SECONDS
from server_figures import Overload, ServerFigures, Window, cancel_figures, load_figures, overload_figures
from server_health import Check, HealthWatch
from server_peers import HERE, KINDS, ServerError, Setup, running

# The light load that follows an overload, as a share of the server's capacity, and how long it lasts.
LIGHT_SHARE = 0.1
LIGHT_SECONDS = 4.0
# With cancellations: the load as a share of the capacity, and images due at once.
CANCEL_LOAD_SHARE = 0.5
BURST = 8
AFTER_CALLERS = 8
console = Console(stderr=True)


class Client:
    """The client in its own process, told whom to call."""

    def __init__(self, python: str, setup: dict[str, Any]) -> None:
        """Starts the process and waits until the server has read an image.

        Raises:
            ServerError: If the server reads it wrongly or not at all.
        """
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (it is closed with the process)
        self._process = subprocess.Popen(
            [python, str(HERE / "server_client.py")],
            env={**os.environ, **ONE_THREAD},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        try:
            fault = self._ask(setup)["fault"]
            if fault:
                raise ServerError(fault)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """Returns the client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the process."""
        self.close()

    def window(self, server: Server, **order: Any) -> Window:  # noqa: ANN401  (as `server_client` takes it)
        """Has the client make a load, and takes the CPU time of the server beside it."""
        cpu = server.cpu_seconds()
        answer = self._ask(order)
        return Window.of(answer, server.cpu_seconds() - cpu)

    def close(self) -> None:
        """Ends the process."""
        try:
            self._process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._log.close()

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):  # the missing answer tells why
            print(json.dumps(order), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._log.seek(0)
            raise ServerError(f"the client ended: {self._log.read().decode(errors='replace').strip()[-2000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@dataclass(slots=True)
class Measured:
    """What was seen of one server, round by round.

    Attributes:
        closed: Callers → windows.
        opened: Images a second → windows.
        overloads: Overloads.
        during: Windows with cancellations.
        after: Windows after them.
        resident_bytes: Memory of the server after the loads of the last round.
    """

    closed: dict[int, list[Window]] = field(default_factory=dict)
    opened: dict[float, list[Window]] = field(default_factory=dict)
    overloads: list[Overload] = field(default_factory=list)
    during: list[Window] = field(default_factory=list)
    after: list[Window] = field(default_factory=list)
    resident_bytes: int = 0

    @property
    def best(self) -> Window:
        """The best closed loop of the latest round."""
        return max((windows[-1] for windows in self.closed.values()), key=lambda window: window.rate)

    @property
    def capacity(self) -> float:
        """Images a second of it."""
        return self.best.rate

    def figures(self, label: str, version: str) -> ServerFigures:
        """Sums up."""
        loads = [load_figures(windows, callers=callers) for callers, windows in self.closed.items()]
        loads += [load_figures(windows, offered=rate) for rate, windows in self.opened.items()]
        overload = overload_figures(self.overloads)
        cancels = cancel_figures(self.during, self.after)
        return ServerFigures(label, version, self.resident_bytes, loads, overload, cancels)


class Comparison:
    """Servers that are measured one after the other, on the same terms."""

    def __init__(self, arguments: Namespace, setup: Setup, contents: list[bytes], expected: list[str]) -> None:
        """Keeps what all are measured with."""
        self._arguments = arguments
        self._setup = setup
        self._images = {
            "model": setup.model,
            "contents": [base64.b64encode(content).decode() for content in contents],
            "expected": expected,
        }
        self._rates: list[float] = []

    def round(self, name: str, number: int, measured: Measured) -> None:
        """Measures one server once.

        Raises:
            ServerError: If it does not start.
        """
        with running(name, self._setup, LONGEST_SECONDS) as (server, _), self._client(name, server) as client:
            self._warm_up(server, client)
            self._loads(server, client, number, measured)
            self._cancel(server, client, number, measured)
        deadline = self._arguments.deadline
        with running(name, self._setup, deadline) as (server, check), self._client(name, server) as client:
            self._warm_up(server, client)
            self._overload(server, check, client, number, measured)
        over, cancels = overload_figures(measured.overloads[-1:]), cancel_figures(measured.during[-1:], [])
        console.print(
            f"round {number}, {KINDS[name].label}: {measured.capacity:.0f} images/s; overload: "
            f"{100 * over.goodput_ratio:.0f} % of capacity in time; {cancels.cancelled} cancelled: {cancels.hung} hung",
            highlight=False,
        )

    def _client(self, name: str, server: Server) -> Client:
        order = {"protocol": KINDS[name].protocol, "target": server.target, **self._images}
        return Client(self._setup.peer_python, order)

    def _warm_up(self, server: Server, client: Client) -> None:
        arguments = self._arguments
        client.window(server, kind="closed", callers=max(arguments.callers), seconds=min(2.0, arguments.seconds))

    def _loads(self, server: Server, client: Client, number: int, measured: Measured) -> None:
        arguments = self._arguments
        for callers in arguments.callers:
            window = client.window(server, kind="closed", callers=callers, seconds=arguments.seconds)
            measured.closed.setdefault(callers, []).append(window)
        if not self._rates:
            self._rates = [float(f"{share * measured.capacity:.2g}") for share in arguments.load]
        for rate in self._rates:
            window = client.window(
                server,
                kind="open",
                phases=[(rate, arguments.seconds)],
                deadline=arguments.patience,
                seed=number,
            )
            measured.opened.setdefault(rate, []).append(window)
        measured.resident_bytes = server.resident_bytes()

    def _overload(self, server: Server, check: Check, client: Client, number: int, measured: Measured) -> None:
        arguments = self._arguments
        capacity = measured.capacity
        offered = arguments.overload * capacity
        phases = [(offered, arguments.seconds), (LIGHT_SHARE * capacity, LIGHT_SECONDS)]
        with HealthWatch(check) as health:
            window = client.window(server, kind="open", phases=phases, deadline=arguments.deadline, seed=number)
        measured.overloads.append(
            Overload(
                window,
                measured.best,
                self._setup.workers,
                offered,
                arguments.seconds,
                arguments.deadline,
                health.latencies,
                len(health.failures),
            )
        )

    def _cancel(self, server: Server, client: Client, number: int, measured: Measured) -> None:
        arguments = self._arguments
        usual = client.window(
            server,
            kind="open",
            phases=[(CANCEL_LOAD_SHARE * measured.capacity, min(2.0, arguments.seconds))],
            deadline=arguments.patience,
            seed=number,
            burst=BURST,
        )
        took = sorted(usual.took()) or [arguments.deadline]
        measured.during.append(
            client.window(
                server,
                kind="open",
                phases=[(CANCEL_LOAD_SHARE * measured.capacity, arguments.seconds)],
                deadline=arguments.patience,
                seed=number,
                burst=BURST,
                cancel_share=arguments.cancel_share,
                cancel_within=took[len(took) // 2],
            )
        )
        measured.after.append(
            client.window(server, kind="closed", callers=AFTER_CALLERS, seconds=min(2.0, arguments.seconds))
        )
