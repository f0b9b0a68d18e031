"""The server's certificate and key, which may be renewed while it runs.

Connections that stand keep the certificate that they began with; new ones are given the newest.
"""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

import grpc

from glyphline.service.errors import ServiceError
from glyphline.service.security.watching import Reloadable

__all__ = ["CertificateError", "Certificates", "not_after"]

_PEM_BEGIN = "-----BEGIN CERTIFICATE-----"
_PEM_END = "-----END CERTIFICATE-----"
_SEQUENCE, _INTEGER, _UTC_TIME, _GENERALISED_TIME, _VERSION = 0x30, 0x02, 0x17, 0x18, 0xA0


class CertificateError(ServiceError):
    """The certificate or its key cannot be used. The message says why."""


class Certificates(Reloadable):
    """A certificate with its chain, its key, and who may sign the certificates of clients.

    Args:
        certificate: PEM file of the certificate and those that lead from it to a root.
        key: PEM file of its key, not encrypted.
        client_ca: PEM file of the authorities whose clients may connect; None if clients need no certificate.

    Raises:
        CertificateError: If they cannot be used.

    Attributes:
        not_after: When the certificate expires.
    """

    not_after: datetime

    def __init__(self, certificate: Path, key: Path, client_ca: Path | None) -> None:
        self._certificate = certificate
        self._key = key
        self._client_ca = client_ca
        super().__init__(certificate, key, *([] if client_ca is None else [client_ca]))

    def _read(self) -> None:
        """Reads the files, and sees that they belong together and are of use today."""
        chain, key = _read(self._certificate), _read(self._key)
        authorities = None if self._client_ca is None else _read(self._client_ca)
        self._check_pair()
        if self._client_ca is not None:
            _check_authorities(self._client_ca)
        try:
            expiry = not_after(chain)
        except ValueError as error:
            raise CertificateError(f"{self._certificate}: {error}") from error
        if expiry <= datetime.now(UTC):
            raise CertificateError(f"{self._certificate}: has expired, on {expiry:%Y-%m-%d at %H:%M} UTC")
        if (chain, key) != (_read(self._certificate), _read(self._key)):
            raise CertificateError(f"{self._certificate}: was changed while it was read")
        self.not_after = expiry
        self._configuration = grpc.ssl_server_certificate_configuration([(key, chain)], authorities)

    def credentials(self) -> grpc.ServerCredentials:
        """Makes the credentials of a server, which ask for the newest files at every new connection."""
        return grpc.dynamic_ssl_server_credentials(
            self._configuration,
            lambda: self._configuration,
            require_client_authentication=self._client_ca is not None,
        )

    def _check_pair(self) -> None:
        """Sees that the key is that of the certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self._certificate, self._key, password=_no_password)
        except ssl.SSLError as error:
            reason = (error.reason or "").replace("_", " ").lower() or "not in the form of a PEM file"
            raise CertificateError(f"{self._certificate} with {self._key}: {reason}") from error
        except (OSError, ValueError) as error:
            raise CertificateError(f"{self._certificate} with {self._key}: {error}") from error


def not_after(chain: bytes) -> datetime:
    """Returns when the first certificate of a PEM file expires.

    The standard library tells that only of the certificates of other ends, hence the little walk through the bytes.

    Raises:
        ValueError: If there is no certificate.
    """
    text = chain.decode("ascii", "replace")
    begin, end = text.find(_PEM_BEGIN), text.find(_PEM_END)
    if not 0 <= begin < end:
        raise ValueError("has no certificate in PEM")
    reader = _Reader(ssl.PEM_cert_to_DER_cert(text[begin : end + len(_PEM_END)]))
    body = reader.enter(_SEQUENCE).enter(_SEQUENCE)
    if body.peek() == _VERSION:
        body.skip()
    body.skip(_INTEGER)  # serial number
    body.skip(_SEQUENCE)  # algorithm of the signature
    body.skip(_SEQUENCE)  # issuer
    validity = body.enter(_SEQUENCE)
    validity.skip()
    kind, value = validity.next()
    written = value.decode("ascii", "replace")
    if kind == _UTC_TIME:  # two digits of the year; RFC 5280 says that those from 50 are of the last century
        written = ("19" if written[:2] >= "50" else "20") + written
    elif kind != _GENERALISED_TIME:
        raise ValueError("has no date of expiry")
    return datetime.strptime(written, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


class _Reader:
    """Reads the elements of DER one after another."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def peek(self) -> int:
        """Returns the kind of the next element."""
        if not self._content:
            raise ValueError("has a certificate that ends early")
        return self._content[0]

    def next(self, kind: int | None = None) -> tuple[int, bytes]:
        """Returns kind and value of the next element."""
        found = self.peek()
        if kind is not None and found != kind:
            raise ValueError("has a certificate of another form")
        content, start = self._content, 2
        if len(content) < start:
            raise ValueError("has a certificate that ends early")
        length = content[1]
        if length & 0x80:  # the length of the length, then the length
            start += length & 0x7F
            length = int.from_bytes(content[2:start], "big")
        value = content[start : start + length]
        if len(value) != length:
            raise ValueError("has a certificate that ends early")
        self._content = content[start + length :]
        return found, value

    def enter(self, kind: int) -> _Reader:
        """Returns a reader of the elements of the next one."""
        return _Reader(self.next(kind)[1])

    def skip(self, kind: int | None = None) -> None:
        """Passes over an element."""
        self.next(kind)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(f"{path}: {error.strerror or error}") from error


def _no_password() -> str:
    raise ValueError("the key is encrypted; give one that is not, in a file that only the server may read")


def _check_authorities(path: Path) -> None:
    try:
        authorities = ssl.create_default_context(cafile=path).cert_store_stats()["x509"]
    except (ssl.SSLError, OSError):
        authorities = 0
    if not authorities:
        raise CertificateError(f"{path}: has no certificate in PEM")
