"""A job of 100,000 small strips through an engine, with its memory watched: does it grow?

The strips are in one tar file. Memory is that of all processes that have to do with the job, the server's or the
cluster's among them, shared pages split; it is flat if the last third of the time holds what the first held, once the
workers are there. `--json` prints every sample too. Images per second mean something where nothing else runs.

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
from pathlib import Path
from typing import Any

from job_engines import ENGINES, Prepared, command_for, memory_of, prepared, write_shard
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


def watch(command: list[str], engine: Prepared) -> tuple[dict[str, Any], float, list[tuple[float, int, int]]]:
    """Runs a job and takes samples: seconds, bytes of the command's own process, bytes of all processes."""
    samples: list[tuple[float, int, int]] = []
    begun = time.monotonic()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        while process.poll() is None:
            everything = engine.processes() | set(family(process.pid))
            samples.append((time.monotonic() - begun, memory_of({process.pid}), memory_of(everything)))
            time.sleep(SECONDS)
        assert process.stdout is not None
        summary: dict[str, Any] = json.loads(process.stdout.read())
    if process.returncode:
        raise SystemExit(f"the job ended with status {process.returncode}: {summary}")
    return summary, time.monotonic() - begun, samples[:-1]  # the last may have seen it end


def thirds(samples: list[tuple[float, int, int]], which: int) -> tuple[float, float]:
    """Returns the median of the first third and that of the last, in MiB."""
    values = [sample[which] / 2**20 for sample in samples[int(len(samples) * STARTING) :]]
    third = max(1, len(values) // 3)
    return statistics.median(values[:third]), statistics.median(values[-third:])


def main() -> int:
    """Makes the strips, runs the job and prints."""
    arguments = parse()
    with tempfile.TemporaryDirectory() as temporary:
        shard = arguments.shard or Path(temporary, "strips.tar")
        if not shard.exists():
            write_shard(shard, arguments.images)
        with prepared(arguments.engine, arguments.workers) as engine:
            summary, seconds, samples = watch(command_for(shard, Path(temporary, "texts.jsonl"), engine), engine)
    own, everything = thirds(samples, 1), thirds(samples, 2)
    report: dict[str, Any] = {
        "machine": describe_machine(),
        "engine": arguments.engine,
        "workers": arguments.workers,
        "images": summary["images"],
        "failed": summary["failed"],
        "seconds": round(seconds, 1),
        "images_per_second": round(summary["images"] / seconds, 1),
        "own_mebibytes": {"first third": round(own[0], 1), "last third": round(own[1], 1)},
        "all_mebibytes": {"first third": round(everything[0], 1), "last third": round(everything[1], 1)},
    }
    if arguments.json:
        report["samples"] = samples
        json.dump(report, sys.stdout, indent=2)
        print()
        return 0
    for name, value in report.items():
        print(f"{name}: {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
