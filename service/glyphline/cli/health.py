"""`glyphline health`: asks a server whether it can be used, for those who ask by commands: containers and scripts.

It is asked often, so only what it needs is imported.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from glyphline.cli.access import (
    ServerAccess,
    TlsCaOption,
    TlsCertificateOption,
    TlsKeyOption,
    TlsNameOption,
    TlsOption,
)
from glyphline.cli.exit_codes import CommandError, ExitCode

if TYPE_CHECKING:
    import grpc

EXAMPLES = """\b
Examples:
  glyphline health                              can the server of this machine be used?
  glyphline health --server host:50051 --model digits:4
  glyphline health --live                       does it live, ready or not?
  glyphline health --tls-ca ca.pem --tls-name glyphline.example.org
  until glyphline health; do sleep 1; done      wait for it

\b
Exit code: 0 if it can be used; 4 if it has no such model; 5 if it loads or drains, has no worker, or does not answer
within --timeout. No token is needed.
"""

_EVERY_ADDRESS = frozenset({"", "0.0.0.0", "::", "[::]"})


def health(
    *,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Whom to ask.  [default: localhost:50051, or what GLYPHLINE_HOST and GLYPHLINE_PORT say]",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME[:VERSION]",
            help="Ask for this model.  [default: for the server as a whole]",
            show_default=False,
        ),
    ] = "",
    live: Annotated[
        bool, typer.Option("--live", help="Be content with a server that answers, even if it cannot be used.")
    ] = False,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="How long to wait for the answer.")] = 5.0,
    tls: TlsOption = False,
    tls_ca: TlsCaOption = None,
    tls_name: TlsNameOption = None,
    tls_certificate: TlsCertificateOption = None,
    tls_key: TlsKeyOption = None,
) -> None:
    """Asks a server whether it can be used, by the gRPC health protocol, and says so by the exit code."""
    if live and model:
        raise CommandError("--live asks whether the server answers at all: leave out --model")
    if not timeout > 0:  # nor is NaN
        raise CommandError(f"--timeout: must be more than 0 seconds, not {timeout:g}")
    target = own_server(os.environ) if server is None else server
    access = ServerAccess(tls, tls_ca, tls_certificate, tls_key, name=tls_name)
    if not _is_serving(target, model, timeout, access) and not live:
        what = f"model {model} of {target}" if model else target
        raise CommandError(f"{what} is not serving: it loads or drains, or has no worker", ExitCode.SERVER)
    print("alive" if live else "serving")


def own_server(variables: Mapping[str, str]) -> str:
    """Names the server that `glyphline serve` would start with the same variables of the environment."""
    host = variables.get("GLYPHLINE_HOST", "")
    if host in _EVERY_ADDRESS:
        host = "localhost"
    port = variables.get("GLYPHLINE_PORT") or "50051"
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def _is_serving(target: str, model: str, timeout: float, access: ServerAccess) -> bool:
    """Asks.

    Raises:
        CommandError: If the address is none, there is no answer in time, or no such model.
        RecognitionError: If the server cannot be asked.
    """
    import grpc
    from grpc_health.v1 import health_pb2

    channel = access.channel(target)
    check = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    with channel, access.connecting(target):
        try:
            request = health_pb2.HealthCheckRequest(service=model)
            answer = check(request, timeout=timeout)
        except grpc.RpcError as error:
            raise _explain(error, target, model, timeout) from error
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def _explain(error: grpc.RpcError, target: str, model: str, timeout: float) -> Exception:
    """Says what the call failed at, as the client of all other commands does."""
    import grpc

    from glyphline.service.client.errors import from_call

    code = error.code() if isinstance(error, grpc.Call) else None
    if code is grpc.StatusCode.NOT_FOUND:
        return CommandError(f"{target} has no model {model}", ExitCode.MODEL)
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return CommandError(f"{target} did not answer within {timeout:g} s", ExitCode.SERVER)
    return from_call(error, target)
