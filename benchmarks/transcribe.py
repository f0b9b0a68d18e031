"""What a batch job costs beyond its networks: `glyphline transcribe` beside bare sessions, and beside plain loops.

A folder of many small pictures is made of the strips of --data: grey PNG files of the network's height, as strips are
when they come from a pipeline of one's own, or with --as-they-are the files themselves, photographs as they may be. The
command reads it as it is: pictures are found, decoded, read and written by its own processes. Bare ONNX Runtime does
with as many processes of one thread what is left if all that is taken away. The two take turns, round after round. What
counts is CPU time, of all processes together, since that holds on a busy machine too; images per second are only worth
something where nothing else runs. What a job takes to start is found by a job of a few pictures, and told apart.

--peers has RapidOCR and Tesseract read a sample of the same files in a plain loop of one process; they may live in an
environment of their own, which --peer-python names. --server has the job ask a running server.

    python benchmarks/transcribe.py
    python benchmarks/transcribe.py --images 100000 --model digits-ctc --rounds 1
    python benchmarks/transcribe.py --peers rapidocr tesseract --peer-python ~/peers/bin/python
    python benchmarks/transcribe.py --server localhost:50051 --json > figures.json
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bare_pool import BarePool, BareWork
from machine import describe_machine, print_report
from peer_processes import ReaderError, ReaderPlan, ReaderProcess, read_in_turns
from PIL import Image
from rich.console import Console
from rich.table import Table
from strips import STRIPS, load_strips

from glyphline.models.image import read_image
from glyphline.models.repository import ModelRepository, pretrained_root
from glyphline.models.session import available_threads
from glyphline.service.jobs import CHUNK_ITEMS

STARTING = 4 * CHUNK_ITEMS  # images for each process, in the job that tells what starting costs: all load a model
console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Job:
    """What one run of the command came to.

    Attributes:
        images: Pictures.
        seconds: By the clock.
        cpu_seconds: Of all its processes.
        peak_mebibytes: Largest memory of one of them.
    """

    images: int
    seconds: float
    cpu_seconds: float
    peak_mebibytes: float


@dataclass(frozen=True, slots=True)
class Figures:
    """One way of reading, medians over the rounds.

    Attributes:
        name: What read.
        images_per_second: By the clock, starting left out.
        cpu_milliseconds: An image, of all processes together.
        share: CPU time of bare sessions over that of this: 1 would be no cost beyond the network.
        peak_mebibytes: Largest memory of a process, where it is known.
    """

    name: str
    images_per_second: float
    cpu_milliseconds: float
    share: float
    peak_mebibytes: float | None = None


def parse() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=6000, help="pictures of a job")
    parser.add_argument("--data", type=Path, default=STRIPS, help="folder of the pictures that are copied")
    parser.add_argument("--as-they-are", action="store_true", help="copy the files, and don't make small ones of them")
    parser.add_argument("--model", default="digits-ctc", help="a shipped model")
    parser.add_argument("--workers", type=int, default=available_threads(), help="processes")
    parser.add_argument(
        "--batching",
        choices=("buckets", "runs"),
        default="buckets",
        help="batches of bare sessions: of 16 columns of width, as is usual, or the least costly runs there are",
    )
    parser.add_argument("--rounds", type=int, default=3, help="turns that each way has")
    parser.add_argument("--seconds", type=float, default=5.0, help="of bare sessions before and after each job")
    parser.add_argument("--server", help="HOST:PORT of a running server that the job asks")
    parser.add_argument("--peers", nargs="*", default=[], choices=["rapidocr", "tesseract"], help="plain loops")
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter that has the peers")
    parser.add_argument("--peer-images", type=int, default=200, help="pictures that each peer reads")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


def make_folder(folder: Path, contents: list[bytes], images: int) -> Path:
    """Fills a folder with files of many names and few contents."""
    scans = folder / "scans"
    for number in range(images):
        original = folder / f"original-{number % len(contents)}.png"
        if number < len(contents):
            original.write_bytes(contents[number])
        path = scans / f"{number // 1000:04d}" / f"{number:07d}.png"
        if number % 1000 == 0:
            path.parent.mkdir(parents=True)
        try:
            os.link(original, path)
        except OSError:  # no links here, or too many
            path.write_bytes(contents[number % len(contents)])
    return scans


def small(content: bytes, height: int) -> bytes:
    """Makes a grey PNG file of a height out of a picture."""
    picture = Image.fromarray(read_image(content).pixels)
    width = max(1, round(picture.width * height / picture.height))
    buffer = io.BytesIO()
    picture.resize((width, height), Image.Resampling.BILINEAR).save(buffer, "PNG")
    return buffer.getvalue()


def run_job(scans: Path, output: Path, arguments: argparse.Namespace, limit: int | None = None) -> Job:
    """Runs the command and measures it."""
    command = [sys.executable, "-m", "glyphline", "transcribe", str(scans), "-o", str(output), "--overwrite", "--json"]
    command += ["--quiet", "--model", arguments.model]
    command += ["--server", arguments.server] if arguments.server else ["--workers", str(arguments.workers)]
    command += [] if limit is None else ["--limit", str(limit)]
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert process.stdout is not None
    summary: dict[str, Any] = json.loads(process.stdout.read())
    _, status, usage = os.wait4(process.pid, 0)  # with those of its processes that it waited for
    seconds = time.perf_counter() - begun
    if status:
        raise SystemExit(f"the job ended with status {status}: {summary}")
    return Job(summary["images"], seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def mean_of(before: BareWork, after: BareWork) -> BareWork:
    """Takes the mean of what was measured before a job and after it: how busy the machine is changes meanwhile."""
    return BareWork(
        images_per_second=(before.images_per_second + after.images_per_second) / 2,
        cpu_milliseconds=(before.cpu_milliseconds + after.cpu_milliseconds) / 2,
    )


def figures_of(jobs: list[Job], starts: list[Job], bare: list[BareWork], name: str) -> Figures:
    """Takes the start off and forms the ratios within each round."""
    seconds, cpu, shares = [], [], []
    for job, start, work in zip(jobs, starts, bare, strict=True):
        images = job.images - start.images
        seconds.append((job.seconds - start.seconds) / images)
        cpu.append(1000 * (job.cpu_seconds - start.cpu_seconds) / images)
        shares.append(work.cpu_milliseconds / cpu[-1])
    peak = max(job.peak_mebibytes for job in jobs)
    return Figures(name, 1 / statistics.median(seconds), statistics.median(cpu), statistics.median(shares), peak)


def measure_peers(paths: list[Path], arguments: argparse.Namespace, bare: float) -> list[Figures]:
    """Has peers read files one after the other; one that is not installed is left out with a line."""
    found = []
    for name in arguments.peers:
        try:
            with ReaderProcess(ReaderPlan(name, name, python=arguments.peer_python)) as reader:
                (readings,) = read_in_turns([reader], paths, turn=50, warm_up=5)
        except ReaderError as error:
            console.print(str(error), markup=False, highlight=False)
            continue
        images, cpu, seconds = (sum(turn[place] for turn in readings.turns) for place in range(3))
        found.append(Figures(f"{name}, a loop", images / seconds, 1000 * cpu / images, bare * images / (1000 * cpu)))
    return found


def show(figures: list[Figures], start: Job, arguments: argparse.Namespace) -> None:
    """Prints a table."""
    table = Table(title=f"{arguments.images:,} images, {arguments.model}, {arguments.workers} processes")
    for heading in ("", "images/s", "CPU ms an image", "of bare sessions", "peak MiB"):
        table.add_column(heading, justify="left" if heading == "" else "right")
    for row in figures:
        peak = "" if row.peak_mebibytes is None else f"{row.peak_mebibytes:,.0f}"
        table.add_row(
            row.name, f"{row.images_per_second:,.1f}", f"{row.cpu_milliseconds:.2f}", f"{row.share:.0%}", peak
        )
    print_report(table, describe_machine())
    print(f"starting, and reading {start.images} images: {start.seconds:.1f} s, {start.cpu_seconds:.1f} s of CPU time")


def main() -> int:
    """Makes the folder, has everything take turns, and prints."""
    arguments = parse()
    bundle = ModelRepository([pretrained_root()]).load(arguments.model, None)
    contents = load_strips(arguments.data, 128, bundle.manifest.image)
    if not arguments.as_they_are:
        contents = [small(content, bundle.manifest.image.height) for content in contents]
    jobs: list[Job] = []
    starts: list[Job] = []
    works: list[BareWork] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        scans = make_folder(folder, contents, arguments.images)
        with BarePool(arguments.workers, bundle.path, contents, [32], arguments.batching) as pool:
            for number in range(arguments.rounds):
                console.print(f"round {number + 1} of {arguments.rounds}")
                starts.append(run_job(scans, folder / "start.jsonl", arguments, STARTING * arguments.workers))
                before = pool.window(arguments.workers, 32, 1, arguments.seconds)
                jobs.append(run_job(scans, folder / "texts.jsonl", arguments))
                works.append(mean_of(before, pool.window(arguments.workers, 32, 1, arguments.seconds)))
        bare = statistics.median(work.cpu_milliseconds for work in works)
        rate = statistics.median(work.images_per_second for work in works)
        name = "transcribe --server (the server's time is not in it)" if arguments.server else "transcribe"
        figures = [Figures("bare sessions", rate, bare, 1.0), figures_of(jobs, starts, works, name)]
        figures += measure_peers(sorted(scans.rglob("*.png"))[: arguments.peer_images], arguments, bare)
    if arguments.json:
        report = {
            "machine": describe_machine(),
            "start": asdict(starts[-1]),
            "figures": [asdict(row) for row in figures],
        }
        json.dump(report, sys.stdout, indent=2)
        print()
    else:
        show(figures, starts[-1], arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
