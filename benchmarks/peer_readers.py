"""Readers that `peers.py` compares: each loads one recogniser, on one thread, and reads encoded images with it.

Nothing is imported at the top that a peer's own environment may lack, not even Glyphline.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib
import io
import weakref
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

PAGE_SEGMENTATION_SINGLE_LINE = 7


class NotInstalledError(Exception):
    """A peer is not there; the message says how to install it."""


class Reader(Protocol):
    """A recogniser that is loaded.

    Attributes:
        version: Of the program and, where it has one of its own, of the model.
        model_bytes: Size of the files that hold the model.
    """

    version: str
    model_bytes: int

    def read(self, contents: Sequence[bytes]) -> list[str]:
        """Reads encoded images of one line each.

        Raises:
            Exception: Of any kind, where the recogniser refuses one.
        """
        ...


def import_peer(module: str, install: str) -> Any:  # noqa: ANN401  (peers have no types)
    """Imports a peer's module.

    Raises:
        NotInstalledError: If it is not there.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise NotInstalledError(f"{install} ({error})") from error


class GlyphlineReader:
    """Glyphline's own recogniser, of one model, decoder, provider and precision."""

    def __init__(
        self,
        model: str,
        decoder: str | None = None,
        beam_width: int = 10,
        provider: str = "onnxruntime",
        precision: str = "fp32",
    ) -> None:
        """Loads a model by name or from its folder.

        Args:
            model: Name of a shipped model, or the folder of a bundle.
            decoder: `greedy` or `beam`; None takes the bundle's own.
            beam_width: Width of the beam.
            provider: What runs the networks: `onnxruntime` or `openvino`.
            precision: Which variant of them: `fp32` or `int8`.
        """
        recognizers = import_peer("glyphline.models.recognizer", "pip install 'glyphline[cpu]'")
        import_peer("onnxruntime", "pip install 'glyphline[cpu]'")
        if provider == "openvino":
            import_peer("openvino", "pip install 'glyphline[openvino]'")
        decoding = importlib.import_module("glyphline.models.decoding")
        self._recognizer = recognizers.load_recognizer(model, threads=1, provider=provider, precision=precision)
        self._options = decoding.DecodingOptions(decoder=decoder, beam_width=beam_width)
        bundle = self._recognizer.bundle
        self.version = f"{bundle.manifest.version} ({bundle.manifest.head})"
        self.model_bytes = sum(bundle.file(name).stat().st_size for name in bundle.graphs(precision).values())

    def read(self, contents: Sequence[bytes]) -> list[str]:
        """Reads images in one call."""
        outcomes = self._recognizer.recognize(contents, self._options, max_batch=len(contents))
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
        return [outcome.text for outcome in outcomes]


class RapidOcrReader:
    """RapidOCR without its detector and classifier: the image is the line."""

    def __init__(self) -> None:
        """Loads the recognition model that the package takes if nothing is said."""
        install = "pip install rapidocr onnxruntime"
        package = import_peer("rapidocr", install)
        import_peer("onnxruntime", install)
        import_peer("cv2", install).setNumThreads(1)
        self._engine = package.RapidOCR(
            params={
                "EngineConfig.onnxruntime.intra_op_num_threads": 1,
                "EngineConfig.onnxruntime.inter_op_num_threads": 1,
                "Global.log_level": "error",
                # What finds lines on a page wants sides within bounds, and gets there by stretching; a recogniser
                # that is given the line scales it itself.
                "Global.min_side_len": 1,
                "Global.max_side_len": 10**6,
            }
        )
        self.read([_blank_image()])  # it loads the model when it is first needed
        recognition = self._engine.cfg.Rec
        name, size = (getattr(value, "value", value) for value in (recognition.ocr_version, recognition.model_type))
        self.version = f"{version('rapidocr')} ({name} {size})"
        path = getattr(self._engine.text_rec.session.session, "_model_path", None)
        self.model_bytes = Path(path).stat().st_size if path else 0

    def read(self, contents: Sequence[bytes]) -> list[str]:
        """Reads images one by one, which is all that it offers."""
        results = (self._engine(content, use_det=False, use_cls=False, use_rec=True) for content in contents)
        return [" ".join(result.txts or ()) for result in results]


class TesseractReader:
    """Tesseract through its C interface, so that the model is loaded once: the command loads it for every image."""

    def __init__(self, language: str = "eng") -> None:
        """Loads one language.

        Raises:
            NotInstalledError: If the library or the language is not there.
        """
        install = f"apt-get install tesseract-ocr tesseract-ocr-{language}"
        name = ctypes.util.find_library("tesseract")
        if name is None:
            raise NotInstalledError(f"{install} (no libtesseract)")
        self._images = import_peer("PIL.Image", "pip install pillow")
        self._library = _declare_tesseract(ctypes.CDLL(name))
        self._handle = self._library.TessBaseAPICreate()
        weakref.finalize(self, self._library.TessBaseAPIDelete, self._handle)
        if self._library.TessBaseAPIInit3(self._handle, None, language.encode()) != 0:
            raise NotInstalledError(f"{install} (it has no {language}.traineddata)")
        self._library.TessBaseAPISetPageSegMode(self._handle, PAGE_SEGMENTATION_SINGLE_LINE)
        self.version = f"{self._library.TessVersion().decode()} ({language})"
        folder = Path(self._library.TessBaseAPIGetDatapath(self._handle).decode())
        self.model_bytes = (folder / f"{language}.traineddata").stat().st_size

    def read(self, contents: Sequence[bytes]) -> list[str]:
        """Reads images one by one."""
        return [self._read(content) for content in contents]

    def _read(self, content: bytes) -> str:
        image = self._images.open(io.BytesIO(content))
        if image.mode in ("LA", "PA", "RGBA") or "transparency" in image.info:
            opaque = image.convert("RGBA")
            image = self._images.new("RGB", image.size, "white")
            image.paste(opaque, mask=opaque)
        image = image.convert("L" if image.mode in ("1", "L") else "RGB")
        channels = len(image.getbands())
        width, height = image.size
        self._library.TessBaseAPISetImage(self._handle, image.tobytes(), width, height, channels, channels * width)
        text = self._library.TessBaseAPIGetUTF8Text(self._handle)
        if not text:
            raise ValueError("Tesseract could not read an image")
        try:
            return str(ctypes.string_at(text).decode()).strip()
        finally:
            self._library.TessDeleteText(text)


class DdddOcrReader:
    """ddddocr, a reader of captchas."""

    def __init__(self, *, beta: bool = False) -> None:
        """Loads the older model, which it takes if nothing is said, or the newer and larger one."""
        package = import_peer("ddddocr", "pip install ddddocr")
        # It offers no way to set the number of threads.
        runtime: Any = importlib.import_module("onnxruntime")
        many_threads = runtime.InferenceSession
        runtime.InferenceSession = _one_thread(runtime)
        try:
            self._reader = package.DdddOcr(beta=beta, show_ad=False)
        finally:
            runtime.InferenceSession = many_threads
        self.version = version("ddddocr")
        file = "common.onnx" if beta else "common_old.onnx"
        path = Path(package.__file__).parent / file
        self.model_bytes = path.stat().st_size if path.is_file() else 0

    def read(self, contents: Sequence[bytes]) -> list[str]:
        """Reads images one by one, which is all that it offers."""
        return [str(self._reader.classification(content)) for content in contents]


READERS: Mapping[str, Callable[..., Reader]] = {
    "glyphline": GlyphlineReader,
    "rapidocr": RapidOcrReader,
    "tesseract": TesseractReader,
    "ddddocr": DdddOcrReader,
    "ddddocr-beta": lambda: DdddOcrReader(beta=True),
}
"""What can be read with; each loads its model when it is called."""


def _declare_tesseract(library: ctypes.CDLL) -> ctypes.CDLL:
    """Says what the functions of Tesseract's `capi.h` take and give, as far as they are used here."""
    handle, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "TessVersion": (text, []),
        "TessBaseAPICreate": (handle, []),
        "TessBaseAPIDelete": (None, [handle]),
        "TessBaseAPIInit3": (number, [handle, text, text]),
        "TessBaseAPISetPageSegMode": (None, [handle, number]),
        "TessBaseAPIGetDatapath": (text, [handle]),
        "TessBaseAPISetImage": (None, [handle, text, number, number, number, number]),
        # Not as text, which ctypes would copy so that the original could not be freed.
        "TessBaseAPIGetUTF8Text": (ctypes.c_void_p, [handle]),
        "TessDeleteText": (None, [ctypes.c_void_p]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _one_thread(runtime: Any) -> Callable[..., Any]:  # noqa: ANN401  (ONNX Runtime has no types)
    """Returns a stand-in for ONNX Runtime's sessions that opens them with one thread."""
    session = runtime.InferenceSession

    def open_session(path: str, **others: Any) -> Any:  # noqa: ANN401
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        return session(path, options, **others)

    return open_session


def _blank_image() -> bytes:
    """Returns a white strip, as PGM, which needs no library to write."""
    width, height = 96, 32
    return b"P5 %d %d 255\n" % (width, height) + b"\xff" * (width * height)
