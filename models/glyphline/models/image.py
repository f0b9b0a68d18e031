"""From the bytes of an image file to the grey strip that a network reads.

Three steps, each usable alone: `read_image` decodes a file to grey pixels, `normalise` brings those to a network's
height, polarity and contrast, `normalised_width` foretells how wide the result is. Training and serving both call these
and nothing else, so that what a network meets in service is what it was trained on.

The grey value of a colour is the luma of ITU-R BT.601, `(299 R + 587 G + 114 B) / 1000`, whatever the file's mode.
"""

import io
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np

# Imported for their entries in PIL's table of formats: only these formats are ever opened.
from PIL import (
    BmpImagePlugin,  # noqa: F401
    GifImagePlugin,  # noqa: F401
    Image,
    ImageFile,
    JpegImagePlugin,  # noqa: F401
    PngImagePlugin,  # noqa: F401
    PpmImagePlugin,  # noqa: F401
    TiffImagePlugin,  # noqa: F401
    WebPImagePlugin,  # noqa: F401
)
from pydantic import BaseModel, ConfigDict, Field

from glyphline.models.errors import (
    EmptyImageError,
    ImageError,
    ImageTooLargeError,
    ImageTooWideError,
    UndecodableImageError,
)
from glyphline.models.grey import GreyArray, grey_pixels
from glyphline.models.plain_header import plain_size

__all__ = [
    "FORMATS",
    "FORMAT_SUFFIXES",
    "SUFFIXES",
    "GreyImage",
    "ImageHeader",
    "ImageLimits",
    "ImageSettings",
    "normalise",
    "normalised_width",
    "read_header",
    "read_image",
    "to_grey",
]

FORMAT_SUFFIXES = {
    "PNG": ".png",
    "JPEG": ".jpg",
    "WEBP": ".webp",
    "BMP": ".bmp",
    "TIFF": ".tif",
    "GIF": ".gif",
    "PPM": ".pgm",
}
"""The ending that a file of each format is given."""
FORMATS = tuple(FORMAT_SUFFIXES)
SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".gif", ".ppm", ".pgm", ".pbm", ".pnm")
"""How the names of their files end, the likeliest first."""

_ORIENTATION_TAG = 0x0112
_TRANSPOSITIONS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_LEAST_SPAN = (
    48  # grey levels: a strip with less contrast is not stretched to full range, or its noise would become ink
)
_POWERS = np.arange(256, dtype=np.int64) ** np.arange(1, 4, dtype=np.int64)[:, None]  # (3, 256): v, v², v³


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """How large an image may be. Both limits are checked before any pixel is decoded.

    Attributes:
        max_bytes: Largest file.
        max_pixels: Largest width times height.
    """

    max_bytes: int = 20 * 2**20
    max_pixels: int = 25_000_000


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """What an image file says of itself before its pixels are decoded.

    Attributes:
        width: Pixels, after the EXIF orientation is applied.
        height: Pixels, after the EXIF orientation is applied.
        format: One of `FORMATS`.
    """

    width: int
    height: int
    format: str


@dataclass(frozen=True, slots=True, eq=False)
class GreyImage:
    """A decoded image.

    Attributes:
        pixels: uint8 grey levels (height, width), 0 black and 255 white.
    """

    pixels: GreyArray

    def __post_init__(self) -> None:
        if self.pixels.dtype != np.uint8 or self.pixels.ndim != 2:
            raise ImageError(
                f"grey pixels must be uint8 (height, width), not {self.pixels.dtype} with shape {self.pixels.shape}"
            )
        if self.pixels.size == 0:
            raise EmptyImageError(f"the image has no pixels: it is {self.width} x {self.height}")

    @property
    def width(self) -> int:
        """Pixels from left to right."""
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        """Pixels from top to bottom."""
        return int(self.pixels.shape[0])


class ImageSettings(BaseModel):
    """How a strip is brought to the form one network reads; part of every bundle.

    Attributes:
        height: Height in pixels that every strip is scaled to.
        padding: Columns of background added on the left and again on the right, counted after scaling.
        max_width: Widest strip, after scaling and with its padding. A wider one is refused.
        polarity: Whether ink is darker than its background. `auto` decides for each strip.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    height: int = Field(default=40, ge=1)
    padding: int = Field(default=4, ge=0)
    max_width: int = Field(default=2048, ge=1)
    polarity: Literal["auto", "dark_on_light", "light_on_dark"] = "auto"


def read_header(content: bytes, limits: ImageLimits = ImageLimits()) -> ImageHeader:
    """Reads an image's size and format without decoding its pixels.

    Args:
        content: The file's bytes.
        limits: How large it may be.

    Returns:
        The size as `read_image` will find it, orientation applied. The file may be damaged further on.

    Raises:
        ImageError: If the file is empty, too large or not an image of one of `FORMATS`.
    """
    if len(content) <= limits.max_bytes and (plain := plain_size(content)) is not None:
        header = ImageHeader(*plain)
        if header.width * header.height <= limits.max_pixels:
            return header
    image = _open(content, limits)
    with _decoding(image):
        swapped = _orientation(image, content) >= 5
    width, height = reversed(image.size) if swapped else image.size
    return ImageHeader(width=width, height=height, format=_format(image))


def read_image(content: bytes, limits: ImageLimits = ImageLimits()) -> GreyImage:
    """Decodes an image file to grey pixels: the first frame, upright, transparency resolved.

    Args:
        content: The file's bytes: PNG, JPEG, WebP, BMP, TIFF, GIF or PNM.
        limits: How large it may be.

    Returns:
        The picture as its makers meant it to be seen; see `to_grey` for every pixel mode.

    Raises:
        ImageError: If the file is empty, too large, cut short, or not an image of one of `FORMATS`.
    """
    image = _open(content, limits)
    with _decoding(image):
        orientation = _orientation(image, content)
        image.load()
        transposition = _TRANSPOSITIONS.get(orientation)
        return to_grey(image if transposition is None else image.transpose(transposition))


def to_grey(image: Image.Image) -> GreyImage:
    """Converts a Pillow image of any mode to grey levels; `glyphline.models.grey` states the rules."""
    return GreyImage(grey_pixels(image))


def normalised_width(width: int, height: int, settings: ImageSettings, max_width: int | None = None) -> int:
    """Foretells the width that `normalise` gives a strip, from its own size alone.

    Args:
        width: Width of the strip, in pixels.
        height: Height of the strip, in pixels.
        settings: The bundle's settings.
        max_width: Takes the place of the settings' own, where it is given.

    Returns:
        The width at the height of the settings, with the padding on both sides.

    Raises:
        ImageTooWideError: If it is above `max_width`.
    """
    limit = settings.max_width if max_width is None else max_width
    scaled = max(1, round(width * settings.height / height))
    padded = scaled + 2 * settings.padding
    if padded > limit:
        raise ImageTooWideError(
            f"a strip of {width} x {height} pixels is {padded} pixels wide at the model's height of {settings.height}; "
            f"the limit is {limit}"
        )
    return padded


def normalise(image: GreyImage, settings: ImageSettings) -> GreyArray:
    """Brings a strip to the one form a network reads: its height, bright ink on a dark ground, full contrast.

    Which of the two is the ink is told by the skew of the grey levels: ink is the minority, so light ink pulls the
    third central moment up and dark ink pulls it down; without skew ink is taken to be dark. The moment of an inverted
    strip is the same with the other sign, so a strip and its negative give the same result, up to the rounding of the
    scaling.

    A column `x` of the result lies over `(x - padding) * image.height / settings.height` of the image.

    Args:
        image: The strip.
        settings: The bundle's settings.

    Returns:
        uint8 (settings.height, width) where width is that of `normalised_width`; ink high, background low.

    Raises:
        ImageTooWideError: If the strip is too long for its height.
    """
    padding = settings.padding
    width = normalised_width(image.width, image.height, settings)
    strip = Image.fromarray(image.pixels)
    strip = strip.resize((width - 2 * padding, settings.height), Image.Resampling.BILINEAR)
    pixels = np.asarray(strip)

    # All that follows depends on the grey levels alone, so it is worked out on their histogram, as one table.
    counts = np.bincount(pixels.ravel(), minlength=256)
    levels = np.flatnonzero(counts)
    darkest, lightest = int(levels[0]), int(levels[-1])
    ink_is_light = _skew(counts) > 0 if settings.polarity == "auto" else settings.polarity == "light_on_dark"
    span = max(lightest - darkest, _LEAST_SPAN)
    ramp = np.arange(256)
    above = ramp - darkest if ink_is_light else lightest - ramp
    table = ((2 * 255 * above + span) // (2 * span)).clip(0, 255).astype(np.uint8)

    ground = counts.cumsum().searchsorted([(pixels.size - 1) // 2, pixels.size // 2], side="right")  # two middle levels
    result = np.full((settings.height, width), (int(table[ground[0]]) + int(table[ground[1]]) + 1) // 2, dtype=np.uint8)
    result[:, padding : width - padding] = table[pixels]
    return result


def _skew(counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    """Third central moment of a histogram (256,), times the cube of its total.

    In Python's integers it is exact, hence exactly antisymmetric and exactly zero for a symmetric strip.
    """
    total = int(counts.sum())
    first, second, third = (int(moment) for moment in _POWERS @ counts)
    return total * total * third - 3 * total * first * second + 2 * first**3


def _open(content: bytes, limits: ImageLimits) -> ImageFile.ImageFile:
    """Opens an image lazily and checks its size.

    Formats are opened from Pillow's table rather than by `Image.open`, which warns about or refuses large images by a
    limit that is global to the process, before this function can apply the caller's.
    """
    if not content:
        raise EmptyImageError("the image is empty: it has no bytes")
    if len(content) > limits.max_bytes:
        raise ImageTooLargeError(f"the image has {len(content)} bytes; the limit is {limits.max_bytes}")
    prefix = content[:16].ljust(16, b"\0")  # some formats look at bytes that a very short file does not have
    for name in FORMATS:
        factory, accept = Image.OPEN[name]
        if accept is None or accept(prefix) is not True:
            continue
        try:
            image = factory(io.BytesIO(content), "")
        except MemoryError:
            raise
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
            # Pillow's limit, which guards some formats even here, where they allocate before their size is known to us.
            most = Image.MAX_IMAGE_PIXELS or 0
            limit = min(limits.max_pixels, most)
            raise ImageTooLargeError(f"the image has more than {most} pixels; the limit is {limit}") from error
        except Exception as error:
            raise UndecodableImageError(f"the {name} image has a damaged header or no pixels") from error
        width, height = image.size
        if width * height > limits.max_pixels:
            raise ImageTooLargeError(
                f"the image has {width} x {height} = {width * height} pixels; the limit is {limits.max_pixels}"
            )
        return image
    raise UndecodableImageError(f"not an image of a supported format ({', '.join(FORMATS)})")


@contextmanager
def _decoding(image: ImageFile.ImageFile) -> Iterator[None]:
    """Turns whatever a decoder raises on a damaged file into the one error callers handle.

    Decoders raise nearly any exception on hostile bytes, so the net is wide; running out of memory is no such fault.
    """
    try:
        yield
    except (ImageError, MemoryError):
        raise
    except Exception as error:
        raise UndecodableImageError(f"the {_format(image)} image is damaged or cut short: {error}") from error


def _format(image: ImageFile.ImageFile) -> str:
    # Several pictures behind one JPEG header, as phones write them, make Pillow say MPO.
    return "JPEG" if image.format == "MPO" else str(image.format)


def _orientation(image: ImageFile.ImageFile, content: bytes) -> int:
    """EXIF orientation, 1 to 8, still to be applied; 1 if there is none or its metadata is damaged."""
    if image.format == "TIFF":
        return 1  # Pillow applies it while loading, and states the size accordingly
    try:
        # Not `image.getexif`: the one of PNG decodes the pixels when no EXIF precedes them.
        exif = Image.Image.getexif(image)
        if image.format == "PNG" and _ORIENTATION_TAG not in exif:
            exif.load(_png_exif(content))
        value = exif.get(_ORIENTATION_TAG, 1)
    except Exception:  # metadata must not cost the picture
        return 1
    return value if isinstance(value, int) and value in _TRANSPOSITIONS else 1


def _png_exif(content: bytes) -> bytes:
    """Finds the EXIF chunk of a PNG file, which may follow the pixels."""
    position = 8
    while position + 8 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, position)
        if kind == b"eXIf":
            return content[position + 8 : position + 8 + length]
        position += length + 12  # length, kind and checksum are four bytes each
    return b""
