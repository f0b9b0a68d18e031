"""Addresses of servers, and what to do where none answers at one."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from glyphline.cli.access import ServerAccess, advised, check_target
from glyphline.cli.exit_codes import CommandError, ExitCode
from glyphline.service.client import UnavailableError

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    "target",
    ["host:50051", "127.0.0.1:1", "[::1]:50051", "dns:///host:50051", "unix:/run/g.sock", "ipv4:1.2.3.4:5,1.2.3.5:5"],
)
def test_addresses_that_can_be_asked(target: str) -> None:
    check_target(target)


@pytest.mark.parametrize(
    ("target", "advice"),
    [
        ("http://host:50051", r"give host:50051 alone, without http://$"),
        ("https://host:50051/v2/", r"give host:50051 alone, without https://; --tls encrypts the way$"),
        ("tcp://host:50051", "give host:50051 alone, without tcp://"),
        ("host:50051/", "give host and port alone"),
        ("", "give host and port alone"),
        ("host", "give its port as well, as host:50051"),
        ("50051", "give its port as well, as host:50051"),
        ("host:", "a port is a number from 1 to 65535"),
        ("host:grpc", "a port is a number"),
        ("host:500510", "a port is a number"),
        ("::1", r"in brackets, and its port behind, as \[::1\]:50051"),
        ("[::1]", r"and its port behind, as \[::1\]:50051"),
        ("a:1,b:2", "give one server; `glyphline transcribe` can ask several"),
    ],
)
def test_addresses_that_are_none_are_told_how_to_be_written(target: str, advice: str) -> None:
    with pytest.raises(CommandError, match=advice) as error:
        check_target(target)
    assert f"--server {target}: " in str(error.value)


def test_commands_tell_of_them_before_they_ask(invoke: Command, strips: list[tuple[Path, str]]) -> None:
    strip = strips[0][0]
    for command in (["recognize", strip], ["transcribe", strip, "-o", "-"], ["transcribe", strip, "--dry-run"]):
        done = invoke(*command, "--server", "http://localhost:1")
        assert done.returncode == ExitCode.USAGE
        assert "give localhost:1 alone, without http://" in done.stderr
    done = invoke("transcribe", strip, "-o", "-", "--server", "localhost:1,localhost")
    assert "--server localhost: give its port as well, as localhost:50051" in done.stderr
    assert "--server names none" in invoke("transcribe", strip, "-o", "-", "--server", ",").stderr


def test_a_token_is_not_sent_in_the_clear(tmp_path: Path) -> None:
    access = ServerAccess(token_file=tmp_path / "token")
    with pytest.raises(CommandError, match=r"GLYPHLINE_TOKEN_FILE.*add --tls, or --tls-ca"):
        access.client("host.example:50051", 1.0)


def test_a_token_that_cannot_be_read_is_a_wrong_option(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"missing: No such file") as error:
        ServerAccess(token_file=tmp_path / "missing").token("localhost:1")
    assert error.value.code is ExitCode.USAGE


@pytest.mark.parametrize("target", ["ipv4:127.0.0.1:1,127.0.0.2:1", "localhost:1", "dns:///localhost:1", "unix:/none"])
def test_what_is_told_of_a_server_stays_where_no_address_knows_more(target: str) -> None:
    told = UnavailableError(grpc.StatusCode.UNAVAILABLE, "cannot be reached")
    with pytest.raises(UnavailableError) as error, ServerAccess().connecting(target):
        raise told
    assert error.value is told


def test_advice_follows_what_the_client_says() -> None:
    assert advised("CONNECTION_CLOSED", "it closes") == (
        "it closes; if it has TLS, add --tls or --tls-ca; if it asks for a certificate, --tls-certificate and --tls-key"
        " as well"
    )
    assert advised("", "else") == "else"
