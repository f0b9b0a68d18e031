"""A server under load and under attack at once: what is lost, what is answered wrong, and whether its memory grows.

Images arrive as a Poisson process. Meanwhile, at random moments, callers cancel, send files that are no images, workers
are killed with SIGKILL, and the model repository changes under the server: a new version appears, another goes, a
damaged one comes, and SIGHUP asks for a reload each time. Whatever happens, every call must come to exactly one end,
every answer must be the text that the recogniser reads by itself, and calls that were neither cancelled nor bad must
not fail. Ends with 1 otherwise.

Memory is that of all processes of the server, each shared page counted once, sampled every second; its slope is that of
a straight line through the second half of the run, where all shapes have been seen.

    python benchmarks/soak.py                                          ten minutes
    python benchmarks/soak.py --minutes 1 --rate 40 --plot soak.png
    python benchmarks/soak.py --minutes 10 --cancels 1000 --bad 200 --kills 5 --reloads 20 --json > soak.json
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

import grpc
import numpy as np
from machine import describe_machine, print_report
from rich.console import Console
from rich.table import Table
from server import Server, serving
from strips import STRIPS, load_strips

from glyphline.models.bundle import MANIFEST_NAME, load_bundle, write_manifest
from glyphline.models.decoding import Reading
from glyphline.models.recognizer import load_recognizer
from glyphline.models.repository import ModelRepository, pretrained_root
from glyphline.models.session import available_threads
from glyphline.recognition.v1 import recognition_pb2 as messages
from glyphline.recognition.v1 import recognition_pb2_grpc as services

DEADLINE_SECONDS = 60.0
BAD_FILE = b"\x89PNG\r\n\x1a\n and then nothing that a picture could be made of"
console = Console(stderr=True)


@dataclass(slots=True)
class Tally:
    """What became of the calls.

    Attributes:
        sent: Calls sent, by kind: `plain`, `cancelled` (the caller went away), `bad` (no image).
        ends: How they ended, by kind and status.
        different: Answers unlike the recogniser's own.
        latencies: Seconds of each plain call that was answered.
        done: What was done to the server, and how often.
        memory: Seconds since the start and bytes of the server.
    """

    sent: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    different: int = 0
    latencies: list[float] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    memory: list[tuple[float, int]] = field(default_factory=list)

    def failures(self) -> list[str]:
        """Says what went wrong; nothing where all went as it must."""
        found = []
        if sum(self.sent.values()) != sum(self.ends.values()):
            found.append(f"{sum(self.sent.values())} calls and {sum(self.ends.values())} ends")
        allowed = {"plain OK", "bad INVALID_ARGUMENT", "cancelled CANCELLED", "cancelled OK"}
        found += [f"{count} × {end}" for end, count in sorted(self.ends.items()) if end not in allowed]
        if self.different:
            found.append(f"{self.different} answers were another text")
        return found

    def slope(self) -> float:
        """Growth of the memory over the second half, in MB a minute."""
        half = self.memory[len(self.memory) // 2 :]
        if len(half) < 3:
            return 0.0
        times, sizes = np.array(half).T
        return float(np.polyfit(times / 60, sizes / 1e6, 1)[0])


class Repository:
    """A folder of models that changes: versions 1 and 2 of one model come and go, and a damaged third.

    Args:
        root: The folder.
        source: A bundle to copy.
    """

    def __init__(self, root: Path, source: Path) -> None:
        self.root = root
        self._source = source
        self._name = load_bundle(source).manifest.name
        self._turn = 0
        self._add(1)

    def _add(self, version: int) -> None:
        """Puts a copy of the model there under another version, whole at once."""
        partial = self.root / f".{version}-partial"
        shutil.copytree(self._source, partial)
        manifest = load_bundle(partial).manifest.model_copy(update={"version": version})
        write_manifest(partial, manifest)
        (self.root / self._name).mkdir(exist_ok=True)
        partial.rename(self.root / self._name / str(version))

    def _remove(self, version: int) -> None:
        shutil.rmtree(self.root / self._name / str(version))

    def change(self) -> str:
        """Makes the next change and names it."""
        self._turn += 1
        match self._turn % 4:
            case 1:
                self._add(2)
                return "new version"
            case 2:
                broken = self.root / self._name / "3"
                broken.mkdir()
                (broken / MANIFEST_NAME).write_text("{")
                return "damaged version"
            case 3:
                self._remove(3)
                return "damaged version gone"
            case _:
                self._remove(2)
                return "version gone"


class Attack:
    """One run of load and faults against a server.

    Args:
        server: The server.
        repository: Its models, where they change.
        contents: Encoded images.
        expected: The text of each.
        seed: Makes the same arrivals and moments again.
    """

    def __init__(
        self, server: Server, repository: Repository, contents: list[bytes], expected: list[str], seed: int
    ) -> None:
        self.tally = Tally()
        self._server = server
        self._repository = repository
        self._images = [messages.Image(content=content) for content in contents]
        self._expected = expected
        self._random = np.random.default_rng(seed)

    async def run(self, seconds: float, rate: float, cancels: int, bad: int, kills: int, reloads: int) -> Tally:
        """Attacks for `seconds` with `rate` plain images a second and so many faults of each kind."""
        async with grpc.aio.insecure_channel(self._server.target) as channel:
            await channel.channel_ready()
            stub = cast("services.RecognitionServiceAsyncStub", services.RecognitionServiceStub(channel))
            begun = time.perf_counter()
            plan: list[tuple[float, Callable[[], Awaitable[None]]]] = []
            plan += [(when, lambda: self._plain(stub)) for when in self._moments(round(rate * seconds), seconds)]
            plan += [(when, lambda: self._cancelled(stub)) for when in self._moments(cancels, seconds)]
            plan += [(when, lambda: self._bad(stub)) for when in self._moments(bad, seconds)]
            # Faults of the server come while there is still time to see what they do.
            plan += [(when, self._kill) for when in self._moments(kills, seconds * 0.9)]
            plan += [(when, self._reload) for when in self._evenly(reloads, seconds * 0.9)]
            plan += [(float(when), self._sample) for when in np.arange(0.0, seconds, 1.0)]
            async with asyncio.TaskGroup() as group:
                for when, what in sorted(plan, key=lambda item: item[0]):
                    await asyncio.sleep(max(0.0, begun + when - time.perf_counter()))
                    group.create_task(_started(what))
        return self.tally

    def _moments(self, count: int, seconds: float) -> list[float]:
        """Uniform moments: of a Poisson process with so many arrivals."""
        return sorted(self._random.uniform(0, seconds, count).tolist())

    def _evenly(self, count: int, seconds: float) -> list[float]:
        """Moments far enough apart that each reload can be seen to end."""
        return [seconds * (index + 0.5) / count for index in range(count)]

    def _request(self) -> tuple[messages.RecognizeRequest, int]:
        number = int(self._random.integers(len(self._images)))
        return messages.RecognizeRequest(image=self._images[number]), number

    async def _plain(self, stub: services.RecognitionServiceAsyncStub) -> None:
        request, number = self._request()
        self.tally.sent["plain"] += 1
        began = time.perf_counter()
        try:
            response = await stub.Recognize(request, timeout=DEADLINE_SECONDS)
        except grpc.aio.AioRpcError as error:
            self.tally.ends[f"plain {error.code().name}"] += 1
            return
        self.tally.latencies.append(time.perf_counter() - began)
        self.tally.ends["plain OK"] += 1
        self.tally.different += response.alternatives[0].text != self._expected[number]

    async def _cancelled(self, stub: services.RecognitionServiceAsyncStub) -> None:
        request, number = self._request()
        self.tally.sent["cancelled"] += 1
        call = stub.Recognize(request, timeout=DEADLINE_SECONDS)
        asyncio.get_running_loop().call_later(float(self._random.exponential(0.01)), call.cancel)
        try:
            response = await call
        except grpc.aio.AioRpcError as error:
            self.tally.ends[f"cancelled {error.code().name}"] += 1
        except asyncio.CancelledError:
            self.tally.ends["cancelled CANCELLED"] += 1
        else:
            self.tally.ends["cancelled OK"] += 1
            self.tally.different += response.alternatives[0].text != self._expected[number]

    async def _bad(self, stub: services.RecognitionServiceAsyncStub) -> None:
        self.tally.sent["bad"] += 1
        image = messages.Image(content=BAD_FILE)
        try:
            await stub.Recognize(messages.RecognizeRequest(image=image), timeout=DEADLINE_SECONDS)
        except grpc.aio.AioRpcError as error:
            self.tally.ends[f"bad {error.code().name}"] += 1
        else:
            self.tally.ends["bad OK"] += 1

    async def _kill(self) -> None:
        workers = self._server.worker_pids()
        if workers:
            victim = workers[int(self._random.integers(len(workers)))]
            os.kill(victim, signal.SIGKILL)
            self.tally.done["worker killed"] += 1

    async def _reload(self) -> None:
        self.tally.done[await asyncio.to_thread(self._repository.change)] += 1
        self._server.process.send_signal(signal.SIGHUP)

    async def _sample(self) -> None:
        size = await asyncio.to_thread(self._server.resident_bytes)
        self.tally.memory.append((time.perf_counter(), size))


async def _started(what: Callable[[], Awaitable[None]]) -> None:
    await what()


def plot(tally: Tally, path: Path) -> None:
    """Draws memory over time."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (only where a picture is wanted)

    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.subplots()
    times, sizes = np.array(tally.memory).T
    axes.plot((times - times[0]) / 60, sizes / 1e6)
    axes.set(xlabel="minutes", ylabel="memory of the server, MB", ylim=(0, None), title="Soak")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def show(tally: Tally) -> None:
    """Prints what became of the calls."""
    table = Table(title="calls", caption=f"memory: {tally.slope():+.2f} MB a minute over the second half")
    for heading in ("kind and end", "calls"):
        table.add_column(heading)
    for end, count in sorted(tally.ends.items()):
        table.add_row(end, f"{count:,}")
    table.add_row("answered with another text", f"{tally.different:,}")
    for what, count in sorted(tally.done.items()):
        table.add_row(what, f"{count:,}")
    for point in (50, 95, 99):
        table.add_row(f"p{point} of plain calls, ms", f"{1000 * np.percentile(tally.latencies, point):.1f}")
    print_report(table, describe_machine())


def parse() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="digits-ctc", help="name of a shipped model (default: digits-ctc)")
    parser.add_argument("--minutes", type=float, default=10.0, help="length of the run (default: 10)")
    parser.add_argument("--rate", type=float, default=60.0, help="plain images a second (default: 60)")
    parser.add_argument("--cancels", type=int, default=1000, help="calls that are cancelled (default: 1000)")
    parser.add_argument("--bad", type=int, default=200, help="files that are no images (default: 200)")
    parser.add_argument("--kills", type=int, default=5, help="workers killed (default: 5)")
    parser.add_argument("--reloads", type=int, default=20, help="changes of the models (default: 20)")
    parser.add_argument("--workers", type=int, default=available_threads(), help="worker processes (default: cores)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="draw memory over time")
    return parser.parse_args()


def main() -> int:
    """Starts the server, attacks, prints; exits with 1 if something was lost, wrong or failed."""
    arguments = parse()
    source = ModelRepository([pretrained_root()]).resolve(arguments.model, None)
    recognizer = load_recognizer(source, threads=1)
    contents = load_strips(STRIPS, 64, recognizer.bundle.manifest.image)
    expected = [each.text for each in recognizer.recognize(contents) if isinstance(each, Reading)]
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(Path(folder), source)
        with serving(arguments.workers, ["--model-repository", folder]) as server:
            attack = Attack(server, repository, contents, expected, arguments.seed)
            console.print(f"{arguments.minutes:g} minutes at {arguments.rate:g} images/s")
            faults = arguments.cancels, arguments.bad, arguments.kills, arguments.reloads
            tally = asyncio.run(attack.run(arguments.minutes * 60, arguments.rate, *faults))
    if arguments.plot:
        plot(tally, arguments.plot)
    failures = tally.failures()
    if arguments.json:
        report = asdict(tally) | {"slope_mb_per_minute": tally.slope(), "failures": failures}
        json.dump(report | {"machine": describe_machine()}, sys.stdout, indent=2)
        print()
    else:
        show(tally)
    for failure in failures:
        console.print(f"[red]{failure}[/red]")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
