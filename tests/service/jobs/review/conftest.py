"""A real browser, driven through a pair of pipes: neither a driver nor a port is needed."""

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
KEYS = {
    "Enter": ("Enter", 13, "\r"),
    "Escape": ("Escape", 27, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    "End": ("End", 35, ""),
    "Backspace": ("Backspace", 8, ""),
}
ALT, CTRL = 1, 2


class Browser:
    """One window of Chromium, spoken to in its own protocol."""

    def __init__(self, command: str, folder: Path) -> None:
        to_browser, self._to_browser = os.pipe()
        self._from_browser, from_browser = os.pipe()

        self.downloads = folder / "downloads"
        # It reads from descriptor 3 and writes to 4.
        connected = f'exec "$@" 3</dev/fd/{to_browser} 4>/dev/fd/{from_browser}'
        self._process = subprocess.Popen(
            [
                *("sh", "-c", connected, "sh", command),
                *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
                *(f"--user-data-dir={folder / 'profile'}", "--remote-debugging-pipe", "about:blank"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(to_browser, from_browser),
        )
        os.close(to_browser)
        os.close(from_browser)
        self._numbers = itertools.count(1)
        self._rest = b""
        self._events: list[dict[str, Any]] = []
        self._session: str | None = None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads), eventsEnabled=True)
        self._session = session
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Has something done, and waits for the answer."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._events.append(answer)

    def wait_for(self, method: str, **values: object) -> dict[str, Any]:
        """Waits for an event whose parameters have these values."""
        while True:
            for event in self._events:
                given = event.get("params", {})
                if event.get("method") == method and all(given.get(name) == value for name, value in values.items()):
                    self._events.remove(event)
                    return event
            self._events.append(self._receive())

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            block = os.read(self._from_browser, 2**20)
            assert block, "the browser has gone"
            self._rest += block
        message, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def open(self, page: Path) -> None:
        """Opens a file, and waits until it is loaded."""
        self._events.clear()
        self.call("Page.navigate", url=page.as_uri())
        self.wait_for("Page.loadEventFired")

    def value(self, expression: str) -> Any:  # noqa: ANN401  (whatever the page says)
        """Evaluates an expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key: str, modifiers: int = 0) -> None:
        """Presses a key and lets it go."""
        name, code, text = KEYS[key] if key in KEYS else (key, ord(key.upper()), "" if modifiers else key)
        where = name if key in KEYS else f"Digit{key}" if key.isdigit() else f"Key{key.upper()}"
        given = {"key": name, "code": where, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown", **given, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **given)

    def type(self, text: str) -> None:
        """Types characters at the caret; what is selected is replaced."""
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Clicks into the middle of the first element that a selector finds."""
        box = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            " return {x: b.x + b.width / 2, y: b.y + b.height / 2}; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **box)

    def downloaded(self) -> Path:
        """Waits for a download to end, and returns its file."""
        name = self.wait_for("Browser.downloadWillBegin")["params"]["suggestedFilename"]
        self.wait_for("Browser.downloadProgress", state="completed")
        return self.downloads / str(name)

    def show(self, width: int, height: int, *, dark: bool = False) -> None:
        """Sets the size of the window, and whether the reader likes it dark."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self) -> bytes:
        """Draws the window, as a PNG file."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def complaints(self) -> list[str]:
        """Returns what the page has made the browser complain of, and what it has asked the network for."""
        self.value("0")  # all that has happened before has come now
        found = []
        for event in self._events:
            given = event.get("params", {})
            if event["method"] == "Log.entryAdded":
                found.append(str(given["entry"]["text"]))
            elif event["method"] == "Runtime.exceptionThrown":
                found.append(str(given["exceptionDetails"]))
            elif event["method"] == "Network.requestWillBeSent" and not given["request"]["url"].startswith(
                ("file:", "data:", "blob:")
            ):
                found.append(str(given["request"]["url"]))
        return found

    def close(self) -> None:
        """Ends the browser."""
        self._session = None
        self.call("Browser.close")
        self._process.wait()
        os.close(self._to_browser)
        os.close(self._from_browser)


@pytest.fixture(scope="session")
def row() -> Callable[..., dict[str, Any]]:
    """Returns a function that makes a row of a job: `row("a.png", "12", 0.5, reference="13")`."""

    def make(name: str, text: str | None, confidence: float | None = 0.5, **more: object) -> dict[str, Any]:
        error = None if text is not None else {"code": "empty_image", "message": "the file is empty"}
        values: dict[str, Any] = {"id": name, "source": name, "text": text, "error": error, "truncated": False}
        values["confidence"] = None if text is None else confidence
        return values | {"model": "digits", "version": 1, "sha256": None, "decoder": "greedy"} | more

    return make


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window; without Chromium the test is skipped."""
    command = next((found for name in NAMES if (found := shutil.which(name))), None)
    if command is None:
        pytest.skip(f"there is no browser here ({', '.join(NAMES)})")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        running = Browser(command, Path(folder))
        yield running
        running.close()
