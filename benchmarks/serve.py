"""What serving costs beyond the network: a real server under load beside bare ONNX Runtime on the same cores.

Closed loop (the default): `glyphline serve` with N workers is loaded by 1 and by 64 callers from a process of its own.
The yardstick is N processes that each hold one bare session with one thread and feed it arrays that are ready (as many
processes as callers where those are fewer), batched by 16 columns of width or, with `--bare runs`, in the cheapest runs
that there are for all of them. Both get windows of the same length in turns, round after round, so that a busy machine
disturbs both alike. Shown are medians over the rounds: throughput and its ratio to the bare one, CPU time an image,
latency, failed calls, and answers whose text differs from what the recogniser reads in this process.

CPU time is shown for each kind of process. The client's is not the server's, but where there are no more cores than
workers it is taken from theirs: "of what is left" is the served rate over the rate that the bare sessions would have if
the same client ran beside them. "At most" is the ratio that there would be if no core were ever idle: what an image
costs in all, the client's part too, bounds how many there can be.

Open loop (--rate): images arrive as a Poisson process at the rate given, whatever the server does; latency counts from
when an image was due.

    python benchmarks/serve.py
    python benchmarks/serve.py --workers 2 --concurrency 1 16 64 --seconds 10 --rounds 5
    python benchmarks/serve.py --concurrency 8 --images-per-call 8
    python benchmarks/serve.py --decoder beam --model digits-ctc --json > figures.json
    python benchmarks/serve.py --rate 100 200 --seconds 20 --rounds 1
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from bare_pool import BarePool, BareWork
from load import Outcome, Task, closed_loop, open_loop
from machine import describe_machine, print_report, share_left
from rich.console import Console
from rich.table import Table
from server import Server, serving
from strips import STRIPS, load_strips

from glyphline.models.decoding import DecodingOptions, Reading
from glyphline.models.recognizer import Recognizer, load_recognizer
from glyphline.models.repository import ModelRepository, pretrained_root
from glyphline.models.session import available_threads
from glyphline.recognition.v1 import recognition_pb2 as messages

PERCENTILES = (50, 95, 99)
LARGEST_BATCH = 32
console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Served:
    """What the server did in one window, and what its callers saw."""

    images_per_second: float
    cpu_milliseconds: float
    front_cpu_milliseconds: float
    outcome: Outcome

    @property
    def client_cores(self) -> float:
        """Cores that the client kept busy."""
        return self.outcome.cpu_seconds / self.outcome.seconds


@dataclass(frozen=True, slots=True)
class Figures:
    """What one kind of load came to: medians over the rounds, latencies and counts over all of them.

    Attributes:
        load: What was done: `64 callers`, `100 images/s`.
        images_per_second: Served.
        cpu_milliseconds: CPU time of the server an image, of all its processes.
        front_cpu_milliseconds: Of it the front process's; the rest is the workers'.
        client_cpu_milliseconds: CPU time of the client an image, which is not the server's.
        latency_milliseconds: Percentile → latency.
        calls: Images answered.
        errors: Failed calls by status code.
        different: Answers unlike the recogniser's own.
        bare_images_per_second: Of the bare sessions; None for an open loop.
        bare_cpu_milliseconds: Of the bare sessions.
        throughput_ratio: Served over bare, a ratio in each round.
        left_ratio: Served over what the client leaves of bare.
        bound_ratio: The same as throughput_ratio if no core had ever been idle.
        cpu_ratio: Server's CPU time over the bare one's.
    """

    load: str
    images_per_second: float
    cpu_milliseconds: float
    front_cpu_milliseconds: float
    client_cpu_milliseconds: float
    latency_milliseconds: dict[str, float]
    calls: int
    errors: dict[str, int]
    different: int
    bare_images_per_second: float | None = None
    bare_cpu_milliseconds: float | None = None
    throughput_ratio: float | None = None
    left_ratio: float | None = None
    bound_ratio: float | None = None
    cpu_ratio: float | None = None


def serve_window(server: Server, drive: Callable[[], Outcome]) -> Served:
    """Lets the client drive the server once and takes the server's own CPU time beside it."""
    cpu, front = server.cpu_seconds(), server.front_cpu_seconds()
    outcome = drive()
    cpu, front = server.cpu_seconds() - cpu, server.front_cpu_seconds() - front
    images = len(outcome.latencies)
    if not images:
        raise SystemExit(f"no call was answered: {dict(outcome.errors)}")
    return Served(images / outcome.seconds, 1000 * cpu / images, 1000 * front / images, outcome)


def bound(figures: Figures, workers: int) -> float:
    """Returns the images a second that keep all cores busy at these CPU times, or else all workers, a core each."""
    cores = available_threads() / (figures.cpu_milliseconds + figures.client_cpu_milliseconds)
    return 1000 * min(cores, workers / max(1e-9, figures.cpu_milliseconds - figures.front_cpu_milliseconds))


def summarise(load: str, served: list[Served], bare: list[BareWork], processes: int = 1) -> Figures:
    """Takes the medians over the rounds, and latencies and counts over all of them; bare ran in so many processes."""
    outcomes = [window.outcome for window in served]
    latencies = np.concatenate([outcome.latencies for outcome in outcomes])
    figures = Figures(
        load=load,
        images_per_second=statistics.median(window.images_per_second for window in served),
        cpu_milliseconds=statistics.median(window.cpu_milliseconds for window in served),
        front_cpu_milliseconds=statistics.median(window.front_cpu_milliseconds for window in served),
        client_cpu_milliseconds=1000 * sum(outcome.cpu_seconds for outcome in outcomes) / len(latencies),
        latency_milliseconds={f"p{point}": 1000 * float(np.percentile(latencies, point)) for point in PERCENTILES},
        calls=len(latencies),
        errors=dict(sum((outcome.errors for outcome in outcomes), Counter())),
        different=sum(outcome.different for outcome in outcomes),
    )
    if not bare:
        return figures
    pairs = list(zip(served, bare, strict=True))
    bare_rate = statistics.median(one.images_per_second for one in bare)
    return Figures(
        **{
            **asdict(figures),
            "bare_images_per_second": bare_rate,
            "bound_ratio": bound(figures, processes) / bare_rate,
            "bare_cpu_milliseconds": statistics.median(one.cpu_milliseconds for one in bare),
            "throughput_ratio": statistics.median(one.images_per_second / two.images_per_second for one, two in pairs),
            "left_ratio": statistics.median(
                one.images_per_second / (two.images_per_second * share_left(one.client_cores, processes))
                for one, two in pairs
            ),
            "cpu_ratio": statistics.median(one.cpu_milliseconds / two.cpu_milliseconds for one, two in pairs),
        }
    )


def read_here(recognizer: Recognizer, contents: list[bytes], options: DecodingOptions) -> list[str]:
    """Reads the images in this process: what the server must answer."""
    readings = recognizer.recognize(contents, options)
    return [reading.text for reading in readings if isinstance(reading, Reading)]


def request_config(arguments: argparse.Namespace, recognizer: Recognizer) -> messages.RecognitionConfig:
    """Asks for the model and the decoder of the command line."""
    config = messages.RecognitionConfig(model=recognizer.bundle.manifest.name)
    if arguments.decoder == "beam":
        config.beam_search.beam_width = arguments.beam_width
    else:
        config.greedy.SetInParent()
    return config


def measure_closed(arguments: argparse.Namespace, recognizer: Recognizer, task: Task, server: Server) -> list[Figures]:
    """Measures every concurrency against bare sessions, in turns."""
    beam_width = arguments.beam_width if arguments.decoder == "beam" else 1
    plan = []
    for concurrency in arguments.concurrency:
        processes = min(arguments.workers, concurrency)
        images = concurrency * arguments.images_per_call
        plan.append((concurrency, processes, min(LARGEST_BATCH, max(1, images // processes))))
    sizes = sorted({size for _, _, size in plan})
    served: dict[int, list[Served]] = {concurrency: [] for concurrency in arguments.concurrency}
    bare: dict[int, list[BareWork]] = {concurrency: [] for concurrency in arguments.concurrency}
    context = multiprocessing.get_context("spawn")
    with (
        BarePool(arguments.workers, recognizer.bundle.path, task.contents, sizes, arguments.bare) as pool,
        ProcessPoolExecutor(1, mp_context=context) as client,
    ):
        for number in range(arguments.rounds + 1):
            for concurrency, processes, size in plan:
                # Round 0 warms everything up and does not count.
                seconds = arguments.seconds if number else min(1.0, arguments.seconds)
                by_us = serve_window(server, client.submit(closed_loop, task, concurrency, seconds).result)
                by_them = pool.window(processes, size, beam_width, seconds)
                if number:
                    served[concurrency].append(by_us)
                    bare[concurrency].append(by_them)
                    console.print(
                        f"round {number}, {concurrency} callers: {by_us.images_per_second:.0f} images/s served, "
                        f"{by_them.images_per_second:.0f} bare"
                    )
    return [
        summarise(
            "1 caller" if concurrency == 1 else f"{concurrency} callers",
            served[concurrency],
            bare[concurrency],
            processes,
        )
        for concurrency, processes, _ in plan
    ]


def measure_open(arguments: argparse.Namespace, task: Task, server: Server) -> list[Figures]:
    """Measures every rate of Poisson arrivals."""
    figures = []
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as client:
        client.submit(closed_loop, task, 8, 1.0).result()
        for rate in arguments.rate:
            windows = []
            for seed in range(arguments.rounds):
                drive = client.submit(open_loop, task, rate, arguments.seconds, seed).result
                windows.append(serve_window(server, drive))
                console.print(f"round {seed + 1}, {rate:g} images/s due: {windows[-1].images_per_second:.0f} served")
            figures.append(summarise(f"{rate:g} images/s", windows, []))
    return figures


def show(figures: list[Figures], title: str, machine: dict[str, str]) -> None:
    """Prints the figures as a table."""
    caption = "medians of the rounds; ratio: served / bare; CPU, front, …: milliseconds an image; p50 …: latency in ms"
    table = Table(title=title, caption=caption)
    compared = figures[0].throughput_ratio is not None
    headings = ["load", "images/s", "CPU", "front", "workers", "client"]
    headings[3:3] = ["bare", "ratio"] if compared else []
    headings[2:2] = ["bare", "ratio", "at most", "of what is left"] if compared else []
    for heading in (*headings, *figures[0].latency_milliseconds, "failed", "different text"):
        table.add_column(heading, justify="right")
    for row in figures:
        cells = [row.load, f"{row.images_per_second:.0f}", f"{row.cpu_milliseconds:.2f}"]
        cells += [f"{row.front_cpu_milliseconds:.2f}", f"{row.cpu_milliseconds - row.front_cpu_milliseconds:.2f}"]
        cells += [f"{row.client_cpu_milliseconds:.2f}"]
        if compared:
            cells[3:3] = [f"{row.bare_cpu_milliseconds:.2f}", f"{row.cpu_ratio:.2f}"]
            cells[2:2] = [f"{row.bare_images_per_second:.0f}", f"{row.throughput_ratio:.2f}"]
            cells[4:4] = [f"{row.bound_ratio:.2f}", f"{row.left_ratio:.2f}"]
        table.add_row(
            *cells,
            *(f"{value:.1f}" for value in row.latency_milliseconds.values()),
            ", ".join(f"{code} {count}" for code, count in row.errors.items()) or "0",
            f"{row.different} of {row.calls}",
        )
    print_report(table, machine)


def parse() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="digits", help="name of a model (default: digits)")
    parser.add_argument("--model-repository", type=Path, help="folder of models (default: the shipped ones)")
    parser.add_argument("--data", type=Path, default=STRIPS, help="folder of images (default: tests/data/strips)")
    parser.add_argument("--images", type=int, default=256, help="images sent round and round (default: 256)")
    parser.add_argument(
        "--workers", type=int, default=available_threads(), help="worker processes (default: the cores)"
    )
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 64], help="callers (default: 1 64)")
    parser.add_argument(
        "--images-per-call", type=int, default=1, help="images of a call; of several by BatchRecognize (default: 1)"
    )
    parser.add_argument(
        "--rate", type=float, nargs="+", help="images a second, at random moments: an open loop instead"
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="length of a window (default: 5)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds whose median is taken (default: 5)")
    parser.add_argument(
        "--bare", choices=["buckets", "runs"], default="buckets", help="batches of the bare sessions (default: buckets)"
    )
    parser.add_argument("--decoder", choices=["greedy", "beam"], default="greedy")
    parser.add_argument("--beam-width", type=int, default=10, help="width of the beam (default: 10)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


def main() -> int:
    """Starts the server, measures, prints; exits with 1 if a call failed or an answer differed."""
    arguments = parse()
    root: Path = arguments.model_repository or pretrained_root()
    recognizer = load_recognizer(ModelRepository([root]).resolve(arguments.model, None), threads=1)
    contents = load_strips(arguments.data, arguments.images, recognizer.bundle.manifest.image)
    options = DecodingOptions(decoder=arguments.decoder, beam_width=arguments.beam_width)
    expected = read_here(recognizer, contents, options)
    config = request_config(arguments, recognizer).SerializeToString()
    with serving(arguments.workers, ["--model-repository", str(root)]) as server:
        task = Task(server.target, contents, expected, config, arguments.images_per_call)
        if arguments.rate:
            figures = measure_open(arguments, task, server)
        else:
            figures = measure_closed(arguments, recognizer, task, server)
        memory = server.resident_bytes()
    machine = describe_machine()
    manifest = recognizer.bundle.manifest
    if arguments.json:
        report = {
            "machine": machine,
            "model": {"name": manifest.name, "version": manifest.version, "head": manifest.head},
            "workers": arguments.workers,
            "decoder": arguments.decoder,
            "images_per_call": arguments.images_per_call,
            "bare": arguments.bare,
            "resident_bytes": memory,
            "figures": [asdict(row) for row in figures],
        }
        json.dump(report, sys.stdout, indent=2)
        print()
    else:
        machine["server memory"] = f"{memory / 2**20:.0f} MiB"
        show(figures, f"{manifest.name} {manifest.version} ({manifest.head}), {arguments.workers} workers", machine)
    return 1 if any(row.errors or row.different for row in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
