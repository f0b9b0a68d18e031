"""From whatever a caller has to the bytes of an image file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from glyphline.service.client.errors import input_error

__all__ = ["ImageInput", "encode_image", "load_image"]

ImageInput: TypeAlias = bytes | Path | Image.Image | NDArray[Any]

_PNG_MODES = frozenset({"1", "L", "LA", "I", "I;16", "P", "RGB", "RGBA"})
_TIFF_MODES = frozenset({"CMYK", "F", "LAB"})  # not YCbCr, which some Pillows write and then cannot read


def encode_image(image: ImageInput) -> bytes:
    """Returns the bytes of an image file.

    Args:
        image: The bytes of a file, as they are; a path, whose file is read; a Pillow image; or an array of grey levels
            (height, width) or colours (height, width, 3 or 4), of bool, uint8 or, grey only, uint16.

    Raises:
        OSError: If the file cannot be read.
        TypeError: If it is none of these.
    """
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image)
    if isinstance(image, Path):
        return image.read_bytes()
    if isinstance(image, np.ndarray):
        return _encode_array(image)
    if isinstance(image, Image.Image):
        return _encode_picture(image)
    raise TypeError(f"an image is bytes, a Path, a Pillow image or an array, not {type(image).__name__}")


def load_image(image: ImageInput) -> bytes:
    """Does what `encode_image` does, with one kind of error for whatever an input is at fault for.

    Raises:
        InputError: If it is no image that can be sent; the message names the file.
    """
    try:
        return encode_image(image)
    except Exception as error:  # Pillow has many kinds
        source = image if isinstance(image, Path) else getattr(image, "filename", None)
        raise input_error(error, source or None) from error


def _encode_array(array: NDArray[Any]) -> bytes:
    array = np.ascontiguousarray(array)
    if array.dtype == np.bool_:
        array = array.astype(np.uint8) * 255
    grey = array.ndim == 2
    colour = array.ndim == 3 and array.shape[-1] in (3, 4)
    if not (array.dtype == np.uint8 and (grey or colour)) and not (array.dtype == np.uint16 and grey):
        raise TypeError(
            f"an array must be (height, width) of bool, uint8 or uint16, or (height, width, 3 or 4) of uint8, "
            f"not {array.shape} of {array.dtype}"
        )
    return _encode_picture(Image.fromarray(array))


def _encode_picture(picture: Image.Image) -> bytes:
    """Writes a Pillow image to a format that holds its mode without loss."""
    if picture.mode not in _PNG_MODES | _TIFF_MODES:
        picture = picture.convert("RGBA" if "A" in picture.mode or "a" in picture.mode else "RGB")
    buffer = io.BytesIO()
    if picture.mode in _TIFF_MODES:
        picture.save(buffer, "TIFF")
    else:
        picture.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()
