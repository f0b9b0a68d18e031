"""Models come and go while a server serves: no call is lost over it, and what is bad changes nothing."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from glyphline.models.bundle import load_bundle, write_manifest
from glyphline.models.manifest import MANIFEST_NAME
from glyphline.models.repository import LABELS_NAME, ModelRepository
from glyphline.service.client import AsyncClient, Client, NotFoundError, RetryPolicy

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess

NAME = "digits-ctc"
ONCE = RetryPolicy(attempts=1)
Publish = Callable[..., None]
Until = Callable[[Callable[[], bool], str], None]


def bad_byte(folder: Path) -> None:
    graph = folder / "network.onnx"
    content = bytearray(graph.read_bytes())
    content[len(content) // 2] ^= 1
    graph.write_bytes(content)


def bad_probe(folder: Path) -> None:
    head, _, tail = (folder / MANIFEST_NAME).read_text().partition('"probe": {')
    (folder / MANIFEST_NAME).write_text(head + '"probe": {' + tail.replace('"text": "', '"text": "0', 1))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository of the server."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def publish(model_root: Path, root: Path) -> Publish:
    """Returns what puts a version of the model into the repository, in one step, spoilt if that is wanted."""
    source = ModelRepository([model_root]).resolve(NAME)
    manifest = load_bundle(source).manifest

    def put(version: int, spoil: Callable[[Path], None] | None = None) -> None:
        made = root / f".making-{version}"
        shutil.copytree(source, made)
        write_manifest(made, manifest.model_copy(update={"version": version}))
        if spoil is not None:
            spoil(made)
        (root / NAME).mkdir(exist_ok=True)
        made.rename(root / NAME / str(version))

    return put


@pytest.fixture(scope="module")
def serving(root: Path, publish: Publish, launch: Callable[..., ServerProcess]) -> ServerProcess:
    """A server with two workers that follows the repository."""
    publish(1)
    server = launch(workers=2, model_repository=root, reload_seconds=0.1)
    server.wait_for_line("ready")
    return server


@pytest.fixture
def reader(serving: ServerProcess) -> Iterator[Client]:
    with Client(serving.target, timeout=60, retry=ONCE) as connected:
        yield connected


def count(server: ServerProcess, message: str) -> int:
    return sum(line["message"] == message for line in server.lines)


def wait_for_change(server: ServerProcess, until: Until, changes: int) -> None:
    until(lambda: count(server, "models changed") > changes, f"more than {changes} changes of models")


def test_complaint_28_a_bad_new_version_keeps_the_old(
    serving: ServerProcess, reader: Client, publish: Publish, images: list[bytes]
) -> None:
    """Whether the front process or a worker finds the fault: the old version reads on, and operators are told."""
    before = reader.recognize(images[0])
    publish(2, bad_byte)
    assert "network.onnx" in serving.wait_for_line("model refused")["reason"]
    publish(3, bad_probe)
    refusal = serving.wait_for_line("model refused", 2)
    assert refusal["model"] == f"{NAME}:3"
    assert "probe" in refusal["reason"]
    after = reader.recognize(images[0])
    assert (after.version, after.text) == (before.version, before.text)
    assert [model.version for model in reader.list_models()] == [before.version]
    assert serving.metric("glyphline_model_loads_total", model=NAME, outcome="refused") == 2
    assert serving.metric("glyphline_model_ready", model=NAME) == 1
    with pytest.raises(NotFoundError):
        reader.recognize(images[0], version=3)


async def test_complaint_26_a_model_that_loads_changes_nothing_for_the_others(
    serving: ServerProcess, publish: Publish, until: Until, images: list[bytes]
) -> None:
    """Health of the server stays as it is while a model loads, and every model has a health of its own."""
    heard = []

    async def listen(watch: grpc.aio.UnaryStreamCall[object, health_pb2.HealthCheckResponse]) -> None:
        async for answer in watch:
            heard.append(answer.status)

    async with grpc.aio.insecure_channel(serving.target) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        listening = asyncio.create_task(listen(health.Watch(health_pb2.HealthCheckRequest())))  # type: ignore[attr-defined]
        new = health.Watch(health_pb2.HealthCheckRequest(service=f"{NAME}:4"))  # type: ignore[attr-defined]
        assert (await new.read()).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
        publish(4)
        assert (await new.read()).status == health_pb2.HealthCheckResponse.SERVING
        async with AsyncClient(serving.target, timeout=60, retry=ONCE) as client:
            assert (await client.recognize(images[0])).version == 4
        await asyncio.to_thread(serving.wait_for_line, "models unloaded")
        for name, status in {"": 1, NAME: 1, f"{NAME}:4": 1}.items():
            answer = await health.Check(health_pb2.HealthCheckRequest(service=name))  # type: ignore[attr-defined]
            assert answer.status == status
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await health.Check(health_pb2.HealthCheckRequest(service=f"{NAME}:1"))  # type: ignore[attr-defined]
        assert failure.value.code() is grpc.StatusCode.NOT_FOUND
        listening.cancel()
    assert heard == [health_pb2.HealthCheckResponse.SERVING]


@pytest.mark.slow
async def test_complaint_28_no_call_fails_while_versions_come_and_go(
    serving: ServerProcess, root: Path, publish: Publish, until: Until, images: list[bytes]
) -> None:
    """Under load a version is added and taken away again; every call is answered by one of the two."""
    versions: list[int] = []
    texts: dict[bytes, set[str]] = {image: set() for image in images}
    done = False

    async def ask(client: AsyncClient, start: int) -> None:
        position = start
        while not done:
            image = images[position % len(images)]
            result = await client.recognize(image)
            versions.append(result.version)
            texts[image].add(result.text)
            position += 1

    async with AsyncClient(serving.target, timeout=60, retry=ONCE) as client:
        first = (await client.recognize(images[0])).version
        callers = [asyncio.create_task(ask(client, start)) for start in range(6)]
        unloads = count(serving, "models unloaded")
        publish(5)
        await asyncio.to_thread(serving.wait_for_line, "models unloaded", unloads + 1)
        assert (await client.recognize(images[0])).version == 5
        shutil.rmtree(root / NAME / "5")
        await asyncio.to_thread(serving.wait_for_line, "models unloaded", unloads + 2)
        assert (await client.recognize(images[0])).version == first
        done = True
        await asyncio.gather(*callers)  # raises if a call failed
    assert set(versions) == {first, 5}
    assert all(len(read) <= 1 for read in texts.values())
    assert serving.metric("glyphline_worker_losses_total") == 0


def test_labels_are_names_for_versions(
    serving: ServerProcess, reader: Client, root: Path, publish: Publish, until: Until, images: list[bytes]
) -> None:
    stable = reader.recognize(images[0]).version
    labels = root / NAME / LABELS_NAME

    def write(content: str) -> None:
        changes = count(serving, "models changed")
        (root / ".labels").write_text(content)
        (root / ".labels").rename(labels)
        wait_for_change(serving, until, changes)

    write(f"stable = {stable}\n")
    assert reader.get_model(version="stable").labels == ("stable",)
    publish(6)
    until(lambda: reader.recognize(images[0]).version == 6, "version 6")
    assert [model.version for model in reader.list_models()] == [stable, 6]
    assert reader.recognize(images[0], version="stable").version == stable
    write(f"stable = {stable}\ncanary = 6\n")
    assert reader.recognize(images[0], model=NAME, version="canary").version == 6
    labels.write_text("stable = ")
    serving.wait_for_line("models: labels stay as they are")
    assert reader.get_model(version="stable").version == stable
    with pytest.raises(NotFoundError, match="canary"):  # the message lists the labels that there are
        reader.recognize(images[0], version="beta")


def test_a_repository_that_is_away_for_a_while_changes_nothing(
    serving: ServerProcess, reader: Client, root: Path, publish: Publish, until: Until
) -> None:
    """As where a disk is unmounted: nothing is dropped, be the folder gone or empty, and operators are told once."""
    publish(8)
    until(lambda: reader.get_model().version == 8, "version 8")
    changes = count(serving, "models changed")
    (root / ".labels").write_text("old = 8\n")  # what has a label must not be all that stays
    (root / ".labels").rename(root / NAME / LABELS_NAME)
    wait_for_change(serving, until, changes)
    publish(9)
    until(lambda: reader.get_model().version == 9, "version 9")
    held, changes = reader.list_models(), count(serving, "models changed")
    away = root.with_name("away")
    root.rename(away)
    gone = serving.wait_for_line("models: the repository cannot be read, and what is held stays")
    assert (gone["level"], str(root) in gone["message"]) == ("warning", True)
    time.sleep(0.5)  # several looks at nothing
    root.mkdir()
    time.sleep(0.5)  # and at an empty folder
    assert reader.list_models() == held
    root.rmdir()
    away.rename(root)
    serving.wait_for_line("models: the repository can be read again")
    publish(10)
    until(lambda: reader.get_model().version == 10, "version 10")
    assert len([line for line in serving.lines if "the repository cannot be read" in line["message"]]) == 1
    assert [model.version for model in reader.list_models()] == [8, 10]


@pytest.mark.slow
def test_complaint_28_reloads_leave_no_memory_behind(
    start: Callable[..., ServerProcess], model_root: Path, tmp_path: Path, until: Until
) -> None:
    """SIGHUP after SIGHUP brings the next version; neither the front process nor the worker grows by it."""
    reloads = int(os.environ.get("GLYPHLINE_TEST_RELOADS", "6"))
    source = ModelRepository([model_root]).resolve(NAME)
    manifest = load_bundle(source).manifest

    def put(version: int) -> None:
        made = tmp_path / ".making"
        shutil.copytree(source, made)
        write_manifest(made, manifest.model_copy(update={"version": version}))
        (tmp_path / NAME).mkdir(exist_ok=True)
        made.rename(tmp_path / NAME / str(version))
        shutil.rmtree(tmp_path / NAME / str(version - 1), ignore_errors=True)

    put(1)
    server = start(model_repository=tmp_path, reload_seconds=0)
    server.wait_for_line("ready")
    sizes = []
    for version in range(2, reloads + 2):
        put(version)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_line("models unloaded", version - 1)
        pid = server.wait_for_line("worker replaced", version - 1)["pid"]
        sizes.append(_resident(server.process.pid) + _resident(pid))
    settled = sizes[len(sizes) // 4 :]
    slope = (settled[-1] - settled[0]) / (len(settled) - 1)
    print("MiB after every reload:", [round(size / 2**20, 1) for size in sizes])
    assert slope < 2**20
    assert server.metric("glyphline_model_loads_total", outcome="loaded") == reloads + 1
    assert len({sample for sample in server.metrics_text().splitlines() if "glyphline_evaluated_total{" in sample}) <= 5
    assert server.stop() == 0


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
