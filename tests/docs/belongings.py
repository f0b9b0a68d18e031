"""What a newcomer has who types what the documents say: small files of every kind, made of the strips of tests/data."""

from __future__ import annotations

import io
import ipaddress
import shutil
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from PIL import Image

from glyphline.models.repository import pretrained_root

__all__ = ["BELONGINGS", "lay_out", "shrink"]

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"

CONFIG = """
name = "mine"
alphabet = "0123456789"

[image]
height = 16

[network]
heads = ["ctc"]

[loop]
epochs = 20

[[sources]]
kind = "real"
path = "strips"

[validation.held_out]
kind = "folder"
path = "strips"
"""

PAGE = """<PcGts xmlns="http://schema.primaresearch.org/PAGE/gts/pagecontent/2019-07-15">
<Page imageFilename="p1.png" imageWidth="{width}" imageHeight="{height}"><TextRegion id="r">
<TextLine id="line_1"><Coords points="0,0 {width},0 {width},{height} 0,{height}"/></TextLine>
</TextRegion></Page></PcGts>
"""

# What makes a training take seconds. A network whose kind is named keeps its parts.
TINY_LOOP = {
    "epochs": "1",
    "strips_per_epoch": "64",
    "batch_columns": "256",
    "workers": "0",
    "validate_every": "1",
    "precision": '"fp32"',
}
TINY_NETWORK = {
    "channels": "[8, 8, 16, 16]",
    "residual_blocks": "0",
    "encoder_cell": '"gru"',
    "encoder_size": "16",
    "encoder_layers": "1",
}


def lay_out(folder: Path, page: str) -> None:
    """Makes a newcomer's folder.

    Args:
        folder: An empty folder.
        page: The document that will be followed.
    """
    for name in ("benchmarks", "scripts", "tests", "training"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(
        ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__", "node_modules")
    )
    (folder / "home").mkdir()
    for bring in (_pictures, _scans, _lists, _texts, *BELONGINGS.get(page, ())):
        bring(folder)


def shrink(config: Path) -> None:
    """Makes a configuration one that trains in seconds."""
    text = config.read_text(encoding="utf-8")
    text = _set(text, "loop", TINY_LOOP)
    if "\nencoder = " not in text:
        text = _set(text, "network", TINY_NETWORK)
    config.write_text(text, encoding="utf-8")


def _set(text: str, section: str, values: dict[str, str]) -> str:
    """Sets keys of a section of TOML, which is there."""
    head, mark, rest = text.partition(f"\n[{section}]\n")
    assert mark, f"no [{section}] in\n{text}"
    body, bracket, tail = rest.partition("\n[")
    kept = [line for line in body.splitlines() if line.partition("=")[0].strip() not in values]
    new = [f"{key} = {value}" for key, value in values.items()]
    return head + mark + "\n".join([*new, *kept]) + bracket + tail


def _strips(count: int | None = None) -> list[tuple[Path, str]]:
    lines = (DATA / "strips" / "labels.tsv").read_text(encoding="utf-8").splitlines()[:count]
    return [(DATA / "strips" / name, text) for name, text in (line.split("\t") for line in lines)]


def _pictures(folder: Path) -> None:
    """Single pictures, of digits and of words."""
    for name in ("strip.png", "new.png", "cheque.png"):
        shutil.copy(DATA / "strips" / "mnist_7294158.png", folder / name)
    shutil.copy(DATA / "words" / "typescript_btv1b10583038c_24_ac2b1_028.jpg", folder / "sign.jpg")
    shutil.copy(DATA / "handwriting" / "german_w18_18_0.jpg", folder / "note.jpg")
    with Image.open(folder / "sign.jpg") as picture:
        picture.save(folder / "street.png")


def _scans(folder: Path) -> None:
    """Folders of strips with labels, one of them below data/, and the labels that a review would have saved."""
    (folder / "scans").mkdir()
    (folder / "home" / "Downloads").mkdir()
    shutil.copytree(DATA / "strips", folder / "data" / "strips")
    chosen = _strips(8)
    for path, _ in chosen:
        shutil.copy(path, folder / "scans")
    labels = "".join(f"{path.name}\t{text}\n" for path, text in chosen)
    (folder / "scans" / "labels.tsv").write_text(labels, encoding="utf-8")
    saved = "".join(f"scans/{path.name}\t{text}\n" for path, text in chosen)
    (folder / "home" / "Downloads" / "labels.tsv").write_text(saved, encoding="utf-8")


def _lists(folder: Path) -> None:
    """A list, a shard and a page with a line, for batch jobs."""
    chosen = _strips(3)
    rows = "".join(f"scans/{path.name},{number},{text}\n" for number, (path, text) in enumerate(chosen))
    (folder / "list.csv").write_text(f"path,id,text\n{rows}", encoding="utf-8")
    (folder / "shards").mkdir()
    with tarfile.open(folder / "shards" / "0000.tar", "w") as shard:
        for path, text in chosen:
            for name, content in ((path.name, path.read_bytes()), (f"{path.stem}.txt", text.encode())):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                shard.addfile(member, io.BytesIO(content))
    (folder / "pages").mkdir()
    with Image.open(chosen[0][0]) as picture:
        picture.save(folder / "pages" / "p1.png")
        page = PAGE.format(width=picture.width, height=picture.height)
    (folder / "pages" / "p1.xml").write_text(page, encoding="utf-8")


def _texts(folder: Path) -> None:
    """Word lists and texts."""
    (folder / "codes.txt").write_text("7294158\n80636\n", encoding="utf-8")
    (folder / "streets.txt").write_text("Hauptweg\nBahnhofsplatz\nLindenweg\n", encoding="utf-8")
    (folder / "letters").mkdir()
    letters = "".join(f"{number:05}\nLindenweg {number}\n" for number in range(0, 90_000, 997))
    (folder / "letters" / "1905.txt").write_text(letters, encoding="utf-8")
    (folder / "texts.txt").write_text(letters * 10, encoding="utf-8")


def _configurations(folder: Path) -> None:
    """Configurations that the page has described."""
    for name in ("my.toml", "mine.toml"):
        (folder / name).write_text(CONFIG, encoding="utf-8")


def _repository(folder: Path) -> None:
    """A folder of models with one that loads quickly."""
    model = pretrained_root() / "digits-ctc"
    shutil.copytree(model, folder / "my" / "models" / "digits-ctc")


def _bundle(folder: Path) -> None:
    """A bundle with a step-wise head."""
    (version,) = (pretrained_root() / "digits").iterdir()
    shutil.copytree(version, folder / "my" / "bundle" / "1")


def _versions(folder: Path) -> None:
    """A folder of models, and a version that is about to be published."""
    (version,) = (pretrained_root() / "digits").iterdir()
    shutil.copytree(version, folder / "models" / "digits" / version.name)
    shutil.copytree(version, folder / "build" / "digits-4")


def _certificates(folder: Path) -> None:
    """An authority, and a certificate of this machine that it has signed."""
    now = datetime.now(UTC)
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
    here = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    blank = x509.CertificateBuilder().issuer_name(ca_name).not_valid_before(now - timedelta(days=1))
    blank = blank.not_valid_after(now + timedelta(days=30)).serial_number(x509.random_serial_number())
    authority = blank.subject_name(ca_name).public_key(ca_key.public_key())
    authority = authority.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    server = blank.subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")]))
    server = server.public_key(key.public_key()).add_extension(x509.SubjectAlternativeName(here), critical=False)
    for name, certificate in (("ca.pem", authority), ("server.pem", server)):
        signed = certificate.sign(ca_key, hashes.SHA256())
        (folder / name).write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    plain, unencrypted = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "server.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, plain, unencrypted))


BELONGINGS: dict[str, tuple[Callable[[Path], None], ...]] = {
    "README.md": (_repository,),
    "docs/decoding.md": (_bundle,),
    "docs/serving.md": (_versions, _certificates),
    "docs/training.md": (_configurations,),
}
"""What the reader of a page has besides."""
