"""A client that connects the wrong way is told what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import grpc
import pytest
from typer.testing import CliRunner

from glyphline.cli import app
from glyphline.cli.exit_codes import ExitCode
from glyphline.recognition.v1 import recognition_pb2 as api
from glyphline.recognition.v1 import recognition_pb2_grpc as rpc
from glyphline.service.client import Client, RetryPolicy, UnavailableError, tls_credentials
from glyphline.service.client.errors import from_call

if TYPE_CHECKING:
    from tests.service.security.conftest import Authority, Secured


@contextmanager
def listening(credentials: grpc.ServerCredentials | None = None) -> Iterator[str]:
    """A server without any service: connections are made, or not, before that matters."""
    server = grpc.server(ThreadPoolExecutor(1))
    address = "127.0.0.1:0"
    port = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(0).wait()


def shown(authority: Authority, *, days: float = 30, ask: bool = False) -> grpc.ServerCredentials:
    """What a server shows, and whether it asks for a certificate of the client."""
    pair = authority.sign("shown", days=days)
    chain = [(pair.key.read_bytes(), pair.certificate.read_bytes())]
    return grpc.ssl_server_credentials(chain, authority.path.read_bytes() if ask else None, ask)


@pytest.fixture(scope="module")
def stranger(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Another authority."""
    return type(authority)(tmp_path_factory.mktemp("stranger"), "stranger")


def failure(target: str, credentials: grpc.ChannelCredentials | None) -> tuple[str, str]:
    """Asks once; returns the reason and the message."""
    with (
        Client(target, timeout=20, retry=RetryPolicy(attempts=1), credentials=credentials) as client,
        pytest.raises(UnavailableError) as error,
    ):
        client.get_model()
    return error.value.reason, error.value.message


def test_without_tls_to_a_server_that_has_it(authority: Authority) -> None:
    with listening(shown(authority)) as target:
        assert failure(target, None) == (
            "CONNECTION_CLOSED",
            f"the server at {target} closes the connection before anything is said",
        )


def test_with_tls_to_a_server_that_has_none(authority: Authority) -> None:
    with listening() as target:
        credentials = tls_credentials(authority.path)
        assert failure(target, credentials) == ("TLS_NOT_SPOKEN", f"the server at {target} speaks no TLS")


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda authority, _: (shown(authority, days=-1), authority), "CERTIFICATE_EXPIRED"),
        (lambda authority, stranger: (shown(authority), stranger), "CERTIFICATE_NOT_TRUSTED"),
        (lambda authority, _: (shown(authority, ask=True), authority), "CONNECTION_CLOSED"),
    ],
    ids=["expired", "of another authority", "asks for one"],
)
def test_certificates(
    authority: Authority,
    stranger: Authority,
    make: Callable[[Authority, Authority], tuple[grpc.ServerCredentials, Authority]],
    reason: str,
) -> None:
    credentials, trusted = make(authority, stranger)
    with listening(credentials) as target:
        assert failure(target, tls_credentials(trusted.path))[0] == reason


def test_a_certificate_for_another_name(authority: Authority) -> None:
    with listening(shown(authority)) as target:
        # As if this machine had another name, too.
        options = [("grpc.ssl_target_name_override", "somebody-else")]
        channel = grpc.secure_channel(target, tls_credentials(authority.path), options)
        with channel, pytest.raises(grpc.RpcError) as error:
            rpc.ModelServiceStub(channel).GetModel(api.GetModelRequest(), timeout=20)
    assert from_call(error.value, target).reason == "CERTIFICATE_OF_ANOTHER_NAME"


def test_a_web_server() -> None:
    class Quiet(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            assert failure(f"127.0.0.1:{server.server_port}", None)[0] == "GRPC_NOT_SPOKEN"
        finally:
            server.shutdown()
            thread.join()


def test_commands_say_what_to_change(secured: Secured, strips: list[tuple[Path, str]]) -> None:
    done = CliRunner().invoke(app, ["recognize", str(strips[0][0]), "--server", secured.server.target])
    assert done.exit_code == ExitCode.SERVER
    assert "if it has TLS, add --tls or --tls-ca; if it asks for a certificate" in done.stderr
