"""Fuzzes the reading of image files: whatever the bytes, a picture or an ImageError, soon and in little memory.

    pip install atheris
    python tests/fuzz/fuzz_images.py --seconds 300
    python tests/fuzz/fuzz_images.py build/fuzz/images/crash-…        tries one file again

The inputs that led to new code are kept in `build/fuzz/images/` and are where the next run begins. One that fails is
written there as `crash-…`, `timeout-…` or `oom-…`, and the exit code is not 0.
"""

from __future__ import annotations

import io
import struct
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from fuzzing import instrumented, main
from PIL import Image

with instrumented():
    from glyphline.models.errors import ImageError, ImageTooWideError
    from glyphline.models.image import ImageLimits, ImageSettings, normalise, read_header, read_image

LIMITS = ImageLimits(max_bytes=2**20, max_pixels=1_000_000)
SETTINGS = ImageSettings()
# What files are saved as: format, mode, options.
FILES: list[tuple[str, str, dict[str, Any]]] = [
    *(("PNG", mode, {}) for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")),
    *(("JPEG", mode, {}) for mode in ("L", "RGB", "CMYK")),
    ("JPEG", "RGB", {"progressive": True}),
    *(("BMP", mode, {}) for mode in ("1", "L", "P", "RGB", "RGBA")),
    *(("GIF", mode, {}) for mode in ("1", "L", "P", "RGBA")),
    *(("WEBP", mode, {"lossless": lossless}) for mode in ("RGB", "RGBA") for lossless in (True, False)),
    *(("TIFF", mode, {}) for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "LAB", "I;16", "I;16B", "I", "F")),
    *(("TIFF", "L", {"compression": each}) for each in ("tiff_lzw", "tiff_adobe_deflate", "packbits")),
    ("TIFF", "1", {"compression": "group4"}),
    ("TIFF", "RGB", {"compression": "jpeg"}),
    *(("PPM", mode, {}) for mode in ("1", "L", "RGB", "I", "F")),
]


def check(content: bytes) -> None:
    """Reads a file as the server does: first its header, then its pixels, then the strip that a network is given.

    Raises:
        Exception: If it finds a fault.
    """
    try:
        header = read_header(content, LIMITS)
    except ImageError as refusal:
        try:
            read_image(content, LIMITS)
        except type(refusal):
            return
        raise AssertionError(f"refused by its header and read all the same: {refusal}") from None
    try:
        image = read_image(content, LIMITS)
    except ImageError:
        return
    if (image.width, image.height) != (header.width, header.height):
        raise AssertionError(f"{header} becomes {image.width} x {image.height}")
    try:
        strip = normalise(image, SETTINGS)
    except ImageTooWideError:
        return
    assert strip.shape[0] == SETTINGS.height


def seeds() -> Iterator[bytes]:
    """Makes small files of every format and mode."""
    grey = np.full((12, 20), 255, dtype=np.uint8)
    grey[4:8, :] = 0
    grey[:, 4:8] = 90
    picture = Image.fromarray(grey)
    for file_format, mode, options in FILES:
        yield _saved(_as_mode(grey, mode), file_format, **options)
    tags = Image.Exif()
    tags[0x0112] = 6
    frames: dict[str, Any] = {"save_all": True, "append_images": [Image.fromarray(255 - grey)]}
    for file_format in ("PNG", "JPEG", "TIFF", "WEBP"):
        yield _saved(picture, file_format, exif=tags)
    for file_format in ("PNG", "GIF", "TIFF", "WEBP", "MPO"):
        yield _saved(picture, file_format, **frames)
    yield _saved(picture.convert("P"), "PNG", transparency=3)
    yield _saved(picture.convert("RGB"), "PNG", transparency=(255, 255, 255))
    yield b"P2 3 2 255\n0 1 2 250 251 252\n"
    yield b"P3 1 2 15\n0 1 2 13 14 15\n"
    yield b"P1 4 2\n0101\n1010\n"
    # Run lengths, which Pillow reads and does not write: 4 x 2 pixels of 8 bits.
    runs = b"\4\1\0\0\2\1\2\2\0\1"
    header = struct.pack("<IiiHHIIiiII", 40, 4, 2, 1, 8, 1, len(runs), 0, 0, 4, 0)
    yield b"BM" + struct.pack("<IHHI", 70 + len(runs), 0, 0, 70) + header + bytes(range(16)) + runs


def _as_mode(grey: np.ndarray[tuple[int, int], np.dtype[np.uint8]], mode: str) -> Image.Image:
    match mode:
        case "I;16" | "I;16B":
            levels = (grey.astype(np.uint16) * 257).astype("<u2" if mode == "I;16" else ">u2")
            return Image.frombytes(mode, (grey.shape[1], grey.shape[0]), levels.tobytes())
        case "LAB":
            return Image.fromarray(grey).convert("RGB").convert(mode)
        case _:
            return Image.fromarray(grey).convert(mode)


def _saved(image: Image.Image, file_format: str, **options: Any) -> bytes:  # noqa: ANN401  # as Pillow takes them
    buffer = io.BytesIO()
    image.save(buffer, file_format, **options)
    return buffer.getvalue()


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # as the server does: whoever sends a damaged file is told by its error
    sys.exit(main("images", check, seeds, description=__doc__))
