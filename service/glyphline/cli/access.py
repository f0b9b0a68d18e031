"""How commands that ask a server show who they are: certificates and a token."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glyphline.cli.exit_codes import CommandError

if TYPE_CHECKING:
    import grpc

    from glyphline.service.client import Client

# What to do about a connection that does not come about, by the reason that the client gives.
_ADVICE = {
    "TLS_NOT_SPOKEN": "leave out --tls and --tls-ca, or ask the port that has TLS",
    "CERTIFICATE_EXPIRED": "whoever runs it has to renew it; or is this machine's clock wrong?",
    "CERTIFICATE_NOT_TRUSTED": "name the file of the authority that signed it by --tls-ca",
    "CERTIFICATE_OF_ANOTHER_NAME": "ask by a name that stands in it, or say by --tls-name which should",
    "GRPC_NOT_SPOKEN": "is it the port of the metrics, or a web server? `glyphline serve` tells its own port",
    "CONNECTION_CLOSED": "if it has TLS, add --tls or --tls-ca; if it asks for a certificate, --tls-certificate and "
    "--tls-key as well",
    "UNAUTHENTICATED": "--token-file names the file of one",
}
_SCHEMES = ("dns", "unix", "unix-abstract", "ipv4", "ipv6", "vsock", "xds")  # that gRPC knows
_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<rest>[^/]*)", re.IGNORECASE)

TlsOption = Annotated[
    bool, typer.Option("--tls", help="With --server: connect over TLS, trusting the usual authorities.")
]
TlsCaOption = Annotated[
    Path | None,
    typer.Option(
        "--tls-ca", metavar="PEM", help="With --server: connect over TLS, trusting these.", show_default=False
    ),
]
TlsNameOption = Annotated[
    str | None,
    typer.Option(
        "--tls-name",
        metavar="NAME",
        help="With --server: the name in its certificate, where it is not that of --server.",
        show_default=False,
    ),
]
TlsCertificateOption = Annotated[
    Path | None,
    typer.Option(
        "--tls-certificate", metavar="PEM", help="With --server: a certificate of one's own.", show_default=False
    ),
]
TlsKeyOption = Annotated[
    Path | None,
    typer.Option("--tls-key", metavar="PEM", help="With --server: the key of --tls-certificate.", show_default=False),
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        envvar="GLYPHLINE_TOKEN_FILE",
        help="With --server: file of the token to show.",
        show_default=False,
    ),
]


def check_target(target: str) -> None:
    """Refuses what is no address of a server: gRPC would only say that it cannot be reached.

    Raises:
        CommandError: If it is none; the message says how to write it.
    """
    scheme, _, _ = target.partition(":")
    if scheme.lower() in _SCHEMES:
        return
    said = f"--server {target}"
    if url := _URL.match(target):
        encrypted = "; --tls encrypts the way" if url["scheme"].lower() in ("https", "grpcs") else ""
        raise CommandError(f"{said}: give {url['rest'] or 'HOST:PORT'} alone, without {url['scheme']}://{encrypted}")
    if "/" in target or not target.strip():
        raise CommandError(f"{said}: give host and port alone, as host:50051")
    if "," in target:
        raise CommandError(f"{said}: give one server; `glyphline transcribe` can ask several")
    host, _, port = target.rpartition(":")
    if (":" in host and not host.startswith("[")) or target.endswith("]"):
        raise CommandError(f"{said}: write an IPv6 address in brackets, and its port behind, as [::1]:50051")
    if not host:
        raise CommandError(f"{said}: give its port as well, as {port if port and not port.isdigit() else 'host'}:50051")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 2**16):
        raise CommandError(f"{said}: a port is a number from 1 to 65535, as in host:50051")


def advised(reason: str, message: str) -> str:
    """Adds to a client's message what to do about it.

    Args:
        reason: The reason that the client gives.
        message: Its message.
    """
    advice = _ADVICE.get(reason)
    return f"{message}; {advice}" if advice else message


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """What a server is shown.

    Attributes:
        tls: Whether to connect over TLS; implied by any of the others but the token.
        ca: PEM file of the authorities to trust; None for the usual ones.
        certificate: PEM file of a certificate of one's own.
        key: PEM file of its key.
        token_file: File of the token.
        name: The name in the server's certificate; None for that of its address.
    """

    tls: bool = False
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    token_file: Path | None = None
    name: str | None = None

    @property
    def over_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.tls or any((self.ca, self.certificate, self.key, self.name))

    def client(self, target: str, timeout: float) -> Client:
        """Makes a client of a server.

        Args:
            target: Its address.
            timeout: Seconds that a call may take, further tries included.

        Raises:
            CommandError: If the address is none, a file cannot be used, or anybody on the way could read the token.
        """
        from glyphline.service.client import Client

        check_target(target)
        return Client(
            target,
            timeout=timeout,
            credentials=self.credentials(),
            token=self.token(target),
            server_name=self.name,
        )

    def channel(self, target: str, name: str | None = None) -> grpc.Channel:
        """Makes a bare channel to a server, for calls that need no client and no token.

        Args:
            target: Its address.
            name: The name in its certificate, unless another was given; None for that of the address.

        Raises:
            CommandError: If the address is none, or a file cannot be used.
        """
        import grpc

        check_target(target)
        credentials = self.credentials()
        if credentials is None:
            return grpc.insecure_channel(target)
        expected = self.name or name
        options = [] if expected is None else [("grpc.ssl_target_name_override", expected)]
        return grpc.secure_channel(target, credentials, options)

    @contextmanager
    def connecting(self, target: str) -> Iterator[None]:
        """Has the first call to a server say why no connection comes about, whichever of its addresses knows.

        Args:
            target: Its address.

        Raises:
            UnavailableError: If the server cannot be reached, as the call within raises it, or with the reason.
        """
        from glyphline.service.client import UnavailableError

        try:
            yield
        except UnavailableError as error:
            from glyphline.cli.closer_look import look_closer

            closer = None if error.reason else look_closer(target, self.channel)
            if closer is None:
                raise
            raise closer from error

    def credentials(self) -> grpc.ChannelCredentials | None:
        """Makes the credentials of the connection.

        Raises:
            CommandError: If a file cannot be used.
        """
        from glyphline.models.errors import OptionsError
        from glyphline.service.client import tls_credentials

        if not self.over_tls:
            return None
        try:
            return tls_credentials(self.ca, self.certificate, self.key)
        except OptionsError as error:
            raise CommandError(error.message) from error

    def token(self, target: str) -> str | None:
        """Reads the token.

        Args:
            target: Address of the server. Without TLS it must be on this machine.

        Raises:
            CommandError: If the token cannot be read, or anybody on the way could read it.
        """
        from glyphline.service.client.credentials import stays_here

        if self.token_file is None:
            return None
        if not self.over_tls and not stays_here(target):
            raise CommandError(
                f"--token-file (or GLYPHLINE_TOKEN_FILE) without TLS lets anybody on the way to {target} read the"
                " token; add --tls, or --tls-ca with the authority of the server's certificate"
            )
        try:
            token = self.token_file.read_text(encoding="ascii").strip()
        except OSError as error:
            raise CommandError(f"{self.token_file}: {error.strerror or error}") from error
        except UnicodeDecodeError:
            token = ""
        if not token or len(token.split()) != 1:
            raise CommandError(f"{self.token_file}: should hold a token and nothing else")
        return token
