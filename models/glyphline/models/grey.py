"""One grey picture from every pixel mode that Pillow knows.

The same picture stored in any mode gives the same grey levels, up to one level where the mode itself rounds:

- Colours become luma (ITU-R BT.601). CMYK, YCbCr and HSV go by way of RGB; LAB keeps its lightness, on sRGB's scale.
- Transparency shows white paper. Where everything visible would be lost on white, the ink is white: it shows black.
- 16-bit levels are divided by 257, so that 65535 is 255. Nothing is clipped and nothing is guessed from the content: a
  picture that uses only the lowest levels is a dark one.
- 32-bit integers say nowhere what their white is. Within 0 to 255 they are taken as they are, within 0 to 65535 for
  16-bit levels, which is how 16-bit PNM arrives; otherwise the darkest becomes 0 and the lightest 255.
- Floats, likewise; and within 0 to 1, one is white. Infinities are the darkest or lightest level; a level that is not a
  number becomes the median, that is, ground.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

__all__ = ["GreyArray", "grey_pixels"]

GreyArray: TypeAlias = NDArray[np.uint8]

_DEEP = 65535  # white of 16-bit levels
_FAINT = 64  # grey levels: ink that differs less than this from its paper counts as lost on it


def _lightness_table() -> list[int]:
    """Grey levels (256,) of LAB's lightness bytes: CIE lightness to luminance to sRGB's transfer curve."""
    lightness = np.arange(256) * (100 / 255)
    luminance = np.where(lightness > 8, ((lightness + 16) / 116) ** 3, lightness * 27 / 24389)
    encoded = np.where(luminance > 0.0031308, 1.055 * luminance ** (1 / 2.4) - 0.055, 12.92 * luminance)
    return [round(float(level)) for level in encoded * 255]


_LIGHTNESS = _lightness_table()


def grey_pixels(image: Image.Image) -> GreyArray:
    """Converts an image of any mode to grey levels.

    Args:
        image: The image.

    Returns:
        uint8 (height, width), 0 black and 255 white.
    """
    mode = image.mode
    if mode.startswith("I;16"):
        return _from_16_bit(image)
    if mode == "I":
        return _from_integers(np.asarray(image))
    if mode == "F":
        return _from_floats(np.asarray(image))
    if image.has_transparency_data:
        return _on_paper(image)
    return np.asarray(_luma(image))


def _luma(image: Image.Image) -> Image.Image:
    """Grey of an 8-bit image, its transparency left aside."""
    if image.mode == "L":
        return image
    if image.mode == "LAB":
        return image.getchannel("L").point(_LIGHTNESS)
    if image.mode in ("1", "LA", "RGB", "RGBA"):
        return image.convert("L")
    return image.convert("RGB").convert("L")


def _on_paper(image: Image.Image) -> GreyArray:
    """Lays a partly transparent image on white, or on black where its ink would be lost on white."""
    if image.mode in ("La", "RGBa"):  # premultiplied: first divide by alpha again
        image = image.convert({"La": "LA", "RGBa": "RGBA"}[image.mode])
    image = image.convert("RGBA")
    return _composite(np.asarray(image.convert("L")), np.asarray(image.getchannel("A")))


def _composite(ink: GreyArray, alpha: GreyArray) -> GreyArray:
    """Lays ink on the paper that shows it.

    Args:
        ink: Grey levels (height, width).
        alpha: Opacity (height, width), 255 opaque.

    Returns:
        Grey levels (height, width).
    """
    if alpha.size == 0 or int(alpha.min()) == 255:
        return ink
    on_black = (ink.astype(np.uint32) * alpha + 127) // 255
    on_white = on_black + (255 - alpha)
    seen_on_white = int(np.ptp(on_white))
    lost = seen_on_white < _FAINT and int(np.ptp(on_black)) > seen_on_white
    return (on_black if lost else on_white).astype(np.uint8)


def _from_16_bit(image: Image.Image) -> GreyArray:
    """Levels of either byte order; one level may be declared transparent, as PNG does."""
    levels = np.asarray(image).astype(np.uint16)
    grey = _divided(levels)
    transparent = image.info.get("transparency")
    if isinstance(transparent, int):
        return _composite(grey, np.where(levels == transparent, 0, 255).astype(np.uint8))
    return grey


def _from_integers(levels: NDArray[np.int32]) -> GreyArray:
    if levels.size == 0 or levels.min() < 0 or levels.max() > _DEEP:
        return _stretched(levels.astype(np.float64))
    return levels.astype(np.uint8) if levels.max() <= 255 else _divided(levels)


def _from_floats(levels: NDArray[np.float32]) -> GreyArray:
    finite = levels[np.isfinite(levels)]
    if finite.size == 0:
        return np.full(levels.shape, 255, dtype=np.uint8)
    lowest, highest = float(finite.min()), float(finite.max())
    known: NDArray[np.float64] = levels.astype(np.float64)
    known = np.nan_to_num(known, nan=float(np.median(finite)), posinf=highest, neginf=lowest)
    for white in (1.0, 255.0, float(_DEEP)):
        if lowest >= 0 and highest <= white:
            return _rounded(known * (255 / white))
    return _stretched(known)


def _divided(levels: NDArray[np.uint16] | NDArray[np.int32]) -> GreyArray:
    """16-bit levels to 8 bits, rounded."""
    return ((levels.astype(np.uint32) + 128) // 257).astype(np.uint8)


def _stretched(levels: NDArray[np.float64]) -> GreyArray:
    """Levels of no known scale: the darkest becomes 0 and the lightest 255."""
    if levels.size == 0 or levels.min() == levels.max():
        return np.full(levels.shape, 255, dtype=np.uint8)
    lowest, highest = float(levels.min()), float(levels.max())
    return _rounded((levels - lowest) / (highest - lowest) * 255)


def _rounded(levels: NDArray[np.float64]) -> GreyArray:
    return np.floor(levels + 0.5).astype(np.uint8)
