"""What reading costs beyond the network: images per CPU second of the recogniser and of bare ONNX Runtime.

Both get the same pictures in one process with one thread: the recogniser as encoded files, which it decodes, scales,
groups by width, runs and searches; the bare session as arrays that are ready, in the very batches that the recogniser
forms. The two take turns, round after round, and change who goes first, so that a busy machine disturbs both alike.
Time is CPU time of the process; a ratio is formed inside each round and the median of the rounds is shown.

    python benchmarks/recognize.py
    python benchmarks/recognize.py --model digits-ctc --batch 1 32 --rounds 15
    python benchmarks/recognize.py --data my/strips --decoder greedy --json > figures.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from bare import BareNetwork, ready_batches
from machine import describe_machine, print_report
from rich.table import Table
from strips import STRIPS, load_strips

from glyphline.models.decoding import DecodingOptions
from glyphline.models.recognizer import Recognizer, StageTimings, load_recognizer

Decoder = Literal["greedy", "beam"]


@dataclass(frozen=True, slots=True)
class Figures:
    """What one way of calling came to; times are medians over the rounds.

    Attributes:
        batch: Images in a call.
        decoder: The search.
        images_per_cpu_second: Of the recogniser.
        milliseconds: CPU time of the recogniser an image.
        bare_images_per_cpu_second: Of ONNX Runtime alone.
        bare_milliseconds: CPU time of ONNX Runtime alone an image.
        ratio: Recogniser's CPU time over the bare one's.
        ratio_low: Least ratio of a round.
        ratio_high: Greatest ratio of a round.
        mean_batch: Images in a run of the network, on average.
        shares: Shares of the recogniser's own stages: decoding the image, inference, search.
    """

    batch: int
    decoder: Decoder
    images_per_cpu_second: float
    milliseconds: float
    bare_images_per_cpu_second: float
    bare_milliseconds: float
    ratio: float
    ratio_low: float
    ratio_high: float
    mean_batch: float
    shares: dict[str, float]


def cpu_seconds(work: Callable[[], object]) -> float:
    """Runs `work` and returns the CPU time that this process took for it."""
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(
    recognizer: Recognizer, contents: list[bytes], *, batch: int, decoder: Decoder, beam_width: int, rounds: int
) -> Figures:
    """Measures the recogniser and the bare network in turns, in calls of `batch` images."""
    calls = [contents[start : start + batch] for start in range(0, len(contents), batch)]
    ready = [one for call in calls for one in ready_batches(call, recognizer.bundle.manifest, batch, "runs")]
    bare = BareNetwork(recognizer.bundle)
    options = DecodingOptions(decoder=decoder, beam_width=beam_width)
    timings = StageTimings()

    def read() -> None:
        for call in calls:
            recognizer.recognize(call, options, max_batch=batch, timings=timings)

    def run_bare() -> None:
        for one in ready:
            bare.run(one, beam_width if decoder == "beam" else 1)

    read()
    run_bare()
    timings = StageTimings()  # the first pass warmed everything up and does not count
    reading, running = [], []
    for turn in range(rounds):
        if turn % 2:
            running.append(cpu_seconds(run_bare))
            reading.append(cpu_seconds(read))
        else:
            reading.append(cpu_seconds(read))
            running.append(cpu_seconds(run_bare))
    ratios = [ours / theirs for ours, theirs in zip(reading, running, strict=True)]
    images = len(contents)
    stages = {"decode image": timings.decode_image, "infer": timings.infer, "search": timings.search}
    whole = sum(stages.values())
    return Figures(
        batch=batch,
        decoder=decoder,
        images_per_cpu_second=images / statistics.median(reading),
        milliseconds=1000 * statistics.median(reading) / images,
        bare_images_per_cpu_second=images / statistics.median(running),
        bare_milliseconds=1000 * statistics.median(running) / images,
        ratio=statistics.median(ratios),
        ratio_low=min(ratios),
        ratio_high=max(ratios),
        mean_batch=statistics.mean(one.size for one in ready),
        shares={name: seconds / whole for name, seconds in stages.items()},
    )


def show(figures: list[Figures], title: str, machine: dict[str, str]) -> None:
    """Prints the figures as a table."""
    caption = "CPU time, medians of the rounds; ratio: recogniser / bare, and its range over the rounds"
    table = Table(title=title, caption=caption)
    table.add_column("batch", justify="right")
    table.add_column("mean run", justify="right")
    table.add_column("decoder")
    for heading in ("images / CPU s", "bare", "ms / image", "bare", "ratio", "range", *figures[0].shares):
        table.add_column(heading, justify="right")
    for row in figures:
        table.add_row(
            str(row.batch),
            f"{row.mean_batch:.1f}",
            row.decoder,
            f"{row.images_per_cpu_second:.0f}",
            f"{row.bare_images_per_cpu_second:.0f}",
            f"{row.milliseconds:.2f}",
            f"{row.bare_milliseconds:.2f}",
            f"{row.ratio:.2f}",
            f"{row.ratio_low:.2f}–{row.ratio_high:.2f}",
            *(f"{share:.0%}" for share in row.shares.values()),
        )
    print_report(table, machine)


def main() -> int:
    """Parses the command line, measures every batch size with every decoder, and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="digits", help="name of a shipped bundle or path of one (default: digits)")
    parser.add_argument("--data", type=Path, default=STRIPS, help="folder of images (default: tests/data/strips)")
    parser.add_argument("--images", type=int, default=256, help="images in a round, repeated if the folder has fewer")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 32], help="images in a call (default: 1 8 32)")
    parser.add_argument("--decoder", nargs="+", choices=["greedy", "beam"], default=["greedy", "beam"])
    parser.add_argument("--beam-width", type=int, default=10, help="width of the beam (default: 10)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds whose median is taken (default: 7)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()

    recognizer = load_recognizer(arguments.model, threads=1)
    contents = load_strips(arguments.data, arguments.images, recognizer.bundle.manifest.image)
    figures = [
        measure(
            recognizer,
            contents,
            batch=batch,
            decoder=decoder,
            beam_width=arguments.beam_width,
            rounds=arguments.rounds,
        )
        for batch in arguments.batch
        for decoder in arguments.decoder
    ]
    manifest = recognizer.bundle.manifest
    machine = describe_machine()
    if arguments.json:
        model = {"name": manifest.name, "version": manifest.version, "head": manifest.head}
        json.dump(
            {"machine": machine, "model": model, "figures": [asdict(row) for row in figures]}, sys.stdout, indent=2
        )
        print()
    else:
        show(figures, f"{manifest.name} {manifest.version} ({manifest.head}), {len(contents)} images", machine)
    return 0


if __name__ == "__main__":
    sys.exit(main())
