"""A job of 100,000 small strips through an engine, with its memory watched: does it grow?

The strips are in one tar file. Memory is that of all processes that have to do with the job, the server's or the
cluster's among them, shared pages split; it is flat if the last third of the time holds what the first held, once the
workers are there. CPU time an image is that of all of them too, starting left out: set beside another engine's it tells
what an engine costs. `--json` prints every sample. Images per second mean something where nothing else runs.

    python benchmarks/long_job.py local
    python benchmarks/long_job.py ray --images 20000 --workers 4
    python benchmarks/long_job.py server --shard strips.tar     # made if it is not there, and kept
"""

from __future__ import annotations

import argparse
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

from job_engines import ENGINES, Prepared, command_for, cpu_seconds, memory_of, prepared, rows_kept, write_shard
from machine import describe_machine
from server import family

from glyphline.models.session import available_threads

SECONDS = 2.0
STARTING = 0.15  # share of the time that is left out: workers start and load their models


def parse() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("--images", type=int, default=100_000, help="pictures of the job")
    parser.add_argument("--workers", type=int, default=available_threads(), help="processes that read")
    parser.add_argument("--shard", type=Path, help="tar file of the strips; made if it is not there")
    parser.add_argument("--json", action="store_true", help="print JSON, with every sample")
    return parser.parse_args()


@dataclass(frozen=True, slots=True)
class Sample:
    """What is seen of a job at a moment.

    Attributes:
        seconds: Since it began.
        own_bytes: Memory of the command's own process.
        all_bytes: Memory of all processes.
        cpu_seconds: CPU time of all of them so far, those that have ended included.
        rows: Rows that are safe.
    """

    seconds: float
    own_bytes: int
    all_bytes: int
    cpu_seconds: float
    rows: int


def watch(command: list[str], engine: Prepared, output: Path) -> tuple[dict[str, Any], float, list[Sample]]:
    """Runs a job and takes samples."""
    samples: list[Sample] = []
    cpu: dict[int, float] = {}
    begun = time.monotonic()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        while process.poll() is None:
            everything = engine.processes() | set(family(process.pid))
            for each in everything:
                cpu[each] = max(cpu.get(each, 0.0), cpu_seconds(each))
            memory, whole = memory_of({process.pid}), memory_of(everything)
            samples.append(Sample(time.monotonic() - begun, memory, whole, sum(cpu.values()), rows_kept(output)))
            time.sleep(SECONDS)
        assert process.stdout is not None
        summary: dict[str, Any] = json.loads(process.stdout.read())
    if process.returncode:
        raise SystemExit(f"the job ended with status {process.returncode}: {summary}")
    return summary, time.monotonic() - begun, samples[:-1]  # the last may have seen it end


def thirds(values: list[int]) -> dict[str, float]:
    """Returns the median of the first third and that of the last, in MiB."""
    third = max(1, len(values) // 3)
    first, last = (statistics.median(part) / 2**20 for part in (values[:third], values[-third:]))
    return {"first third": round(first, 1), "last third": round(last, 1)}


def main() -> int:
    """Makes the strips, runs the job and prints."""
    arguments = parse()
    with tempfile.TemporaryDirectory() as temporary:
        shard = arguments.shard or Path(temporary, "strips.tar")
        if not shard.exists():
            write_shard(shard, arguments.images)
        with prepared(arguments.engine, arguments.workers) as engine:
            output = Path(temporary, "texts.jsonl")
            command = [*command_for(shard, output, engine), "--limit", str(arguments.images)]
            summary, seconds, samples = watch(command, engine, output)
    going = [sample for sample in samples if sample.rows][int(len(samples) * STARTING) :]
    if len(going) < 3:
        raise SystemExit("the job was over before anything could be seen: give more --images")
    cpu, rows = (going[-1].cpu_seconds - going[0].cpu_seconds), (going[-1].rows - going[0].rows)
    report: dict[str, Any] = {
        "machine": describe_machine(),
        "engine": arguments.engine,
        "workers": arguments.workers,
        "images": summary["images"],
        "failed": summary["failed"],
        "seconds": round(seconds, 1),
        "images_per_second": round(summary["images"] / seconds, 1),
        "cpu_milliseconds": round(1000 * cpu / max(1, rows), 3),
        "own_mebibytes": thirds([sample.own_bytes for sample in going]),
        "all_mebibytes": thirds([sample.all_bytes for sample in going]),
    }
    if arguments.json:
        report["samples"] = [asdict(sample) for sample in samples]
        json.dump(report, sys.stdout, indent=2)
        print()
        return 0
    for name, value in report.items():
        print(f"{name}: {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
