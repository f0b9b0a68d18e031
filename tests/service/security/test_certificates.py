"""Certificates are checked before they are used, and renewed without a restart."""

from __future__ import annotations

import shutil
import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from prometheus_client.parser import text_string_to_metric_families

from glyphline.service.client import Client, RecognitionError, Result, UnavailableError, tls_credentials
from glyphline.service.security.certificates import CertificateError, Certificates, not_after

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess
    from tests.service.security.conftest import Authority, Secured


def test_the_date_of_expiry_is_that_which_other_software_reads(authority: Authority) -> None:
    for days in (0.5, 300, 20_000, 40_000):  # from 2050 on a date is written in another form
        pair = authority.sign("dated", days=days)
        content = pair.certificate.read_bytes() + authority.path.read_bytes()
        expected = x509.load_pem_x509_certificate(pair.certificate.read_bytes()).not_valid_after_utc
        assert not_after(b"a remark before it\n" + content) == expected


@pytest.mark.parametrize("size", range(1, 120, 7))
def test_a_certificate_that_ends_early_is_none(authority: Authority, size: int) -> None:
    der = ssl.PEM_cert_to_DER_cert(authority.sign("cut").certificate.read_text())
    with pytest.raises(ValueError, match="certificate"):
        not_after(ssl.DER_cert_to_PEM_cert(der[:size]).encode())


def test_what_cannot_serve_is_refused_with_the_reason(authority: Authority, tmp_path: Path) -> None:
    good, other = authority.sign("good"), authority.sign("other")
    encrypted = tmp_path / "encrypted.key"
    encrypted.write_bytes(
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    text = tmp_path / "text.pem"
    text.write_text("no certificate")
    old = authority.sign("old", days=-1)
    for certificate, key, client_ca, reason in (
        (tmp_path / "absent.pem", good.key, None, "No such file"),
        (good.certificate, tmp_path / "absent.key", None, "No such file"),
        (good.certificate, other.key, None, "key values mismatch"),
        (good.certificate, encrypted, None, "encrypted"),
        (text, good.key, None, "PEM"),
        (old.certificate, old.key, None, "has expired"),
        (good.certificate, good.key, text, "no certificate"),
    ):
        with pytest.raises(CertificateError, match=reason):
            Certificates(certificate, key, client_ca)
    assert Certificates(good.certificate, good.key, authority.path).not_after > datetime.now(UTC)


def test_a_server_does_not_start_with_half_a_pair(start: Callable[..., ServerProcess], authority: Authority) -> None:
    good, other = authority.sign("half"), authority.sign("another")
    server = start(tls_certificate=good.certificate, tls_key=other.key)
    assert server.wait() == 1
    assert "mismatch" in server.wait_for_line("cannot start")["message"]


def test_clients_without_the_right_certificates_are_not_let_in(secured: Secured, authority: Authority) -> None:
    """TLS in both directions: the server shows who it is, and takes only clients of its authority."""
    token = secured.tokens["counter"]
    with secured.connect(token) as client:
        assert client.list_models()
    for credentials in (None, tls_credentials(authority.path), tls_credentials()):
        with Client(secured.server.target, timeout=3, credentials=credentials, token=token) as client:
            with pytest.raises(RecognitionError) as failure:
                client.list_models()
            assert isinstance(failure.value, UnavailableError) or "in time" in str(failure.value)


def shown(server: ServerProcess) -> int:
    """Returns the serial number of the certificate that a server shows to a new connection."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    host, _, port = server.target.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    with context.wrap_socket(connection, server_hostname="localhost") as secure:
        certificate = secure.getpeercert(binary_form=True)
    assert certificate is not None
    return x509.load_der_x509_certificate(certificate).serial_number


def test_complaint_21_a_renewed_certificate_needs_no_restart(
    start: Callable[..., ServerProcess],
    authority: Authority,
    images: list[bytes],
    tmp_path: Path,
    until: Callable[[Callable[[], bool], str], None],
) -> None:
    """New connections get the new certificate, those that stand go on, and a bad one leaves the last good in place."""
    pair = authority.sign("renewed", days=10)
    certificate, key = tmp_path / "tls.pem", tmp_path / "tls.key"
    shutil.copy(pair.certificate, certificate)
    shutil.copy(pair.key, key)
    server = start(tls_certificate=certificate, tls_key=key)
    server.wait_for_line("ready")
    first = shown(server)

    def expiry() -> float:
        return server.metric("glyphline_certificate_expiry_timestamp_seconds")

    def days_left() -> float:
        return (datetime.fromtimestamp(expiry(), UTC) - datetime.now(UTC)) / timedelta(days=1)

    with Client(server.target, timeout=60, credentials=tls_credentials(authority.path)) as client:
        assert isinstance(client.recognize(images[0]), Result)
        assert 9 < days_left() < 10
        certificate.write_text("half written")
        assert "PEM" in server.wait_for_line("certificate not reloaded")["reason"]
        assert shown(server) == first
        renewed = authority.sign("renewed", days=90)
        shutil.copy(renewed.key, key)
        shutil.copy(renewed.certificate, certificate)
        server.wait_for_line("certificate reloaded")
        until(lambda: shown(server) != first, "the new certificate is shown")
        assert 89 < days_left() < 90
        assert isinstance(client.recognize(images[0]), Result)  # over the connection that stood before
    with Client(server.target, timeout=60, credentials=tls_credentials(authority.path)) as client:
        assert isinstance(client.recognize(images[0]), Result)
    assert server.metric("glyphline_security_reloads_total", file="certificate", outcome="failed") >= 1
    assert server.metric("glyphline_security_reloads_total", file="certificate", outcome="ok") == 1
    families = {family.name for family in text_string_to_metric_families(server.metrics_text())}
    assert "glyphline_certificate_expiry_timestamp_seconds" in families
    assert server.stop() == 0
