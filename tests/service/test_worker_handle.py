"""A worker process as seen from outside: how it is begun, what it takes, and how it ends."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from glyphline.service.client import Client, Result

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess

Start = Callable[..., "ServerProcess"]


@pytest.mark.parametrize(
    ("end", "told"), [("os._exit(7)", "with exit code 7"), ("os.kill(os.getpid(), 6)", "by signal SIGABRT")]
)
def test_how_a_worker_ended_that_cannot_start_is_told(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, told: str
) -> None:
    spawned = 'any("multiprocessing.spawn" in part for part in sys.orig_argv)'
    (tmp_path / "sitecustomize.py").write_text(f"import os, sys\nif {spawned}:\n    {end}\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])))
    server = start(models="digits")
    line = server.wait_for_line("cannot start")
    assert line["message"].endswith(f"worker 0 was lost while it loaded its models: it ended {told}")
    assert server.wait() == 1


def test_workers_end_with_a_front_process_that_is_killed(
    start: Start, until: Callable[[Callable[[], bool], str], None]
) -> None:
    server = start(workers=2)
    pids = server.worker_pids
    server.process.kill()
    server.wait()

    def gone() -> bool:
        return not any(_runs(pid) for pid in pids)

    until(gone, "workers end")


def _runs(pid: int) -> bool:
    """Tells whether a process runs; one that nobody has waited for yet does not."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_complaint_30_a_worker_has_one_thread_for_its_networks(server: ServerProcess, client: Client) -> None:
    """However many cores the machine has, a worker computes on one; the others of its few threads wait."""
    client.list_models()
    for pid in server.worker_pids:
        assert len(list(Path(f"/proc/{pid}/task").iterdir())) <= 4


def test_complaint_34_only_the_front_process_has_grpc(server: ServerProcess, client: Client) -> None:
    """There is one event loop of gRPC in one process: workers do not as much as load it."""
    client.list_models()
    assert "cygrpc" in Path(f"/proc/{server.process.pid}/maps").read_text()
    for pid in server.worker_pids:
        maps = Path(f"/proc/{pid}/maps").read_text()
        assert "onnxruntime" in maps
        assert "cygrpc" not in maps


def test_complaint_35_workers_are_spawned_and_never_forked(server: ServerProcess, client: Client) -> None:
    """A forked copy of a process with threads and gRPC hangs sooner or later."""
    client.list_models()
    for pid in server.worker_pids:
        assert b"multiprocessing.spawn" in Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.slow
def test_complaint_29_memory_stays_as_it_is_whatever_is_read(
    server: ServerProcess, client: Client, images: list[bytes], encode: Callable[..., bytes]
) -> None:
    """Strips of a thousand shapes leave a worker as large as the first few hundred made it."""
    random = np.random.default_rng(29)
    pictures = [Image.open(io.BytesIO(image)).convert("L") for image in images]

    def vary(picture: Image.Image) -> bytes:
        width = int(picture.width * random.uniform(0.4, 2.5))
        return encode(picture.resize((max(8, width), int(random.integers(24, 64)))))

    sizes = []
    for _ in range(16):
        order = random.choice(len(pictures), 48)
        outcomes = client.recognize_many([vary(pictures[index]) for index in order])
        assert all(isinstance(outcome, Result) for outcome in outcomes)
        sizes.append(sum(_resident_bytes(pid) for pid in server.worker_pids))
    print("MiB after every round:", [round(size / 2**20) for size in sizes])
    assert np.median(sizes[-4:]) - np.median(sizes[6:10]) < 12 * 2**20  # two workers, 288 strips


def _resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
