"""The commands show certificates and tokens."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest

from glyphline.cli.access import ServerAccess
from glyphline.cli.exit_codes import ExitCode
from glyphline.service.client import UnavailableError

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess
    from tests.service.security.conftest import Secured


def test_recognize_asks_a_server_that_wants_both(
    secured: Secured, strips: list[tuple[Path, str]], tmp_path: Path
) -> None:
    token_file = tmp_path / "counter.token"
    token_file.write_text(secured.tokens["counter"] + "\n")
    command = [sys.executable, "-m", "glyphline", "recognize", str(strips[0][0]), "--server", secured.server.target]
    command += ["--tls-ca", str(secured.authority.path), "--tls-certificate", str(secured.client_pair.certificate)]
    command += ["--tls-key", str(secured.client_pair.key), "--tls-name", "server"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GLYPHLINE_")}
    with_token = environment | {"GLYPHLINE_TOKEN_FILE": str(token_file)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=with_token)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{strips[0][0]}\t")
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode != 0
    assert "needs a token" in done.stderr
    assert "Traceback" not in done.stderr


def test_health_asks_a_server_over_tls_and_needs_no_token(secured: Secured) -> None:
    host, _, port = secured.server.target.rpartition(":")
    command = [sys.executable, "-m", "glyphline", "health", "--server", f"{host}:{port}", "--timeout", "60"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GLYPHLINE_")}

    def ask(*options: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *map(str, options)], capture_output=True, text=True, check=False, env=environment
        )

    own = "--tls-certificate", secured.client_pair.certificate, "--tls-key", secured.client_pair.key
    done = ask("--tls-ca", secured.authority.path, *own, "--tls-name", "server")
    assert (done.returncode, done.stdout, done.stderr) == (0, "serving\n", "")
    other_name = ask("--tls-ca", secured.authority.path, *own, "--tls-name", "somebody-else")
    assert other_name.returncode == ExitCode.SERVER
    assert other_name.stderr.count("\n") == 1
    assert "shows a certificate for another name" in other_name.stderr
    assert "; ask by a name that stands in it, or say by --tls-name which should" in other_name.stderr


@pytest.mark.parametrize("hosts", [("127.0.0.1", "127.0.0.2"), ("127.0.0.2", "127.0.0.1")])
def test_of_several_addresses_the_one_that_answers_says_why_it_cannot_be_used(
    secured: Secured, hosts: tuple[str, str]
) -> None:
    port = secured.server.target.rpartition(":")[2]
    target = f"ipv4:{hosts[0]}:{port},{hosts[1]}:{port}"  # the server listens at the first alone
    own = secured.client_pair.certificate, secured.client_pair.key
    other_name = ServerAccess(ca=secured.authority.path, certificate=own[0], key=own[1], name="somebody-else")
    told = UnavailableError(grpc.StatusCode.UNAVAILABLE, "cannot be reached")
    with pytest.raises(UnavailableError, match="shows a certificate for another name"), other_name.connecting(target):
        raise told
    with (
        pytest.raises(UnavailableError, match="closes the connection before anything is said"),
        ServerAccess().connecting(target),
    ):
        raise told


def test_a_server_that_would_let_tokens_be_read_does_not_start(
    start: Callable[..., ServerProcess], secured: Secured
) -> None:
    server = start(host="0.0.0.0", tokens=secured.token_file)
    assert server.wait() != 0
    assert "--tokens without TLS would let anybody on the way" in "".join(server.raw)
