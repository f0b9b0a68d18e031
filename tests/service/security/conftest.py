"""An authority that signs certificates, and a server that asks for certificates and tokens."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from glyphline.service.client import Client, tls_credentials
from glyphline.service.security.tokens import new_token, token_line

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates for this machine and for clients."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.path = folder / f"{name}.pem"
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder(self._name, self._name, self._key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=365))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def sign(self, name: str, *, days: float = 30, file: str | None = None) -> Pair:
        """Makes a certificate for `localhost` and 127.0.0.1 whose subject has a name."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        here = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        names: list[x509.GeneralName] = [x509.DNSName(name), *here]
        certificate = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=400))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        pair = Pair(self._folder / f"{file or name}.pem", self._folder / f"{file or name}.key")
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return pair


@dataclass(frozen=True)
class Secured:
    """A server that asks for certificates and tokens, and what to show it."""

    server: ServerProcess
    authority: Authority
    pair: Pair
    client_pair: Pair
    token_file: Path
    tokens: dict[str, str]

    def connect(self, token: str | None) -> Client:
        """Makes a client with a token."""
        credentials = tls_credentials(self.authority.path, self.client_pair.certificate, self.client_pair.key)
        return Client(self.server.target, timeout=60, credentials=credentials, token=token)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority."""
    return Authority(tmp_path_factory.mktemp("authority"), "authority")


@pytest.fixture(scope="session")
def secured(
    authority: Authority,
    start_process: Callable[..., ServerProcess],
    until: Callable[[Callable[[], bool], str], None],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Secured]:
    """A server over TLS that asks clients for a certificate and calls for a token, and has short limits."""
    del until
    folder = tmp_path_factory.mktemp("secured")
    tokens = {name: new_token() for name in ("counter", "partner", "slow", "heavy")}
    token_file = folder / "tokens.txt"
    lines = [
        token_line("counter", tokens["counter"]),
        token_line("partner", tokens["partner"], read_only=True),
        token_line("slow", tokens["slow"], images_per_second=0.01),
        token_line("heavy", tokens["heavy"], bytes_per_second=10),
    ]
    token_file.write_text("\n".join(lines), encoding="utf-8")
    pair, client_pair = authority.sign("server"), authority.sign("factory")
    server = start_process(
        tls_certificate=pair.certificate,
        tls_key=pair.key,
        tls_client_ca=authority.path,
        tokens=token_file,
        max_idle_seconds=3,
        max_connection_calls=4,
        max_message_bytes=4 * 2**20,
        log_sample=1,
    )
    try:
        server.wait_for_line("ready")
        yield Secured(server, authority, pair, client_pair, token_file, tokens)
        assert server.stop() == 0, "".join(server.raw)
    finally:
        server.close()
