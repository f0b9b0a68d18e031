"""What `kill_transcribe.py` and `long_job.py` share: many small strips, the engines of a job, and their processes."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image
from server import family, resident_bytes, serving
from strips import STRIPS, load_strips

from glyphline.models.image import read_image
from glyphline.models.repository import ModelRepository, pretrained_root
from glyphline.service.jobs import Layout
from glyphline.service.jobs.ledger import Progress

ENGINES = ("local", "server", "ray")
MODEL = "digits-ctc"
_WIDTH = 72  # columns of a strip: two or three digits, so that a hundred thousand take minutes


@dataclass(frozen=True, slots=True)
class Prepared:
    """An engine that jobs can use.

    Attributes:
        arguments: What the command is told of it.
        roots: Processes that belong to it, each with its descendants; none where the job starts all itself.
    """

    arguments: list[str] = field(default_factory=list)
    roots: tuple[int, ...] = ()

    def processes(self) -> set[int]:
        """Returns those of them that are running."""
        return {process for root in self.roots for process in family(root)}


def write_shard(path: Path, images: int, seed: int = 7) -> None:
    """Writes a tar file of small grey PNG files, no two alike: parts of real ones with other contrast and margins."""
    bundle = ModelRepository([pretrained_root()]).load(MODEL, None)
    height = bundle.manifest.image.height
    originals = []
    for content in load_strips(STRIPS, 128, bundle.manifest.image):
        picture = Image.fromarray(read_image(content).pixels)
        size = (max(1, round(picture.width * height / picture.height)), height)
        pixels = np.asarray(picture.resize(size, Image.Resampling.BILINEAR), dtype=np.float32)
        originals += [pixels[:, left : left + _WIDTH] for left in range(0, pixels.shape[1] - _WIDTH, _WIDTH // 2)]
    generator = random.Random(seed)
    with tarfile.open(path, "w") as archive:
        for number in range(images):
            pixels = originals[number % len(originals)] * generator.uniform(0.6, 1.0) + generator.uniform(0, 40)
            margins = ((0, 0), (generator.randint(0, 6), generator.randint(0, 6)))
            strip = np.pad(np.clip(pixels, 0, 255).astype(np.uint8), margins, mode="edge")
            buffer = io.BytesIO()
            Image.fromarray(strip).save(buffer, "PNG", compress_level=1)
            member = tarfile.TarInfo(f"{number:07d}.png")
            member.size = buffer.tell()
            buffer.seek(0)
            archive.addfile(member, buffer)


@contextmanager
def prepared(engine: str, workers: int) -> Iterator[Prepared]:
    """Starts what an engine needs beside the command, and ends it.

    Args:
        engine: `local`; `server`, which starts one; or `ray`, which starts a cluster of two nodes on this machine.
        workers: Processes that read.
    """
    if engine == "server":
        with serving(workers, ["--models", MODEL, "--start-seconds", "600", "--heartbeat-seconds", "120"]) as server:
            yield Prepared(["--server", server.target], (server.process.pid,))
        return
    if engine == "local":
        yield Prepared(["--workers", str(workers)])
        return
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster  # noqa: PLC0415  (only this engine needs it)

    before = set(family(os.getpid()))
    quick = {"worker_niceness": 0}  # Ray puts its workers behind everything else of a machine
    cluster = Cluster(initialize_head=True, head_node_args=_node() | {"_system_config": quick})
    try:
        cluster.add_node(**_node())
        cluster.wait_for_nodes()
        roots = tuple(set(family(os.getpid())) - before)
        arguments = ["--engine", "ray", "--ray-address", cluster.address, "--workers", str(workers)]
        yield Prepared(arguments, roots)
    finally:
        cluster.shutdown()


def _node() -> dict[str, object]:
    return {"num_cpus": 2, "object_store_memory": 100 * 2**20, "include_dashboard": False}


def command_for(shard: Path, output: Path, engine: Prepared) -> list[str]:
    """Builds the command of a job."""
    job = [sys.executable, "-m", "glyphline", "transcribe", str(shard), "--output", str(output)]
    return [*job, "--model", MODEL, "--json", "--quiet", *engine.arguments]


def reading_processes(engine: Prepared, job: int) -> list[int]:
    """Returns the processes that read pictures, of whatever engine."""
    readers = []
    for process in engine.processes() | set(family(job)):
        try:
            line = Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            continue
        if b"spawn_main" in line or line.startswith(b"ray::Reader"):
            readers.append(process)
    return readers


def memory_of(processes: set[int]) -> int:
    """Returns the bytes that processes hold, shared pages split between them."""
    return sum(resident_bytes(process) for process in processes)


def cpu_seconds(process: int) -> float:
    """Returns the CPU time that a process has taken so far (Linux); 0 if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rows_kept(output: Path) -> int:
    """Returns the number of rows that a job has kept so far."""
    progress = Progress()
    with contextlib.suppress(OSError):
        ledger = Layout.of(output, "jsonl", folder=False).job / "ledger.jsonl"
        for line in ledger.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                progress.apply(json.loads(line))
    return progress.tally.images
