"""`glyphline playground`: what it refuses, and its page in a real browser, by real keys and strokes of the mouse."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from glyphline.cli import playground as command
from glyphline.cli.exit_codes import ExitCode

Command = Callable[..., subprocess.CompletedProcess[str]]
TEXT = "document.querySelector('#result .text')?.textContent"

needs_gradio = pytest.mark.skipif(
    find_spec("gradio") is None, reason="needs gradio: pip install 'glyphline[playground]'"
)


def test_what_is_missing_is_named(invoke: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    done = invoke("playground")
    assert done.returncode == ExitCode.USAGE
    assert "pip install 'glyphline[playground]'" in done.stderr


@needs_gradio
@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["--model", "none"], ExitCode.MODEL, "no model 'none'"),
        (["--model-repository", "none"], ExitCode.USAGE, "none: no such folder"),
        (["--tls"], ExitCode.USAGE, "--tls is for --server"),
        (
            ["--server", "localhost:1", "--model-repository", "."],
            ExitCode.USAGE,
            "--model-repository is for reading here",
        ),
        (["--server", "example.org:1", "--token-file", "token"], ExitCode.USAGE, "add --tls"),
        (["--port", "99999"], ExitCode.USAGE, "65535"),
        (["--host", "host.invalid"], ExitCode.SERVER, "the name of the host is not known"),
    ],
)
def test_mistakes_are_explained(invoke: Command, arguments: list[str], code: ExitCode, reason: str) -> None:
    done = invoke("playground", "--port", "0", *arguments)  # the usual one may be taken
    assert done.returncode == code
    assert reason in done.stderr


@pytest.fixture(scope="module")
def address(environment: dict[str, str]) -> Iterator[str]:
    """A playground in a process of its own; it must end in order."""
    arguments = [sys.executable, "-m", "glyphline", "playground", "--port", "0", "--model", "digits-ctc"]
    process = subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("the playground is at http://127.0.0.1:")
        yield line.split()[4].rstrip(";")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@needs_gradio
@pytest.mark.slow
def test_by_keyboard_and_by_mouse(browser: Any, address: str, tmp_path: Path) -> None:  # noqa: ANN401  (the class is conftest's)
    browser.show(1280, 800)
    browser.open(address)
    browser.wait_until("document.querySelector('#picture canvas')?.width > 600")

    # By Tab and Enter alone, to an example and to its reading.
    focused = "document.activeElement.getAttribute('aria-label')"
    while browser.value(focused) != "Example: meter":
        browser.press("Tab")
        assert browser.value("document.activeElement !== document.body")
    assert browser.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    browser.press("Enter")
    browser.wait_until(f"{TEXT} === '43434'")
    assert browser.value("document.querySelectorAll('#result .characters li').length") == 5
    assert browser.value("document.querySelectorAll('#result tbody tr').length") == 3
    browser.wait_until("document.querySelector('#result .strip img').naturalWidth > 300")

    # Of an example of words, the model of words is in charge; of one of digits, one of digits again.
    browser.click("[aria-label='Example: words']")
    browser.wait_until(f"{TEXT}?.startsWith('and, as if')")
    browser.click("[aria-label='Example: meter']")
    browser.wait_until(f"{TEXT} === '43434'")

    # By the mouse: a 7 and a 1.
    browser.click("[data-do=clear]")
    browser.wait_until("document.querySelector('#result .waiting') !== null")
    browser.draw("#picture canvas", (60, 40), (110, 42), (80, 140))
    browser.draw("#picture canvas", (165, 40), (160, 140))
    browser.wait_until(f"{TEXT} === '71'")

    # A file that is no picture, dropped.
    text_file = tmp_path / "text.png"
    text_file.write_text("no picture")
    for kind in ("dragEnter", "dragOver", "drop"):
        dragged = {"items": [], "files": [str(text_file)], "dragOperationsMask": 1}
        browser.call("Input.dispatchDragEvent", type=kind, x=300, y=150, data=dragged)
    browser.wait_until("document.querySelector('#result .problem')?.textContent.startsWith('Not an image')")

    browser.show(390, 844)
    browser.wait_until("document.documentElement.scrollWidth <= 390")
    assert browser.complaints(address) == []
