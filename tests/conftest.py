"""What all tests share: a guard for the folder layout, quiet machines, pictures, and a real browser."""

import base64
import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Before NumPy or a runtime starts its threads: tests share the machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from glyphline.models.repository import ModelRepository, pretrained_root

# A shell that starts the tests in the background makes them, and all that they start, deaf to Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parents[1]
TRAINING_PACKAGES = ("torch", "matplotlib", "onnx")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
KEYS = {
    "Enter": ("Enter", 13, "\r"),
    "Escape": ("Escape", 27, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    "End": ("End", 35, ""),
    "Backspace": ("Backspace", 8, ""),
    "Tab": ("Tab", 9, ""),
    " ": (" ", 32, " "),
}
BROWSER_PATIENCE_SECONDS = 60.0  # how long a test waits for what a page must come to; far more than it takes

# How long an example takes depends on the machine's load, so no test fails for it.
hypothesis.settings.register_profile("glyphline", deadline=None, print_blob=True)
hypothesis.settings.load_profile("glyphline")


def pytest_configure() -> None:
    """Stops early, with the reason, if the one rule of the folder layout is broken."""
    stray = sorted(ROOT.glob("*/glyphline/__init__.py"))
    if stray:
        raise pytest.UsageError(f"remove {stray[0]}: glyphline spans four folders, and this file hides the other three")


def pytest_report_header() -> list[str]:
    """Says what is left out for want of packages."""
    missing = [name for name in TRAINING_PACKAGES if find_spec(name) is None]
    return [f"tests of training are left out: they need {', '.join(missing)} (the extra `train`)"] if missing else []


@pytest.fixture(scope="session")
def gpu() -> str:
    """A GPU that ONNX Runtime can use; without one the test is skipped."""
    onnxruntime = pytest.importorskip("onnxruntime")
    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers() or not Path("/dev/nvidiactl").exists():
        pytest.skip("there is no GPU for ONNX Runtime here")
    return "cuda"


@pytest.fixture(scope="session")
def shipped_version() -> int:
    """The latest version of the shipped models, which share their versions."""
    return ModelRepository([pretrained_root()]).latest("digits")


@pytest.fixture(scope="session")
def repository_root() -> Path:
    """The folder that holds pyproject.toml."""
    return ROOT


@pytest.fixture(scope="session")
def strips_folder() -> Path:
    """Small real strips of digits with their labels.tsv; tests/data/README.md says where they come from."""
    return ROOT / "tests" / "data" / "strips"


@pytest.fixture(scope="session")
def words_folder() -> Path:
    """Small real strips of words, likewise."""
    return ROOT / "tests" / "data" / "words"


@pytest.fixture(scope="session")
def handwriting_folder() -> Path:
    """Small real strips of handwriting, likewise."""
    return ROOT / "tests" / "data" / "handwriting"


@pytest.fixture(scope="session")
def strips(strips_folder: Path) -> list[tuple[Path, str]]:
    """Every real strip: its file and its text."""
    lines = (strips_folder / "labels.tsv").read_text(encoding="utf-8").splitlines()
    return [(strips_folder / name, text) for name, text in (line.split("\t") for line in lines)]


@pytest.fixture(scope="session")
def encode() -> Callable[..., bytes]:
    """Returns a function that writes pixels, or a Pillow image, to the bytes of a file: `encode(pixels, "PNG")`."""

    def encode_image(picture: NDArray[Any] | Image.Image, file_format: str = "PNG", **options: object) -> bytes:
        image = picture if isinstance(picture, Image.Image) else Image.fromarray(np.ascontiguousarray(picture))
        buffer = io.BytesIO()
        image.save(buffer, file_format, **options)
        return buffer.getvalue()

    return encode_image


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
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

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

    def open(self, page: Path | str) -> None:
        """Opens a file or an address, and waits until it is loaded."""
        self._events.clear()
        opened = self.call("Page.navigate", url=page.as_uri() if isinstance(page, Path) else page)
        # Of this page: the one before may have been loading still.
        self.wait_for("Page.lifecycleEvent", name="load", loaderId=opened["loaderId"])

    def value(self, expression: str) -> Any:  # noqa: ANN401  (whatever the page says)
        """Evaluates an expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait_until(self, expression: str) -> None:
        """Waits until an expression of the page is true."""
        deadline = time.monotonic() + BROWSER_PATIENCE_SECONDS
        while not self.value(expression):
            assert time.monotonic() < deadline, f"in vain: {expression}"
            time.sleep(0.05)

    def press(self, key: str, modifiers: int = 0) -> None:
        """Presses a key and lets it go."""
        name, code, text = KEYS[key] if key in KEYS else (key, ord(key.upper()), "" if modifiers else key)
        where = (
            "Space" if key == " " else name if key in KEYS else f"Digit{key}" if key.isdigit() else f"Key{key.upper()}"
        )
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

    def draw(self, selector: str, *points: tuple[float, float]) -> None:
        """Draws a line with the mouse through points of an element, given from its left upper corner."""
        box = self.value(
            f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [b.x, b.y]; })()"
        )
        kinds = ["mousePressed", *["mouseMoved"] * (len(points) - 1)]
        for kind, (x, y) in zip([*kinds, "mouseReleased"], [*points, points[-1]], strict=True):
            where = {"x": box[0] + x, "y": box[1] + y}
            self.call("Input.dispatchMouseEvent", type=kind, button="left", buttons=1, clickCount=1, **where)

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

    def complaints(self, own: str = "file:") -> list[str]:
        """Returns what the page has made the browser complain of, and what it has asked others than its own for."""
        self.value("0")  # all that has happened before has come now
        found = []
        for event in self._events:
            given = event.get("params", {})
            if event["method"] == "Log.entryAdded":
                found.append(str(given["entry"]["text"]))
            elif event["method"] == "Runtime.exceptionThrown":
                found.append(str(given["exceptionDetails"]))
            elif event["method"] == "Network.requestWillBeSent" and not given["request"]["url"].startswith(
                (own, "data:", "blob:")
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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window; without Chromium the test is skipped."""
    command = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if command is None:
        pytest.skip("there is no browser here: install chromium, as Debian calls it")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        running = Browser(command, Path(folder))
        yield running
        running.close()
