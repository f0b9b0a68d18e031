"""A Ray cluster of two nodes on this machine: workers and drivers that are killed, and rows that are the same."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from glyphline.cli.exit_codes import ExitCode, exit_code_of
from glyphline.models.image import ImageLimits
from glyphline.models.repository import ModelRepository, pretrained_root
from glyphline.service.jobs import (
    ClusterError,
    Inputs,
    Item,
    JobError,
    Journal,
    Layout,
    LocalEngine,
    ModelIdentity,
    RowFormat,
    WorkerSettings,
    run,
)
from glyphline.service.jobs.items import Chunk, chunks_of
from glyphline.service.jobs.pictures import FilePicture
from glyphline.service.jobs.rows import Outcome, RowError

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# What Ray leaves to the garbage collector, sockets and processes of its own, is none of these tests' business.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed: the extra `ray`"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray", "ignore::FutureWarning:ray"),
]
DRIVER = """
import sys
from pathlib import Path
from glyphline.service.jobs import Inputs, Journal, Layout, ModelIdentity, RowFormat, WorkerSettings, run
from glyphline.service.jobs.engines.ray import RayEngine, connected

address, bundle, scans, output = sys.argv[1:]
model = ModelIdentity("digits-ctc", 3, None, "greedy")
layout = Layout.of(output, "jsonl", folder=False)
with connected(address), Journal(layout, {}, "resume", seconds=0) as journal:
    if not journal.finished:
        engine = RayEngine(WorkerSettings(Path(bundle)), model, 2)
        with engine:
            run(Inputs((scans,)).chunks(4), engine, journal, RowFormat(model), watch=lambda _: print(1, flush=True))
"""


class Poison:
    """A picture whose arrival kills the worker, as a fault in a native library would."""

    source = "killer.png"

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (70,)

    def place(self) -> dict[str, Any]:
        return {}

    def read(self, _: ImageLimits) -> bytes:
        return b""


def descendants() -> set[int]:
    children: dict[int, set[int]] = defaultdict(set)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            children[int(fields[1])].add(int(stat.parent.name))
    found = [os.getpid()]
    for process in found:
        found += children[process]
    return set(found[1:])


def readers() -> list[int]:
    """The workers of the cluster that read."""
    lines = ((process, Path(f"/proc/{process}/cmdline")) for process in descendants())
    return [process for process, line in lines if line.exists() and line.read_bytes().startswith(b"ray::Reader")]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Address of a cluster of two nodes, which must leave neither processes nor files behind."""
    from ray.cluster_utils import Cluster  # noqa: PLC0415  (a second of import, for these tests alone)

    before = descendants()
    folder = tempfile.mkdtemp(prefix="ray-")  # pytest's are too long for the names of sockets
    node = {"num_cpus": 2, "object_store_memory": 80 * 2**20, "include_dashboard": False, "include_log_monitor": False}
    # No processes that nobody asked for, and those that read are not put behind all others of the machine.
    lean = {"prestart_worker_first_driver": False, "worker_niceness": 0}
    cluster = Cluster(initialize_head=True, head_node_args=node | {"temp_dir": folder, "_system_config": lean})
    try:
        cluster.add_node(**node)
        cluster.wait_for_nodes()
        yield cluster.address
    finally:
        started = descendants() - before
        cluster.shutdown()
        for process in started & descendants():
            os.kill(process, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def settings() -> WorkerSettings:
    """The smaller model: every worker loads it."""
    return WorkerSettings(ModelRepository([pretrained_root()]).resolve("digits-ctc", None))


def chunks(paths: Iterable[str], size: int) -> list[Chunk]:
    pictures = (Poison() if path == "poison" else FilePicture(path) for path in paths)
    return list(chunks_of((Item(f"{number}", picture) for number, picture in enumerate(pictures)), size))


def test_rows_are_those_of_this_machine_whatever_dies(
    address: str,
    settings: WorkerSettings,
    identity: ModelIdentity,
    strips: list[tuple[Path, str]],
    bad_files: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from glyphline.service.jobs.engines.ray import RayEngine, connected, usual_readers  # noqa: PLC0415

    monkeypatch.chdir(strips[0][0].parent)  # names are relative here, and workers must find them too
    names = list(itertools.islice(itertools.cycle(path.name for path, _ in strips), 94))
    job = chunks([*names[:40], *bad_files, *names[40:], "poison", *names[:3]], 16)
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    done: dict[int, list[Outcome]] = {}
    with connected(address), RayEngine(settings, identity, 2) as engine:
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
        assert usual_readers("cpu") == 4
        read = engine.read(job, in_order=False)
        for each in read:
            if not done:
                os.kill(readers()[0], signal.SIGKILL)
            done[each.chunk.number] = each.outcomes
    with LocalEngine(settings, identity, 1) as local:
        expected = {each.chunk.number: each.outcomes for each in local.read(job[:-1], in_order=True)}
    last = done.pop(len(job) - 1)
    assert done == expected
    poisoned = [outcome for outcome in last if isinstance(outcome, RowError)]
    assert poisoned == [RowError("worker_crashed", "the worker process died while it read this image")]


def test_a_picture_that_only_nodes_miss_stops_the_job(
    address: str, settings: WorkerSettings, identity: ModelIdentity, tmp_path: Path, strips: list[tuple[Path, str]]
) -> None:
    from glyphline.service.jobs.engines.ray import RayEngine, connected  # noqa: PLC0415

    here = tmp_path / "late.png"

    class Late(FilePicture):
        """Is there for this process, and for no other."""

        def __reduce__(self) -> tuple[object, tuple[str]]:
            return FilePicture, (str(tmp_path / "elsewhere.png"),)

    shutil.copy(strips[0][0], here)
    job = [Chunk(0, (Item("0", Late(str(here))),))]
    with (
        connected(address),
        RayEngine(settings, identity, 1) as engine,
        pytest.raises(JobError, match="all nodes find them"),
    ):
        list(engine.read(job, in_order=True))


def test_a_driver_that_is_killed_goes_on_where_it_was(
    address: str, settings: WorkerSettings, strips: list[tuple[Path, str]], tmp_path: Path
) -> None:
    scans = tmp_path / "scans"
    scans.mkdir()
    for number, (path, _) in enumerate(itertools.islice(itertools.cycle(strips), 120)):
        (scans / f"{number:03d}{path.suffix}").symlink_to(path)
    (scans / "empty.png").touch()
    model = ModelIdentity("digits-ctc", 3, None, "greedy")
    whole, killed = (Layout.of(tmp_path / name, "jsonl", folder=False) for name in ("whole.jsonl", "killed.jsonl"))
    with Journal(whole, {}, "new") as journal, LocalEngine(settings, model, 1) as engine:
        run(Inputs((str(scans),)).chunks(4), engine, journal, RowFormat(model))
    command = [sys.executable, "-c", DRIVER, address, str(settings.bundle), str(scans), str(killed.output)]
    generator = random.Random(5)
    for _ in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            for _ in range(generator.randint(1, 10)):
                process.stdout.readline()
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert (killed.job / "ledger.jsonl").stat().st_size > 0
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows, expected = (sorted(layout.output.read_bytes().splitlines()) for layout in (killed, whole))
    assert rows == expected
    assert len({json.loads(row)["id"] for row in rows}) == 121


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "local"])
def test_a_cluster_that_is_not_there_is_told(address: str) -> None:
    from glyphline.service.jobs.engines.ray import connected  # noqa: PLC0415

    with pytest.raises(ClusterError, match=f"no Ray cluster at {address}: "), connected(address):
        pass
    assert exit_code_of(ClusterError("")) is ExitCode.SERVER
