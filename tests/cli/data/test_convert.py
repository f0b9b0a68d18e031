"""A data set stays the same in every format."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from glyphline.cli.exit_codes import ExitCode

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_conversion_keeps_bytes_and_counts_what_is_damaged(invoke: Command, data: Path) -> None:
    source = data / "strips"
    for target in ("lmdb", "webdataset", "parquet", "folder"):
        assert invoke("data", "convert", source, data / target, "--to", target, "--quiet").returncode == 0
        source = data / target
    line = (data / "strips" / "labels.tsv").read_text().splitlines()[3]
    name, text = line.split("\t")
    copies = [
        path for path in (data / "folder").rglob("*.*") if path.read_bytes() == (data / "strips" / name).read_bytes()
    ]
    assert len(copies) == 1
    assert invoke("data", "convert", data / "strips", data / "lmdb").returncode == ExitCode.USAGE
    (data / "strips" / name).write_bytes(b"\x89PNG")
    refused = invoke("data", "convert", data / "strips", data / "a", "--quiet")
    assert refused.returncode == ExitCode.USAGE
    assert "--skip-damaged" in refused.stderr
    skipped = invoke("data", "convert", data / "strips", data / "b", "--skip-damaged", "--quiet")
    assert "25 strips; 1 skipped, unreadable" in skipped.stdout
    assert text
