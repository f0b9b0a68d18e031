"""`glyphline health` against the real health service, without the workers that it usually tells of."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from collections.abc import AsyncIterator, Callable

import grpc
import pytest
from grpc_health.v1 import health_pb2_grpc

from glyphline.cli.exit_codes import ExitCode
from glyphline.cli.health import own_server
from glyphline.service.health import ITSELF, Health

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
async def health() -> AsyncIterator[tuple[str, Health]]:
    """A server that has nothing but health, and its address."""
    server = grpc.aio.server()
    service = Health([])
    service.set_models(["digits", "digits:4"])
    health_pb2_grpc.add_HealthServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}", service
    await server.stop(None)


async def test_the_exit_code_says_whether_it_can_be_used(invoke: Command, health: tuple[str, Health]) -> None:
    target, service = health

    async def ask(*options: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(invoke, "health", "--server", target, "--timeout", "60", *options)

    loading = await ask()
    assert (loading.returncode, loading.stdout) == (ExitCode.SERVER, "")
    assert f"{target} is not serving" in loading.stderr
    alive = await ask("--live")
    assert (alive.returncode, alive.stdout) == (ExitCode.OK, "alive\n")
    assert (await ask("--model", ITSELF)).returncode == ExitCode.OK  # as kubelets ask whether it lives
    service.set_serving(True)
    for options in ([], ["--model", "digits"], ["--model", "digits:4"]):
        ready = await ask(*options)
        assert (ready.returncode, ready.stdout) == (ExitCode.OK, "serving\n"), options
    unknown = await ask("--model", "digits:5")
    assert unknown.returncode == ExitCode.MODEL
    assert f"{target} has no model digits:5" in unknown.stderr
    service.stop()
    assert (await ask("--model", "digits")).returncode == ExitCode.SERVER
    assert (await ask("--live")).returncode == ExitCode.OK
    assert (await ask("--model", ITSELF)).returncode == ExitCode.OK


async def test_a_server_that_is_no_glyphline_is_named(invoke: Command) -> None:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    done = await asyncio.to_thread(invoke, "health", "--server", f"127.0.0.1:{port}", "--timeout", "60")
    await server.stop(None)
    assert done.returncode == ExitCode.SERVER
    assert "is it a Glyphline server?" in done.stderr


def test_a_server_that_is_not_there_or_says_nothing_is_told_in_a_line(invoke: Command) -> None:
    nothing = invoke("health", "--server", "127.0.0.1:1")
    assert nothing.returncode == ExitCode.SERVER
    assert nothing.stderr.startswith("glyphline health: the server at 127.0.0.1:1 cannot be reached")
    assert nothing.stderr.count("\n") == 1
    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = f"127.0.0.1:{silent.getsockname()[1]}"
        late = invoke("health", "--server", target, "--live", "--timeout", "0.5")
    assert late.returncode == ExitCode.SERVER
    assert "did not answer within 0.5 s" in late.stderr


def test_what_makes_no_sense_is_refused(invoke: Command) -> None:
    assert invoke("health", "--live", "--model", "digits").returncode == ExitCode.USAGE
    assert invoke("health", "--timeout", "0").returncode == ExitCode.USAGE
    assert invoke("health", "--tls-ca", "missing.pem").returncode == ExitCode.USAGE


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "localhost:50051"),
        ({"GLYPHLINE_HOST": "0.0.0.0", "GLYPHLINE_PORT": "8500"}, "localhost:8500"),
        ({"GLYPHLINE_HOST": "::"}, "localhost:50051"),
        ({"GLYPHLINE_HOST": "10.0.0.7"}, "10.0.0.7:50051"),
        ({"GLYPHLINE_HOST": "fd00::7"}, "[fd00::7]:50051"),
    ],
)
def test_the_server_of_the_same_variables_is_asked(variables: dict[str, str], expected: str) -> None:
    assert own_server(variables) == expected
