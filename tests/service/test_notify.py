"""systemd is told once the server is ready; without systemd nothing happens."""

from __future__ import annotations

import logging
import socket
from pathlib import Path

import pytest

from glyphline.service.notify import notify_ready


@pytest.mark.parametrize("kind", ["file", "abstract"])
def test_systemd_is_told(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(name if kind == "file" else f"\0{name}")
        monkeypatch.setenv("NOTIFY_SOCKET", name if kind == "file" else f"@{name}")
        notify_ready()
        listener.settimeout(60)
        assert listener.recv(100) == b"READY=1"


def test_without_systemd_nothing_happens(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify_ready()
    assert caplog.records == []


def test_a_server_serves_also_if_systemd_does_not_listen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "nobody"))
    with caplog.at_level(logging.WARNING):
        notify_ready()
    assert "could not be told" in caplog.text
