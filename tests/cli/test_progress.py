import os
import subprocess
import sys
from pathlib import Path

import pytest

from glyphline.cli import progress
from glyphline.cli.progress import open_reporter


def test_elsewhere_than_on_a_terminal_a_line_comes_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_reporter(quiet=False, count=None) as reporter:
        reporter.update(1, 0)
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0)
        reporter.update(12_345, 6)
    assert capsys.readouterr().err.startswith("12,345 images, 6 failed, ")


def test_quiet_shows_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0)
    with open_reporter(quiet=True, count=None) as reporter:
        reporter.update(1, 0)
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_a_terminal_gets_a_bar(strips_folder: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "text.png").write_text("not a picture")
    inputs = [str(strips_folder), str(tmp_path / "text.png")]
    command = [sys.executable, "-m", "glyphline", "transcribe", *inputs, "-o", str(tmp_path / "o"), "--workers", "1"]
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        process = subprocess.Popen(command, stderr=theirs, env=environment)
        os.close(theirs)
        shown = b""
        try:
            while part := terminal.read(4096):
                shown += part
        except OSError:  # how Linux ends a terminal whose other side is closed
            pass
        assert process.wait() == 3
    images = sum(1 for path in strips_folder.iterdir() if path.suffix in (".png", ".jpg")) + 1
    for part in ("Reading", f"{images}/{images}", "images/s", "1 failed"):
        assert part in shown.decode()
