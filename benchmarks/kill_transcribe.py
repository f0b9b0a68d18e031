"""Kills a job with `kill -9` at random moments and resumes it each time: are its rows those of one that nobody killed?

The job is run once to its end, and its time is taken. Then the same is killed --kills times, after random times so long
that the kills are spread over it, and every other time one of the processes that read is killed a moment before. At
last it may end. Both outputs are compared, their lines sorted. A server batches pictures as they come, so confidences
may differ in the sixth digit; lines that differ in nothing else are counted apart.

    python benchmarks/kill_transcribe.py local
    python benchmarks/kill_transcribe.py server --images 20000
    python benchmarks/kill_transcribe.py ray --kills 20 --seed 3
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from job_engines import ENGINES, Prepared, command_for, prepared, reading_processes, rows_kept, write_shard
from machine import describe_machine

from glyphline.models.session import available_threads

MOMENT = 0.5  # seconds between the death of a process that reads and that of the job
TOLERANCE = 2e-6  # of a confidence, where a server reads


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a job that was killed.

    Attributes:
        kills: Times that it was killed while it ran.
        early: Of these, times before it had kept its first new row.
        readers_killed: Processes that were killed while they read for it.
        kept: Rows that were safe after each kill.
        rows: Lines of the output.
        repeated: Ids that come more than once.
        lost: Ids of the uninterrupted job that are missing.
        identical: Whether all lines are the same to the byte.
        nearly: Lines that differ, but only by a millionth of a confidence.
        different: Lines that differ in more.
    """

    kills: int
    early: int
    readers_killed: int
    kept: list[int]
    rows: int
    repeated: int
    lost: int
    identical: bool
    nearly: int
    different: int


def parse() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("--kills", type=int, default=20, help="times that the job is killed")
    parser.add_argument("--images", type=int, default=20_000, help="pictures of the job")
    parser.add_argument("--workers", type=int, default=available_threads(), help="processes that read")
    parser.add_argument("--shard", type=Path, help="tar file of the strips; made if it is not there")
    parser.add_argument("--seed", type=int, default=7, help="of the random moments")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


def start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Starts a job."""
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


def kill_once(command: Sequence[str], engine: Prepared, after: float, reader: random.Random | None) -> tuple[bool, int]:
    """Runs a job for a while and kills it.

    Args:
        command: The job.
        engine: What it uses.
        after: Seconds until it is killed.
        reader: Chooses a process that reads, to be killed before; None for none.

    Returns:
        Whether it still ran, and how many readers were killed.
    """
    killed = 0
    process = start(command)
    try:
        if reader is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, after - MOMENT))
            if process.poll() is None and (found := sorted(reading_processes(engine, process.pid))):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(reader.choice(found), signal.SIGKILL)
                    killed = 1
            after = MOMENT
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(after)
    finally:
        process.kill()
        process.wait()
    return process.returncode == -signal.SIGKILL, killed


def finish(command: Sequence[str], output: Path) -> tuple[float, float]:
    """Lets a job end.

    Returns:
        Seconds until its first rows were safe, and seconds in all.
    """
    begun = time.monotonic()
    process = start(command)
    first = 0.0
    while process.poll() is None:
        if not first and rows_kept(output):
            first = time.monotonic() - begun
        time.sleep(0.05)
    if process.returncode:
        raise SystemExit(f"the job ended with status {process.returncode}: {' '.join(command)}")
    seconds = time.monotonic() - begun
    return first or seconds, seconds


def longest(first: float, seconds: float, kills: int) -> float:
    """Returns the longest time to wait, so that what random parts of it achieve adds up to most of the job."""
    share = 1.6 * (seconds - first) / kills
    return first + (share + math.sqrt(share * (share + 4 * first))) / 2


def compare(whole: Path, killed: Path) -> dict[str, Any]:
    """Compares two outputs, line by line."""
    expected, found = (sorted(path.read_bytes().splitlines()) for path in (whole, killed))
    rows = {row["id"]: row for row in map(json.loads, expected)}
    counts: Counter[str] = Counter()
    nearly = different = 0
    for row in map(json.loads, found):
        counts[row["id"]] += 1
        other = rows.get(row["id"])
        if row == other:
            continue
        same_but = other is not None and {**row, "confidence": other["confidence"]} == other
        close = same_but and abs(row["confidence"] - rows[row["id"]]["confidence"]) <= TOLERANCE
        nearly, different = nearly + close, different + (not close)
    return {
        "rows": len(found),
        "repeated": sum(count > 1 for count in counts.values()),
        "lost": len(rows.keys() - counts.keys()),
        "identical": expected == found,
        "nearly": nearly,
        "different": different,
    }


def main() -> int:
    """Runs the job whole and killed, compares, and prints."""
    arguments = parse()
    generator = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shard = arguments.shard or folder / "strips.tar"
        if not shard.exists():
            write_shard(shard, arguments.images)
        whole, killed = folder / "whole.jsonl", folder / "killed.jsonl"
        with prepared(arguments.engine, arguments.workers) as engine:
            limit = ["--limit", str(arguments.images)]
            first, seconds = finish([*command_for(shard, whole, engine), *limit], whole)
            most = longest(first, seconds, arguments.kills)
            command = [*command_for(shard, killed, engine), *limit, "--resume"]
            kills = early = readers = before = 0
            kept: list[int] = []
            for number in range(arguments.kills):
                chooser = generator if number % 2 else None
                died, more = kill_once(command, engine, generator.uniform(0, most), chooser)
                readers += more
                if died:
                    kills += 1
                    kept.append(rows_kept(killed))
                    early += kept[-1] == before
                    before = kept[-1]
            finish(command, killed)
        outcome = Outcome(kills, early, readers, kept, **compare(whole, killed))
    report = {"machine": describe_machine(), "engine": arguments.engine, "seconds": round(seconds, 1)}
    report |= asdict(outcome)
    if arguments.json:
        json.dump(report, sys.stdout, indent=2)
        print()
    else:
        for name, value in report.items():
            print(f"{name}: {value}")
    return 0 if not (outcome.lost or outcome.repeated or outcome.different) else 1


if __name__ == "__main__":
    sys.exit(main())
