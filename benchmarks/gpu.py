"""Checks that Glyphline is right on a GPU, and measures how fast, in under five minutes. No data are needed.

    python benchmarks/gpu.py                     on the first GPU: everything
    python benchmarks/gpu.py --device cuda:1 --only reading speed --json > figures.json
    python benchmarks/gpu.py --device cpu        the same in small, to see that this script works

What is checked (`--only` takes some of it):

- reading: every shipped model reads real strips as the CPU does, greedily and by beam search; strips of every width,
  alone and in company; a device that is not there is refused. Texts have to be the same, confidences to 0.005 and the
  log-probability of a text to 0.01 and a tenth of that for each symbol besides; texts that score alike within that may
  change places. TensorRT is allowed ten times as much.
- memory: once every shape has been run, 2,000 random batches take no more than 64 MiB.
- serving: a server with its workers on the device, called over gRPC: every answer, the provider that it names, its
  metrics, its rate.
- speed: images a second by batch and width: arrays that come and go at every run, tensors that stay on the device, the
  loop over a decoder's step and the graph of all steps, TF32, with `--tensorrt` TensorRT, and the CPU beside them.
- training: a tiny network in fp16 and bf16; its loss falls, and it goes on from where it was stopped. Two processes by
  NCCL where there are two GPUs. Left out where torch is not installed or finds no GPU.

Exit codes: 0 all that was checked holds; 1 something does not; 2 a wrong option; 3 the device is not there.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict

from gpu_figures import FULL, SMALL, Check, Speed, describe_device
from gpu_reading import check_memory, check_reading, check_refusals, check_tensorrt
from gpu_serving import check_serving
from gpu_speed import measure, measure_whole
from gpu_training import check_training
from machine import describe_machine, print_report
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from glyphline.models.devices import gpu_number
from glyphline.models.errors import DeviceError
from glyphline.models.recognizer import Recognizer
from glyphline.models.repository import ModelRepository, pretrained_root
from glyphline.models.session import available_threads

PARTS = ("reading", "memory", "serving", "speed", "training")
NO_DEVICE = 3
INSTALL = """
A GPU is used by ONNX Runtime for CUDA, which must be the only ONNX Runtime that is installed:

    pip uninstall -y onnxruntime && pip install '.[gpu]'

It needs NVIDIA's driver, too: `nvidia-smi` has to list the GPU. `--device cpu` runs this script in small without one.
"""


def run(arguments: argparse.Namespace) -> tuple[list[Check], list[Speed]]:
    """Does all that was asked for."""
    device, on_gpu = arguments.device, gpu_number(arguments.device) is not None
    scale = FULL if on_gpu else SMALL
    shipped = ModelRepository([pretrained_root()])
    threads = available_threads() if on_gpu else 1
    cores = "one thread" if threads == 1 else f"{threads} threads"
    checks: list[Check] = []
    speeds: list[Speed] = []
    wanted = PARTS if arguments.only is None else arguments.only
    plain = {name: Recognizer.load(shipped.load(name), threads=threads) for name in arguments.models or shipped.names()}
    fast = {
        name: Recognizer.load(one.bundle, device=device, threads=threads) if on_gpu else one
        for name, one in plain.items()
    }
    if "reading" in wanted:
        tell("reading")
        for name, one in fast.items():
            # On the CPU, too, it is another recogniser that is compared with, else nothing would be.
            other = plain[name] if on_gpu else Recognizer.load(one.bundle)
            checks += check_reading(one, other, scale)
            if on_gpu and arguments.tensorrt:
                checks.append(check_tensorrt(other, device, scale))
        checks += check_refusals(next(iter(plain.values())).bundle, device)
    if "memory" in wanted:
        for one in fast.values():
            tell(f"memory, {one.bundle.manifest.name}")
            checks.append(check_memory(one, device, scale))
    if "serving" in wanted:
        tell("serving")
        for workers in (1, 2) if on_gpu else (1,):
            found, rates = check_serving(list(fast.values()), device, workers, scale)
            checks += found
            speeds += rates
    if "speed" in wanted:
        for name, one in fast.items():
            tell(f"speed, {name}")
            speeds += measure(one, device, scale, tensorrt=arguments.tensorrt)
            speeds.append(measure_whole(one, f"files, {cores}", scale))
            if on_gpu:
                speeds.append(measure_whole(plain[name], f"files, CPU, {cores}", scale))
    if "training" in wanted:
        tell("training")
        checks += check_training(device)
    return checks, speeds


def tell(part: str) -> None:
    """Says what comes next, where nothing else is printed."""
    Console(stderr=True).print(f"{part} …", highlight=False)


def show(checks: Sequence[Check], speeds: Sequence[Speed], title: str, machine: dict[str, str]) -> None:
    """Prints the findings as tables."""
    words = {True: "holds", False: "FAILS", None: "left out"}
    found = Table("check", "", "", title=title)
    for check in checks:
        found.add_row(check.name, words[check.passed], escape(check.detail))  # `glyphline[gpu]` is no markup
    fast = Table("model", "way", "batch", "columns", "images / s", title="images a second, by the clock")
    for speed in speeds:
        width = str(speed.width or "")
        fast.add_row(speed.model, speed.way, str(speed.batch), width, f"{speed.images_per_second:,.0f}")
    if speeds:
        Console(width=None if Console().is_terminal else 160).print(fast)
    print_report(found, machine)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 and so on, or cpu (default: cuda)")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="some of the checks (default: all)")
    parser.add_argument("--models", nargs="+", metavar="NAME", help="shipped models (default: all)")
    parser.add_argument("--tensorrt", action="store_true", help="TensorRT, too: making its engines takes minutes more")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parsed = parser.parse_args(arguments)
    try:
        gpu_number(parsed.device)
    except DeviceError as error:
        parser.error(f"--device: {error}")
    return parsed


def main() -> int:
    """Parses the command line, checks, measures and prints."""
    arguments = parse()
    begun = time.monotonic()
    try:
        checks, speeds = run(arguments)
    except DeviceError as error:
        print(f"{error}\n{INSTALL}", file=sys.stderr)
        return NO_DEVICE
    machine = describe_machine() | {
        "device": describe_device(arguments.device),
        "minutes": f"{(time.monotonic() - begun) / 60:.1f}",
    }
    if arguments.json:
        report = {
            "machine": machine,
            "checks": [asdict(check) for check in checks],
            "speeds": [asdict(speed) for speed in speeds],
        }
        json.dump(report, sys.stdout, indent=2)
        print()
    else:
        show(checks, speeds, f"Glyphline on {arguments.device}", machine)
    return 1 if any(check.passed is False for check in checks) else 0


if __name__ == "__main__":
    sys.exit(main())
