"""What decoders and worker processes say besides their answers."""

from __future__ import annotations

import logging
import os
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from glyphline.service.client import Client, InvalidRequestError, Result
from glyphline.service.output import follow_output
from glyphline.service.worker_handle import _SPAWN

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.service.conftest import ServerProcess


def tiff(*entries: tuple[int, int, int]) -> bytes:
    """A TIFF file of one directory: tag, type and value of each entry."""
    rows = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in entries)
    return b"II*\0" + struct.pack("<IH", 8, len(entries)) + rows + bytes(4) + bytes(200)


SHORT = 3
TOO_MANY_SAMPLES = tiff((256, SHORT, 10), (257, SHORT, 10), (258, SHORT, 8), (277, SHORT, 1027), (262, SHORT, 1))
# Pillow hands LZW to libtiff, which finds that there are no strips and says so on standard error.
NO_STRIPS = tiff((256, SHORT, 10), (257, SHORT, 10), (258, SHORT, 8), (259, SHORT, 5), (262, SHORT, 1))


def test_what_decoders_complain_of_becomes_lines_of_the_log(
    server: ServerProcess, client: Client, images: list[bytes], until: Callable[[Callable[[], bool], str], None]
) -> None:
    """Neither an error, which would wake somebody, nor a line that no reader of the log can take apart."""
    for content in (TOO_MANY_SAMPLES, NO_STRIPS):
        with pytest.raises(InvalidRequestError):
            client.recognize(content)
    assert isinstance(client.recognize(images[0]), Result)
    until(lambda: any("StripOffsets" in str(line.get("text")) for line in list(server.lines)), "libtiff's words")
    assert [text for text in server.raw if not text.startswith("{")] == []
    assert [line for line in server.lines if line["level"] in ("warning", "error")] == []


def test_pillow_neither_warns_nor_logs_in_a_server() -> None:
    """In a process of its own, since it is for good."""
    program = (
        "import logging, sys; from glyphline.models.image import read_header; from glyphline.models.errors import *;"
        "from glyphline.service.output import quiet_decoders\n"
        "if 'quiet' in sys.argv: quiet_decoders()\n"
        f"try: read_header({TOO_MANY_SAMPLES!r})\n"
        "except ImageError: pass\n"
    )
    said = [
        subprocess.run([sys.executable, "-c", program, *given], capture_output=True, check=True, text=True).stderr
        for given in ([], ["quiet"])
    ]
    assert "samples per pixel" in said[0]
    assert said[1] == ""


def test_a_worker_s_last_words_are_heard_in_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    heard, output = _SPAWN.Pipe(duplex=False)
    os.write(output.fileno(), b"terminate called\n\n \xff" + b"x" * 700 + b" and out")
    output.close()
    follow_output(heard, 3)
    while not heard.closed:
        pass
    texts = [vars(line)["text"] for line in caplog.records]
    assert texts[0] == "terminate called"
    assert "".join(texts[1:]) == "\ufffd" + "x" * 700 + " and out"
    assert {vars(line)["worker"] for line in caplog.records} == {3}
