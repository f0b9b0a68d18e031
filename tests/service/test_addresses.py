"""Why an address cannot be listened on is told in words that say what to change."""

from __future__ import annotations

import socket

import pytest

from glyphline.service.addresses import bracketed, check_address
from glyphline.service.errors import StartError


def test_a_free_address_is_left_free() -> None:
    check_address("127.0.0.1", 0)
    check_address("localhost", 0)
    check_address("0.0.0.0", 0)


def test_a_taken_port() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(StartError, match=f"127.0.0.1:{port}: the port is taken"):
            check_address("127.0.0.1", port)
    check_address("127.0.0.1", port)


def test_an_address_of_another_machine() -> None:
    with pytest.raises(StartError, match=r"203\.0\.113\.7:50051: this machine does not have the address"):
        check_address("203.0.113.7", 50051)


def test_a_name_that_is_none() -> None:
    with pytest.raises(StartError, match=r"nonsense\.invalid:50051: the name of the host is not known"):
        check_address("nonsense.invalid", 50051)


@pytest.mark.parametrize(("host", "written"), [("::1", "[::1]"), ("[::]", "[::]"), ("1.2.3.4", "1.2.3.4")])
def test_a_port_has_room_beside_an_address(host: str, written: str) -> None:
    assert bracketed(host) == written
