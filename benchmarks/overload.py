"""What a server still does when callers want three times what it can.

Each round first measures the capacity, in a closed loop of callers who have 64 images in progress together; then calls
come as a Poisson process at so many times that rate, and each waits for no longer than `--deadline`. What is read in
time, as a share of the capacity, is the goodput. A refused call costs the server and its client nearly as much as one
that is answered, but for the reading, so calls of several images (`--images-per-call`) keep more of it. Where the
client shares the server's cores it takes more of them than before: "of what is left" is the same share of what the
server would do beside such a client.

    python benchmarks/overload.py
    python benchmarks/overload.py --images-per-call 1 8 --times 3 --deadline 1 --rounds 3

`servers.py` also measures how soon a server is itself again, and its health checks meanwhile, beside other servers.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass

import numpy as np
from load import Outcome, Task, closed_loop, open_loop
from machine import describe_machine, print_report, share_left
from rich.console import Console
from rich.table import Table
from server import serving
from strips import STRIPS, load_strips

from glyphline.models.recognizer import load_recognizer
from glyphline.models.session import available_threads
from glyphline.recognition.v1 import recognition_pb2 as messages

IN_PROGRESS = 64
console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Figures:
    """What the rounds of one size of calls came to.

    Attributes:
        images_per_call: Images of a call.
        capacity: Images a second in closed loops, the median.
        offered: Images a second that callers wanted.
        goodput: Images a second that were read in time.
        goodput_ratio: Goodput over capacity, the median of the rounds.
        left_ratio: The same over what the client leaves of the capacity.
        p99_seconds: Of what was read, from when it was due.
        errors: Calls that failed, or images of a call, by status.
        different: Answers unlike the recogniser's own.
    """

    images_per_call: int
    capacity: float
    offered: float
    goodput: float
    goodput_ratio: float
    left_ratio: float
    p99_seconds: float
    errors: dict[str, int]
    different: int


def cores_of(outcome: Outcome) -> float:
    """Returns how many cores a client kept busy."""
    return outcome.cpu_seconds / outcome.seconds


def measure(task: Task, arguments: argparse.Namespace, client: ProcessPoolExecutor) -> Figures:
    """Measures one size of calls."""
    rows, codes, latencies, different = [], Counter[str](), [], 0
    callers = max(1, IN_PROGRESS // task.images_per_call)
    patient = Task(task.target, task.contents, task.expected, task.config, task.images_per_call)
    for seed in range(arguments.rounds):
        usual = client.submit(closed_loop, patient, callers, arguments.seconds).result()
        capacity = len(usual.latencies) / usual.seconds
        rate = arguments.times * capacity
        storm = client.submit(open_loop, task, rate, arguments.seconds, seed).result()
        goodput = len(storm.latencies) / storm.seconds
        left = share_left(cores_of(storm), arguments.workers) / share_left(cores_of(usual), arguments.workers)
        rows.append((capacity, rate, goodput, goodput / capacity, goodput / capacity / left))
        codes.update(storm.errors)
        latencies += storm.latencies
        different += storm.different + usual.different
        console.print(f"round {seed + 1}, {task.images_per_call} a call: {goodput:.0f} of {capacity:.0f} images/s")
    capacity, rate, goodput, ratio, left = (statistics.median(column) for column in zip(*rows, strict=True))
    p99 = float(np.percentile(latencies, 99))
    return Figures(task.images_per_call, capacity, rate, goodput, ratio, left, p99, dict(codes), different)


def show(figures: list[Figures], machine: dict[str, str], title: str) -> None:
    """Prints the figures as a table."""
    table = Table(title=title, caption="medians of the rounds; p99 of what was read, from when it was due")
    for heading in (
        "images a call",
        "capacity",
        "wanted",
        "in time",
        "of capacity",
        "of what is left",
        "p99, s",
        "failed calls or images",
    ):
        table.add_column(heading, justify="right")
    for row in figures:
        table.add_row(
            str(row.images_per_call),
            *(f"{value:.0f}" for value in (row.capacity, row.offered, row.goodput)),
            *(f"{value:.2f}" for value in (row.goodput_ratio, row.left_ratio, row.p99_seconds)),
            ", ".join(f"{code} {count}" for code, count in sorted(row.errors.items())),
        )
    print_report(table, machine)


def parse() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="digits-ctc", help="name of a shipped model (default: digits-ctc)")
    parser.add_argument("--workers", type=int, default=available_threads(), help="workers (default: the cores)")
    parser.add_argument("--images-per-call", type=int, nargs="+", default=[1, 8], help="sizes of calls (default: 1 8)")
    parser.add_argument("--times", type=float, default=3.0, help="times the capacity that callers want (default: 3)")
    parser.add_argument("--deadline", type=float, default=1.0, help="seconds that callers wait (default: 1)")
    parser.add_argument("--seconds", type=float, default=6.0, help="length of a window (default: 6)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds whose median is taken (default: 3)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


def main() -> int:
    """Starts a server, measures, prints; exits with 1 if an answer differed."""
    arguments = parse()
    recognizer = load_recognizer(arguments.model, threads=1)
    contents = load_strips(STRIPS, 256, recognizer.bundle.manifest.image)
    expected = [getattr(outcome, "text", "") for outcome in recognizer.recognize(contents)]
    config = messages.RecognitionConfig(model=arguments.model)
    config.greedy.SetInParent()
    context = multiprocessing.get_context("spawn")
    with serving(arguments.workers, ["--models", arguments.model]) as server, ProcessPoolExecutor(1, context) as client:
        tasks = [
            Task(server.target, contents, expected, config.SerializeToString(), size, arguments.deadline)
            for size in arguments.images_per_call
        ]
        client.submit(closed_loop, tasks[0], 8, 1.0).result()
        figures = [measure(task, arguments, client) for task in tasks]
    machine = describe_machine()
    if arguments.json:
        json.dump({"machine": machine, "figures": [asdict(row) for row in figures]}, sys.stdout, indent=2)
        print()
    else:
        show(
            figures, machine, f"{arguments.model}, {arguments.workers} workers, {arguments.times:g} times the capacity"
        )
    return 1 if any(row.different for row in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
