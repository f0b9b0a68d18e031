"""How a client shows who it is, and sees whom it talks to."""

from __future__ import annotations

import ssl
from pathlib import Path

import grpc

from glyphline.models.errors import OptionsError
from glyphline.service.addresses import is_loopback

__all__ = ["Metadata", "bearer", "stays_here", "tls_credentials"]

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


def bearer(token: str | None, target: str, *, hidden: bool) -> Metadata:
    """Returns the metadata that carries a token.

    Args:
        token: The token; None for none.
        target: Address of the server.
        hidden: Whether nobody on the way can read it, as with TLS.

    Raises:
        OptionsError: If it is none that metadata can carry, or somebody on the way could read it.
    """
    if token is None:
        return ()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise OptionsError("token", "must be of printable ASCII characters without spaces")
    if not hidden and not stays_here(target):
        raise OptionsError(
            "token",
            f"would be read by anybody on the way to {target}: pass credentials=tls_credentials(…), or "
            "allow_token_without_tls=True where something else encrypts the way",
        )
    return (("authorization", f"Bearer {token}"),)


def stays_here(target: str) -> bool:
    """Tells whether what is sent to a target never leaves this machine.

    Args:
        target: As gRPC takes it: `host:port`, `dns:///host:port`, `ipv4:host:port,host:port`, `unix:path`.
    """
    scheme, _, rest = target.partition(":")
    if scheme in ("unix", "unix-abstract"):
        return True
    addresses = rest.rpartition("/")[2] if scheme in ("dns", "ipv4", "ipv6") else target
    return all(is_loopback(_host(address)) for address in addresses.split(","))


def _host(address: str) -> str:
    """Takes the port off an address, if it has one."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address if address.count(":") > 1 else address.partition(":")[0]


def _read(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise OptionsError("credentials", f"{path}: {error.strerror or error}") from error
    if b"-----BEGIN " not in content:
        raise OptionsError("credentials", f"{path}: is no PEM file")
    return content
