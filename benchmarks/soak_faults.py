"""What changes under a server while it is attacked: its models and its certificate."""

from __future__ import annotations

import ipaddress
import shutil
import socket
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from glyphline.models.bundle import load_bundle, write_manifest
from glyphline.models.manifest import MANIFEST_NAME


class Repository:
    """A folder of models that changes: versions 1 and 2 of one model come and go, and a damaged third.

    Args:
        root: The folder.
        source: A bundle to copy.
    """

    def __init__(self, root: Path, source: Path) -> None:
        self.root = root
        self._source = source
        self._name = load_bundle(source).manifest.name
        self._turn = 0
        self._add(1)

    def _add(self, version: int) -> None:
        """Puts a copy of the model there under another version, whole at once."""
        partial = self.root / f".{version}-partial"
        shutil.copytree(self._source, partial)
        manifest = load_bundle(partial).manifest.model_copy(update={"version": version})
        write_manifest(partial, manifest)
        (self.root / self._name).mkdir(exist_ok=True)
        partial.rename(self.root / self._name / str(version))

    def _remove(self, version: int) -> None:
        shutil.rmtree(self.root / self._name / str(version))

    def change(self) -> str:
        """Makes the next change and names it."""
        self._turn += 1
        match self._turn % 4:
            case 1:
                self._add(2)
                return "new version"
            case 2:
                broken = self.root / self._name / "3"
                broken.mkdir()
                (broken / MANIFEST_NAME).write_text("{")
                return "damaged version"
            case 3:
                self._remove(3)
                return "damaged version gone"
            case _:
                self._remove(2)
                return "version gone"


class Certificate:
    """A server's certificate that is renewed, and the authority that signs it.

    Args:
        folder: Where its files lie.
    """

    def __init__(self, folder: Path) -> None:
        self.authority, self.certificate, self.key = folder / "ca.pem", folder / "server.pem", folder / "server.key"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "soak")])
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        root = self._builder(self._name, self._key).add_extension(constraints, critical=True)
        self._write(self.authority, root.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        self.renew()

    def renew(self) -> int:
        """Writes a new pair, the key first, and returns the serial number of the certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        names = x509.SubjectAlternativeName([here, x509.DNSName("glyphline")])
        signed = self._builder(subject, key).add_extension(names, critical=False).sign(self._key, hashes.SHA256())
        form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        self._write(self.key, key.private_bytes(*form))
        self._write(self.certificate, signed.public_bytes(serialization.Encoding.PEM))
        return signed.serial_number

    def shown(self, target: str) -> int:
        """Returns the serial number of the certificate that a server shows to a new connection."""
        context = ssl.create_default_context(cafile=str(self.authority))
        context.set_alpn_protocols(["h2"])
        host, _, port = target.rpartition(":")
        connection = socket.create_connection((host, int(port)), timeout=60)
        with context.wrap_socket(connection, server_hostname=host) as secure:
            content = secure.getpeercert(binary_form=True)
        assert content is not None
        return x509.load_der_x509_certificate(content).serial_number

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=30))
        )

    def _write(self, path: Path, content: bytes) -> None:
        """Writes a file whole: nobody ever reads half of it."""
        partial = path.with_suffix(".partial")
        partial.write_bytes(content)
        partial.replace(path)
