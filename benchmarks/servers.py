"""Glyphline beside other servers: the same network and images behind each, with as many workers of one thread.

MLServer, LitServe and Ray Serve are each set up as its own guide says (`server_peers.py`, `peer_servers/`), and each
worker runs Glyphline's own recogniser, so that only the server differs. One server runs at a time, round after round, a
fresh one in each. The client is a process of its own, of the same interpreter for all, and checks the text of every
answer. Measured are

- throughput and latency of closed loops: callers that each send their next image when the last one is answered;
- latency of open loops: images due at random moments at the same rates for all, which are shares of what the first
  server did in its closed loops of the first round; an answer's time counts from when its image was due;
- an overload: images due at a multiple of the server's own capacity, callers that wait no longer than a deadline,
  health asked meanwhile, and then a light load, to see how soon it is answered fast again (of a fresh server);
- cancellations: images due several at a time, so that they share batches, at half the server's capacity; a share of the
  calls is cancelled by the client, and the others ought not to notice.

Servers that are not installed are left out with a line that says how to install them; they may live in an environment
of their own, together with Glyphline:

    python3 -m venv peers && peers/bin/pip install -e '.[cpu]' -r benchmarks/peer_servers/requirements.txt
    python benchmarks/servers.py --peer-python peers/bin/python --plot servers.png
    python benchmarks/servers.py --peer-python peers/bin/python --servers glyphline mlserver --rounds 1 --seconds 3
    python benchmarks/servers.py --peer-python peers/bin/python --json > servers.json

On a machine whose cores the client needs too, a server that speaks HTTP shares them with a client that takes more: the
column `client` says how much.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from machine import describe_machine
from rich.console import Console
from serve import read_here
from server_peers import KINDS, ServerError, Setup, installed
from server_report import plot, show
from server_rounds import Comparison, Measured
from strips import STRIPS, load_strips

from glyphline.models.decoding import DecodingOptions
from glyphline.models.recognizer import load_recognizer
from glyphline.models.repository import ModelRepository, pretrained_root
from glyphline.models.session import available_threads

INSTALL = "pip install -e '.[cpu]' -r benchmarks/peer_servers/requirements.txt"
console = Console(stderr=True)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--servers", nargs="+", choices=list(KINDS), default=list(KINDS), help=f"default: {' '.join(KINDS)}")
    add("--peer-python", default=sys.executable, metavar="FILE", help="interpreter that has the peers")
    add("--model", default="digits-ctc", metavar="NAME", help="name of a model (default: digits-ctc)")
    add("--model-repository", type=Path, metavar="DIR", help="folder of models (default: the shipped ones)")
    add("--data", type=Path, default=STRIPS, metavar="DIR", help="folder of images (default: tests/data/strips)")
    add("--images", type=_count, default=256, metavar="N", help="images sent round and round (default: 256)")
    add("--workers", type=_count, default=available_threads(), metavar="N", help="worker processes (default: cores)")
    add("--callers", type=_count, nargs="+", default=[1, 16, 64], metavar="N", help="closed loops (default: 1 16 64)")
    add("--load", type=_positive, nargs="+", default=[0.2, 0.5, 0.7], metavar="SHARE", help="open loops, as shares of "
        "what the first server does (default: 0.2 0.5 0.7)")  # fmt: skip
    add("--overload", type=_positive, default=3.0, metavar="TIMES", help="of a server's own capacity (default: 3)")
    add("--deadline", type=_positive, default=1.0, metavar="S", help="how long callers wait under it (default: 1)")
    add("--cancel-share", type=_share, default=0.2, metavar="SHARE", help="of the calls (default: 0.2)")
    add("--patience", type=_positive, default=5.0, metavar="S", help="how long the others wait (default: 5)")
    add("--batch-wait", type=_positive, default=5.0, metavar="MS", help="how long servers that wait for a batch to "
        "fill may do so (default: 5)")  # fmt: skip
    add("--seconds", type=_positive, default=5.0, metavar="S", help="length of a window (default: 5)")
    add("--rounds", type=_count, default=3, metavar="N", help="rounds whose median is taken (default: 3)")
    add("--plot", type=Path, metavar="PNG", help="draw the figures")
    add("--json", action="store_true", help="print JSON instead of tables")
    return parser.parse_args(arguments)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def _positive(text: str) -> float:
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"must be above 0, not {text}")
    return number


def _share(text: str) -> float:
    number = float(text)
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, not {text}")
    return number


def choose(names: Sequence[str], versions: dict[str, str]) -> list[str]:
    """Returns the servers that are there, and says of the others that they are left out and how to have them."""
    chosen = []
    for name in dict.fromkeys(names):
        kind = KINDS[name]
        missing = [package for package in (kind.package, *kind.needs) if package not in versions]
        if missing:
            what = " and ".join(missing)
            console.print(
                f"left out: {kind.label}: no {what}: {INSTALL}", markup=False, highlight=False, soft_wrap=True
            )
        else:
            chosen.append(name)
    return chosen


def compare(comparison: Comparison, names: Sequence[str], rounds: int) -> dict[str, Measured]:
    """Measures every server in every round; one that does not start is left out."""
    measured = {name: Measured() for name in names}
    for number in range(1, rounds + 1):
        for name in list(measured):
            try:
                comparison.round(name, number, measured[name])
            except ServerError as error:
                console.print(f"left out: {error}", markup=False, highlight=False, soft_wrap=True)
                del measured[name]
    if not measured:
        raise SystemExit("there is nothing to compare")
    return measured


def main() -> int:
    """Starts each server in turn, measures, prints; exits with 1 if an answer had a wrong text."""
    arguments = parse()
    # Whoever ends this ends the server, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if arguments.plot:
        _check_plot()
    root: Path = arguments.model_repository or pretrained_root()
    recognizer = load_recognizer(ModelRepository([root]).resolve(arguments.model, None), threads=1)
    manifest = recognizer.bundle.manifest
    contents = load_strips(arguments.data, arguments.images, manifest.image)
    expected = read_here(recognizer, contents, DecodingOptions(decoder="greedy"))
    try:
        versions = installed(arguments.peer_python)
    except ServerError as error:
        raise SystemExit(str(error)) from None
    if "glyphline" not in versions:
        raise SystemExit(f"{arguments.peer_python} has no Glyphline, which every server runs: {INSTALL}")
    names = choose(arguments.servers, versions)
    setup = Setup(
        root=root.resolve(),
        bundle=recognizer.bundle.path.resolve(),
        model=manifest.name,
        workers=arguments.workers,
        batch_wait=arguments.batch_wait / 1000,
        peer_python=arguments.peer_python,
    )
    measured = compare(Comparison(arguments, setup, contents, expected), names, arguments.rounds)
    figures = [found.figures(KINDS[name].label, versions[KINDS[name].package]) for name, found in measured.items()]
    machine = describe_machine()
    what = f"{manifest.name} {manifest.version} ({manifest.head}), workers: {arguments.workers}"
    if arguments.plot:
        plot(arguments.plot, figures, f"{what}; overload: {arguments.overload:g} × capacity")
    if arguments.json:
        report = {
            "machine": machine,
            "model": {"name": manifest.name, "version": manifest.version, "head": manifest.head},
            "settings": {
                name: value for name, value in vars(arguments).items() if isinstance(value, int | float | list)
            },
            "servers": [asdict(row) for row in figures],
        }
        json.dump(report, sys.stdout, indent=2)
        print()
    else:
        titles = {
            "load": what,
            "overload": f"{arguments.overload:g} × capacity, deadline {arguments.deadline:g} s, rounds: "
            f"{arguments.rounds}",
            "cancels": f"{100 * arguments.cancel_share:g} % of calls cancelled, patience {arguments.patience:g} s",
        }
        for row in figures:
            machine[row.server] = f"{row.version} ({row.resident_bytes / 2**20:.0f} MiB)"
        show(figures, titles, machine)
    wrong = [load.wrong for row in figures for load in row.loads]
    wrong += [row.cancels.wrong + row.cancels.after_wrong for row in figures]
    return 1 if any(wrong) else 0


def _check_plot() -> None:
    """Stops at once, and not after the work, where no plot could be drawn."""
    try:
        import matplotlib.figure  # noqa: F401, PLC0415
    except ImportError as error:
        raise SystemExit(f"--plot needs matplotlib: pip install matplotlib ({error})") from None


if __name__ == "__main__":
    sys.exit(main())
