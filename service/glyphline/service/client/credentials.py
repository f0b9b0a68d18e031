"""How a client shows who it is, and sees whom it talks to."""

from __future__ import annotations

import ssl
from pathlib import Path

import grpc

from glyphline.models.errors import OptionsError

__all__ = ["Metadata", "bearer", "tls_credentials"]

Metadata = tuple[tuple[str, str], ...]


def tls_credentials(
    ca: Path | None = None, certificate: Path | None = None, key: Path | None = None
) -> grpc.ChannelCredentials:
    """Makes the credentials of a TLS connection, for `Client(credentials=…)`.

    They are read now: a client with a renewed certificate of its own has to be made anew.

    Args:
        ca: PEM file of the authorities that the server's certificate may come from; None for the usual ones.
        certificate: PEM file of the client's own certificate, for servers that ask for one.
        key: PEM file of its key.

    Raises:
        OptionsError: If a file cannot be used, or the key is not that of the certificate.
    """
    if (certificate is None) != (key is None):
        raise OptionsError("credentials", "a client's certificate and its key go together; give both or neither")
    roots = None if ca is None else _read(ca)
    if certificate is None or key is None:
        return grpc.ssl_channel_credentials(roots)
    chain, private = _read(certificate), _read(key)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, ValueError) as error:
        raise OptionsError("credentials", f"{certificate} with {key}: no pair of certificate and key") from error
    return grpc.ssl_channel_credentials(roots, private, chain)


def bearer(token: str | None) -> Metadata:
    """Returns the metadata that carries a token.

    Raises:
        OptionsError: If it is none that metadata can carry.
    """
    if token is None:
        return ()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise OptionsError("token", "must be of printable ASCII characters without spaces")
    return (("authorization", f"Bearer {token}"),)


def _read(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise OptionsError("credentials", f"{path}: {error.strerror or error}") from error
    if b"-----BEGIN " not in content:
        raise OptionsError("credentials", f"{path}: is no PEM file")
    return content
