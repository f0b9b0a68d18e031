"""What runs a bundle fastest on this CPU: ONNX Runtime, an int8 variant, OpenVINO; and what each changes in the text.

All read the same encoded files in one process with one thread. They take turns, round after round, so that a busy
machine disturbs all alike; time is CPU time of the process, and a ratio is formed inside each round and the median
shown. The first pass, in which OpenVINO makes its kernels, does not count.

    python benchmarks/providers.py --model models/mine/1 --data my/strips
    python benchmarks/providers.py --model digits-ctc --images 64 --batch 1 32 --rounds 5 --json > figures.json

"Same text" is the share of images that read as they do with ONNX Runtime in fp32, the confidence the greatest
difference of one. For a CTC head the greatest difference of a frame's probability is told too, and that of the
log-probability of its best symbol.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from bare import ready_batches
from machine import describe_machine, print_report
from numpy.typing import NDArray
from recognize import cpu_seconds
from rich.table import Table
from strips import STRIPS, load_strips

from glyphline.models.bundle import Bundle
from glyphline.models.decoding import Reading
from glyphline.models.errors import DeviceError
from glyphline.models.manifest import Precision
from glyphline.models.recognizer import Recognizer, load_recognizer
from glyphline.models.session import Provider, open_session

WAYS: tuple[tuple[Provider, Precision], ...] = (
    ("onnxruntime", "fp32"),
    ("onnxruntime", "int8"),
    ("openvino", "fp32"),
    ("openvino", "int8"),
)


@dataclass(frozen=True, slots=True)
class Figures:
    """What one way of running came to; times are medians over the rounds.

    Attributes:
        provider: What ran the networks, and with which numbers.
        batch: Images in a call.
        images_per_cpu_second: Speed.
        ratio: Speed over that of ONNX Runtime in fp32.
        same_text: Share of images that read alike.
        confidence: Greatest difference of a confidence where the text is the same.
        probability: Greatest difference of a frame's probability; None for heads other than CTC.
        log_probability: Greatest difference of the log-probability of a frame's best symbol; None likewise.
    """

    provider: str
    batch: int
    images_per_cpu_second: float
    ratio: float
    same_text: float
    confidence: float
    probability: float | None
    log_probability: float | None


def open_ways(bundle: Bundle) -> dict[tuple[Provider, Precision], Recognizer]:
    """Opens every way of running that there is, and says which is not."""
    ways = {}
    for provider, precision in WAYS:
        if precision != "fp32" and precision not in bundle.manifest.variants:
            continue
        try:
            ways[provider, precision] = Recognizer.load(bundle, provider=provider, precision=precision)
        except DeviceError as error:
            print(f"{provider}: {error}", file=sys.stderr)
    return ways


def read(recognizer: Recognizer, contents: list[bytes], batch: int) -> list[Reading]:
    """Reads images in calls of `batch`."""
    outcomes = []
    for start in range(0, len(contents), batch):
        outcomes += recognizer.recognize(contents[start : start + batch], max_batch=batch)
    return [outcome for outcome in outcomes if isinstance(outcome, Reading)]


def frame_differences(
    bundle: Bundle, provider: Provider, precision: Precision, contents: list[bytes], batch: int
) -> tuple[float, float] | tuple[None, None]:
    """Compares a CTC head's frames with those of ONNX Runtime in fp32."""
    if bundle.manifest.head != "ctc":
        return None, None
    plain = open_session(bundle.file(bundle.manifest.graphs["network"]))
    other = open_session(bundle.file(bundle.graphs(precision)["network"]), provider=provider)
    probability = logarithm = 0.0
    for one in ready_batches(contents, bundle.manifest, batch, "buckets"):
        feeds: dict[str, NDArray[Any]] = {"images": one.images, "widths": one.widths}
        outputs = ["log_probabilities", "lengths"]
        expected, lengths = plain.run(outputs, feeds)
        found, _ = other.run(outputs, feeds)
        valid = np.arange(expected.shape[1])[None, :] < lengths[:, None]
        probability = max(probability, float(np.abs(np.exp(found) - np.exp(expected)).max(axis=2)[valid].max()))
        best = expected.argmax(axis=2)[:, :, None]
        gaps = np.abs(np.take_along_axis(found, best, 2) - np.take_along_axis(expected, best, 2))[:, :, 0]
        logarithm = max(logarithm, float(gaps[valid].max()))
    return probability, logarithm


def measure(
    ways: dict[tuple[Provider, Precision], Recognizer], contents: list[bytes], batch: int, rounds: int
) -> list[Figures]:
    """Measures all ways in turns."""
    readings = {way: read(recognizer, contents, batch) for way, recognizer in ways.items()}
    seconds: dict[tuple[Provider, Precision], list[float]] = {way: [] for way in ways}
    for turn in range(rounds):
        for way in list(ways) if turn % 2 else list(reversed(ways)):
            recognizer = ways[way]
            seconds[way].append(cpu_seconds(partial(read, recognizer, contents, batch)))
    base: tuple[Provider, Precision] = ("onnxruntime", "fp32")
    figures = []
    for way, recognizer in ways.items():
        pairs = list(zip(readings[base], readings[way], strict=True))
        same = [(one, other) for one, other in pairs if one.text == other.text]
        probability, logarithm = frame_differences(recognizer.bundle, *way, contents[:64], batch)
        figures.append(
            Figures(
                provider=recognizer.provider,
                batch=batch,
                images_per_cpu_second=len(contents) / statistics.median(seconds[way]),
                ratio=statistics.median(a / b for a, b in zip(seconds[base], seconds[way], strict=True)),
                same_text=len(same) / len(pairs),
                confidence=max((abs(one.confidence - other.confidence) for one, other in same), default=0.0),
                probability=probability,
                log_probability=logarithm,
            )
        )
    return figures


def show(figures: list[Figures], title: str, machine: dict[str, str]) -> None:
    """Prints the figures as a table."""
    table = Table(title=title, caption="CPU time, medians of the rounds; differences from ONNX Runtime in fp32")
    table.add_column("runs on")
    for heading in ("batch", "images / CPU s", "ratio", "same text", "confidence", "probability", "log-probability"):
        table.add_column(heading, justify="right")
    for row in figures:
        differences = (row.confidence, row.probability, row.log_probability)
        table.add_row(
            row.provider,
            str(row.batch),
            f"{row.images_per_cpu_second:.0f}",
            f"{row.ratio:.2f}",
            f"{row.same_text:.2%}",
            *("" if value is None else f"{value:.2g}" for value in differences),
        )
    print_report(table, machine)


def main() -> int:
    """Parses the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="digits-ctc", help="name of a shipped bundle or path of one")
    parser.add_argument("--data", type=Path, default=STRIPS, help="folder of images (default: tests/data/strips)")
    parser.add_argument("--images", type=int, default=256, help="images in a round, repeated if the folder has fewer")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 32], help="images in a call (default: 1 32)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds whose median is taken (default: 5)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()

    bundle = load_recognizer(arguments.model, threads=1).bundle
    ways = open_ways(bundle)
    contents = load_strips(arguments.data, arguments.images, bundle.manifest.image)
    figures = [row for batch in arguments.batch for row in measure(ways, contents, batch, arguments.rounds)]
    manifest = bundle.manifest
    machine = describe_machine()
    if arguments.json:
        model = {"name": manifest.name, "version": manifest.version, "head": manifest.head}
        rows = [asdict(row) for row in figures]
        json.dump({"machine": machine, "model": model, "figures": rows}, sys.stdout, indent=2)
        print()
    else:
        show(figures, f"{manifest.name} {manifest.version} ({manifest.head}), {len(contents)} images", machine)
    return 0


if __name__ == "__main__":
    sys.exit(main())
