"""Tells systemd that the server is ready, so that whatever waits for it begins no earlier (`Type=notify`)."""

from __future__ import annotations

import logging
import os
import socket

__all__ = ["notify_ready"]

logger = logging.getLogger(__name__)


def notify_ready() -> None:
    """Says that this process is ready, if systemd started it and waits for that; what fails is told in the log."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # of the abstract kind, which has no file
        address = f"\0{address[1:]}"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as connection:
            connection.connect(address)
            connection.sendall(b"READY=1")
    except OSError as error:
        logger.warning("systemd could not be told that the server is ready: %s", error)
