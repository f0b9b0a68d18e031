"""Glyphline beside other recognisers on the same images: how much each reads right, and what CPU time it takes.

RapidOCR (recognition alone), Tesseract (one line) and ddddocr each run in a process of their own with one thread, as
does every Glyphline model and decoder named. All are given the same image files, one image to a call, in turns, one
reader at a time, so that a busy machine disturbs all alike. CPU time is user and system time of the process, from the
bytes of an image to its text; loading the model and the first few images don't count. Ratios are formed within one run
and carry over to other machines better than milliseconds do.

Images are those of a labelled folder (labels.tsv: name, tab, text), of any other format that training reads
(docs/training.md), or of a named set as `glyphline evaluate` takes it. Peers that are not installed are left out with a
line that says how to install them; they may live in an environment of their own, which --peer-python names.

    python benchmarks/peers.py my/strips
    python benchmarks/peers.py my/lines --compare letters-and-digits --model words --plot peers.png
    python benchmarks/peers.py mnist-1-8 registers meters --data-root data --model digits digits-ctc --limit 200
    python benchmarks/peers.py my/strips --provider onnxruntime openvino --precision fp32 int8
    python benchmarks/peers.py my/strips --peers glyphline tesseract --decoder greedy beam --json > figures.json

How texts are compared: `all` of them; `digits` alone; or `letters-and-digits`, without regard to case, spaces and
punctuation, as is usual for words in scenes. Without --compare a named set says it itself, and else it is all.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

from labelled import LabelledFiles, write_files
from machine import describe_machine
from peer_figures import PeerFigures, figures_of
from peer_processes import ReaderError, ReaderPlan, ReaderProcess, Readings, read_in_turns
from peer_readers import READERS
from peer_report import plot, show
from rich.console import Console
from rich.progress import Progress
from strips import STRIPS

from glyphline.models.errors import GlyphlineError
from glyphline.training.report.comparison import COMPARISONS

LABELS = {
    "rapidocr": "RapidOCR",
    "tesseract": "Tesseract",
    "ddddocr": "ddddocr",
    "ddddocr-beta": "ddddocr (beta)",
}
USUAL_PEERS = ("glyphline", "rapidocr", "tesseract", "ddddocr")
console = Console(stderr=True)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    several: dict[str, Any] = {"nargs": "+", "action": "extend"}
    parser.add_argument("data", nargs="*", metavar="DATASET", help="labelled images (default: tests/data/strips)")
    parser.add_argument(
        "--data-root",
        type=Path,
        default=Path("data"),
        metavar="DIR",
        help="folder that named data sets are below (default: data)",
    )
    parser.add_argument("--peers", **several, choices=list(READERS), help=f"default: {' '.join(USUAL_PEERS)}")
    parser.add_argument(
        "--model", **several, metavar="NAME|FOLDER", help="Glyphline's models, by name or folder (default: digits)"
    )
    parser.add_argument("--decoder", **several, choices=["greedy", "beam"], help="default: the model's own")
    parser.add_argument(
        "--provider", **several, choices=["onnxruntime", "openvino"], help="what runs them (default: onnxruntime)"
    )
    parser.add_argument("--precision", **several, choices=["fp32", "int8"], help="default: fp32")
    parser.add_argument("--beam-width", type=_positive, default=10, metavar="N", help="width of the beam (default: 10)")
    parser.add_argument("--batch", type=_positive, default=1, metavar="N", help="images to a call of Glyphline's")
    parser.add_argument("--peer-python", default=sys.executable, metavar="FILE", help="interpreter that has the peers")
    parser.add_argument("--compare", choices=list(COMPARISONS), help="what of the texts (default: what the set says)")
    parser.add_argument(
        "--limit", type=_positive, default=300, metavar="N", help="most images, from all over a set (default: 300)"
    )
    parser.add_argument("--turn", type=_positive, default=20, metavar="N", help="images to a turn (default: 20)")
    parser.add_argument("--warm-up", type=int, default=8, metavar="N", help="images that do not count (default: 8)")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="draw accuracy against CPU time")
    parser.add_argument("--readings", type=Path, metavar="JSONL", help="write what each read in each image")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the images and their labels.tsv below this")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def make_plan(arguments: argparse.Namespace) -> list[ReaderPlan]:
    """Lists what is compared: Glyphline in every way named, and the peers."""
    plans: list[ReaderPlan] = []
    for peer in dict.fromkeys(arguments.peers or USUAL_PEERS):
        if peer == "glyphline":
            plans += _glyphline_plans(arguments)
        else:
            plans.append(ReaderPlan(peer, LABELS[peer], python=arguments.peer_python))
    return plans


def _glyphline_plans(arguments: argparse.Namespace) -> Iterator[ReaderPlan]:
    models = dict.fromkeys(arguments.model or ["digits"])
    decoders = dict.fromkeys(arguments.decoder or [None])
    providers = dict.fromkeys(arguments.provider or [None])
    precisions = dict.fromkeys(arguments.precision or [None])
    for model, decoder, provider, precision in product(models, decoders, providers, precisions):
        ways = [f"beam {arguments.beam_width}"] if decoder == "beam" else [decoder] if decoder else []
        ways += [way for way in (provider, precision) if way]
        ways += [f"batch {arguments.batch}"] if arguments.batch > 1 else []
        label = f"Glyphline {model}" + (f" ({', '.join(ways)})" if ways else "")
        settings = {"model": model, "decoder": decoder, "beam_width": arguments.beam_width}
        settings |= {"provider": provider or "onnxruntime", "precision": precision or "fp32"}
        yield ReaderPlan("glyphline", label, settings, arguments.batch)


def start(plans: Sequence[ReaderPlan], stack: ExitStack) -> list[ReaderProcess]:
    """Starts every reader that is there, and says of the others why they are left out."""
    readers = []
    for plan in plans:
        try:
            readers.append(stack.enter_context(ReaderProcess(plan)))
        except ReaderError as error:
            console.print(f"left out: {error}", markup=False, highlight=False, soft_wrap=True)
    if not readers:
        raise SystemExit("there is nothing to compare")
    return readers


def measure(
    readers: Sequence[ReaderProcess], files: LabelledFiles, arguments: argparse.Namespace
) -> tuple[list[PeerFigures], list[Readings]]:
    """Has all readers read one data set."""
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(files.name, total=len(files.paths))
        readings = read_in_turns(
            readers,
            files.paths,
            turn=arguments.turn,
            warm_up=arguments.warm_up,
            progress=lambda done: progress.update(task, completed=done),
        )
    for reader, found in zip(readers, readings, strict=True):
        if found.fault:
            console.print(f"{reader.plan.label} refused an image: {found.fault}", markup=False, highlight=False)
    names = [(reader.plan.label, reader.version, reader.model_bytes) for reader in readers]
    return figures_of(names, files.texts, readings, arguments.compare or files.compare), readings


def write_readings(
    path: Path, measured: Sequence[tuple[LabelledFiles, Sequence[Readings]]], labels: Sequence[str]
) -> None:
    """Writes a line of JSON for each image: its data set, name and text, and what each reader read."""
    with path.open("w", encoding="utf-8") as lines:
        for files, readings in measured:
            columns = zip(files.paths, files.texts, *(found.texts for found in readings), strict=True)
            for image, text, *texts in columns:
                record = {"set": files.name, "image": image.name, "text": text}
                record["read"] = dict(zip(labels, texts, strict=True))
                print(json.dumps(record, ensure_ascii=False), file=lines)


def main() -> int:
    """Writes the images, starts the readers, has them read in turns, and prints."""
    arguments = parse()
    if arguments.plot:
        _check_plot()
    with ExitStack() as stack:
        folder = arguments.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        try:
            sets = [
                write_files(name, arguments.data_root, arguments.limit, folder / f"{number}")
                for number, name in enumerate(arguments.data or [str(STRIPS)], 1)
            ]
        except GlyphlineError as error:
            raise SystemExit(str(error)) from None
        readers = start(make_plan(arguments), stack)
        try:
            measured = [(files, *measure(readers, files, arguments)) for files in sets]
        except ReaderError as error:
            raise SystemExit(str(error)) from None
    labels = [reader.plan.label for reader in readers]
    if arguments.readings:
        write_readings(arguments.readings, [(files, readings) for files, _, readings in measured], labels)
    if arguments.plot:
        plot(arguments.plot, {files.name: figures for files, figures, _ in measured})
    machine = describe_machine()
    if arguments.json:
        report = {
            "machine": machine,
            "sets": [
                {
                    "name": files.name,
                    "compare": arguments.compare or files.compare,
                    "figures": [asdict(row) for row in figures],
                }
                for files, figures, _ in measured
            ],
        }
        json.dump(report, sys.stdout, indent=2)
        print()
    else:
        for files, figures, _ in measured:
            compare = arguments.compare or files.compare
            show(f"{files.name}: {len(files.paths)} images, compared: {compare}", figures, machine)
    return 0


def _check_plot() -> None:
    """Stops at once, and not after the work, where no plot could be drawn."""
    try:
        import matplotlib.figure  # noqa: F401, PLC0415
    except ImportError as error:
        raise SystemExit(f"--plot needs matplotlib: pip install matplotlib ({error})") from None


if __name__ == "__main__":
    sys.exit(main())
