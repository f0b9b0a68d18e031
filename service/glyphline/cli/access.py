"""How commands that ask a server show who they are: certificates and a token."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glyphline.cli.exit_codes import CommandError

if TYPE_CHECKING:
    import grpc

TlsOption = Annotated[
    bool, typer.Option("--tls", help="With --server: connect over TLS, trusting the usual authorities.")
]
TlsCaOption = Annotated[
    Path | None,
    typer.Option(
        "--tls-ca", metavar="PEM", help="With --server: connect over TLS, trusting these.", show_default=False
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


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """What a server is shown.

    Attributes:
        tls: Whether to connect over TLS; implied by any of the next three.
        ca: PEM file of the authorities to trust; None for the usual ones.
        certificate: PEM file of a certificate of one's own.
        key: PEM file of its key.
        token_file: File of the token.
    """

    tls: bool = False
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    token_file: Path | None = None

    @property
    def over_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.tls or any((self.ca, self.certificate, self.key))

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
                f"--token-file without TLS lets anybody on the way to {target} read the token; add --tls"
            )
        try:
            token = self.token_file.read_text(encoding="ascii").strip()
        except UnicodeDecodeError:
            token = ""
        if not token or len(token.split()) != 1:
            raise CommandError(f"{self.token_file}: should hold a token and nothing else")
        return token
