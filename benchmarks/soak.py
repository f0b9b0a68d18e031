"""A server under load and under attack at once: what is lost, what is answered wrong, and whether its memory grows.

Images arrive as a Poisson process, over TLS and with a token. Meanwhile, at random moments, callers cancel, send files
that are no images, send and read at leisure, open connections and say nothing; another caller asks at once for three
times what the queue holds; workers are killed with SIGKILL; the certificate is renewed; and the model repository
changes: a new version appears, another goes, a damaged one comes, and SIGHUP asks for a reload each time. Whatever
happens, every call must come to exactly one end, every answer must be the text that the recogniser reads by itself, and
calls that were neither cancelled nor bad nor too many must not fail. Ends with 1 otherwise.

Memory is sampled every second. What a server holds in all goes down when a worker is killed and up while another loads,
by more than any leak would show in. So its growth is that of what the processes hold for themselves: the front process,
and as many workers as there should be, each as large as the largest. The slope is that of a straight line through the
second half of the run, with an interval of 95 %. In runs of four minutes and more it counts as a failure if memory
surely grows by more than 1 MB a minute. In the end there must be as many workers as in the beginning, and no other.

The rate must be one that the machine can keep up with beside all that: callers wait for a minute, and then have failed.

    python benchmarks/soak.py                                          ten minutes
    python benchmarks/soak.py --minutes 1 --rate 40 --plot soak.png
    python benchmarks/soak.py --minutes 10 --cancels 1000 --bad 200 --kills 5 --reloads 20 --json > soak.json

Needs the extras `cpu` and `dev`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from machine import describe_machine, print_report
from rich.console import Console
from rich.table import Table
from server import serving
from soak_attack import Attack, Plan
from soak_faults import Certificate, Repository
from soak_tally import Tally
from strips import STRIPS, load_strips

from glyphline.models.decoding import Reading
from glyphline.models.recognizer import load_recognizer
from glyphline.models.repository import ModelRepository, pretrained_root
from glyphline.models.session import available_threads
from glyphline.service.client import tls_credentials
from glyphline.service.security.tokens import new_token, token_line

console = Console(stderr=True)


def plot(tally: Tally, path: Path) -> None:
    """Draws memory over time."""
    from matplotlib.figure import Figure  # noqa: PLC0415  (only where a picture is wanted)

    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = figure.subplots()
    times, sizes = np.array(tally.memory).T
    axes.plot((times - times[0]) / 60, np.array(tally.resident) / 1e6, label="in fact")
    axes.plot((times - times[0]) / 60, sizes / 1e6, label="its own, with all workers there")
    axes.set(xlabel="minutes", ylabel="memory of the server, MB", ylim=(0, None), title="Soak")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


def show(tally: Tally) -> None:
    """Prints what became of the calls."""
    slope = tally.slope()
    growth = f"{slope.value:+.2f} MB a minute ({slope.low:+.2f} to {slope.high:+.2f}) over the second half"
    table = Table(title="calls", caption=f"memory: {growth}{'' if slope.judged else ', too short to judge'}")
    for heading in ("kind and end", "calls"):
        table.add_column(heading)
    for end, count in sorted(tally.ends.items()):
        table.add_row(end, f"{count:,}")
    table.add_row("answered with another text", f"{tally.different:,}")
    for code, count in sorted(tally.again.items()):
        table.add_row(f"tried again after {code}", f"{count:,}")
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
    parser.add_argument("--slow", type=int, default=100, help="streams at leisure (default: 100)")
    parser.add_argument("--silent", type=int, default=20, help="connections that say nothing (default: 20)")
    parser.add_argument("--bursts", type=int, default=5, help="times the queue is overfilled (default: 5)")
    parser.add_argument("--kills", type=int, default=5, help="workers killed (default: 5)")
    parser.add_argument("--reloads", type=int, default=20, help="changes of the models (default: 20)")
    parser.add_argument("--rolls", type=int, default=5, help="changes of the certificate (default: 5)")
    parser.add_argument("--max-queue", type=int, default=128, help="the server's queue (default: 128)")
    parser.add_argument("--workers", type=int, default=available_threads(), help="worker processes (default: cores)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="draw memory over time")
    return parser.parse_args()


def attack(arguments: argparse.Namespace, folder: Path) -> Tally:
    """Starts a server with all that it is to be attacked by, and attacks it."""
    source = ModelRepository([pretrained_root()]).resolve(arguments.model, None)
    recognizer = load_recognizer(source, threads=1)
    contents = load_strips(STRIPS, 64, recognizer.bundle.manifest.image)
    expected = [each.text for each in recognizer.recognize(contents) if isinstance(each, Reading)]
    models, tokens_file = folder / "models", folder / "tokens.txt"
    models.mkdir()
    repository, certificate = Repository(models, source), Certificate(folder)
    usual, greedy = new_token(), new_token()
    tokens_file.write_text(f"{token_line('usual', usual)}\n{token_line('greedy', greedy)}\n", encoding="utf-8")
    options = ["--model-repository", str(models), "--max-queue", str(arguments.max_queue)]
    options += ["--tls-certificate", str(certificate.certificate), "--tls-key", str(certificate.key)]
    options += ["--tokens", str(tokens_file)]
    plan = Plan(
        seconds=arguments.minutes * 60,
        rate=arguments.rate,
        cancels=arguments.cancels,
        bad=arguments.bad,
        slow=arguments.slow,
        silent=arguments.silent,
        bursts=arguments.bursts,
        burst_calls=3 * arguments.max_queue,
        kills=arguments.kills,
        reloads=arguments.reloads,
        rolls=arguments.rolls,
        workers=arguments.workers,
    )
    with serving(arguments.workers, options, tls_credentials(certificate.authority)) as server:
        console.print(f"{arguments.minutes:g} minutes at {arguments.rate:g} images/s")
        run = Attack(server, repository, certificate, (usual, greedy), contents, expected, arguments.seed)
        tally = asyncio.run(run.run(plan))
    if server.process.returncode:
        tally.faults.append(f"the server ended with exit code {server.process.returncode}")
    return tally


def main() -> int:
    """Starts the server, attacks, prints; exits with 1 if something was lost, wrong or failed."""
    arguments = parse()
    with tempfile.TemporaryDirectory() as folder:
        tally = attack(arguments, Path(folder))
    if arguments.plot:
        plot(tally, arguments.plot)
    failures = tally.failures()
    if arguments.json:
        json.dump(tally.figures() | {"machine": describe_machine()}, sys.stdout, indent=2)
        print()
    else:
        show(tally)
    for failure in failures:
        console.print(f"[red]{failure}[/red]")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
