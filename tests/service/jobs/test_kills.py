"""Jobs in processes of their own that are killed at random moments."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from glyphline.service.jobs import Layout

KILLS = 8
ITEMS = 400
PROGRAM = """
import hashlib, sys
from pathlib import Path
from glyphline.models.decoding import Alternative, Reading
from glyphline.service.jobs import Item, Journal, Layout, ModelIdentity, RowFormat, run
from glyphline.service.jobs.engines import ReadChunk
from glyphline.service.jobs.items import chunks_of
from glyphline.service.jobs.pictures import FilePicture

MODEL = ModelIdentity("digits", 1, None, "greedy")

class Hashes:
    model = MODEL
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def read(self, chunks, *, in_order):
        for chunk in chunks:
            print(chunk.number, flush=True)
            texts = [hashlib.sha256(item.id.encode()).hexdigest() for item in chunk.items]
            yield ReadChunk(chunk, [Reading(text, 0.5, (Alternative(text, 0.5, 0.0),)) for text in texts])

layout = Layout.of(sys.argv[1], sys.argv[2], folder=sys.argv[2] == "csv", part_rows=60)
items = (Item(f"{number}.png", FilePicture(f"{number}.png"), "0") for number in range(int(sys.argv[3])))
with Journal(layout, {}, "resume", seconds=0) as journal:
    if not journal.finished:
        run(chunks_of(items, 5), Hashes(), journal, RowFormat(MODEL))
"""


def job(output: Path, kind: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, str(output), kind, str(ITEMS)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kill_after(process: subprocess.Popen[str], chunks: int, more: float) -> bool:
    """Kills a process some chunks and a moment on; false if it was done before."""
    assert process.stdout is not None
    for _ in range(chunks):
        process.stdout.readline()
    end = time.perf_counter() + more
    while time.perf_counter() < end:
        pass
    process.kill()
    process.communicate()
    return process.returncode != 0


def rows_of(layout: Layout) -> list[bytes]:
    files = [layout.output] if not layout.folder else layout.leftovers()
    return sorted(line for path in files for line in path.read_bytes().splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_a_job_that_is_killed_again_and_again_ends_with_the_same_rows(tmp_path: Path, kind: str) -> None:
    generator = random.Random(7)
    (tmp_path / "whole").mkdir()
    layouts = [
        Layout.of(folder / "out", kind, folder=kind == "csv", part_rows=60)  # type: ignore[arg-type]
        for folder in (tmp_path / "whole", tmp_path)
    ]
    whole, killed = layouts
    process = job(whole.output, kind)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    kills = 0
    for _ in range(KILLS):
        kills += kill_after(job(killed.output, kind), generator.randint(0, 12), generator.random() * 0.02)
    process = job(killed.output, kind)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert kills > KILLS // 2
    assert rows_of(killed) == rows_of(whole)
    assert len(rows_of(killed)) >= ITEMS
