"""From what was drawn on a canvas to a strip: the ink alone, with a margin, however small it stands on the canvas."""

from __future__ import annotations

import numpy as np

from glyphline.models.errors import ImageError
from glyphline.models.image import GreyImage, ImageLimits, read_image

__all__ = ["BlankDrawingError", "strip_of"]

_INK = 48
"""Grey levels that ink differs at least from the paper."""

_MARGIN = 0.4
"""Paper around the ink, as a share of its height. With less, models take a 1 at either end for the strip's frame."""

_LEAST_HEIGHT = 1 / 6
"""Least height of a strip, as a share of the canvas's: a minus alone must not fill it from top to bottom."""


class BlankDrawingError(ImageError):
    """Nothing has been drawn."""


def strip_of(drawing: bytes, limits: ImageLimits) -> GreyImage:
    """Cuts the strip out of a drawing.

    Args:
        drawing: An image file of the whole canvas. Where it is transparent it is white.
        limits: How large it may be.

    Returns:
        What was drawn, with as much paper around it as strips have.

    Raises:
        BlankDrawingError: If there is nothing on it.
        ImageError: If it is no image.
    """
    canvas = read_image(drawing, limits).pixels
    paper = int(np.median(canvas))
    inked = np.abs(canvas.astype(np.int16) - paper) >= _INK
    rows, columns = np.flatnonzero(inked.any(axis=1)), np.flatnonzero(inked.any(axis=0))
    if rows.size == 0:
        raise BlankDrawingError("nothing has been drawn yet")
    ink = canvas[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    height = max(ink.shape[0], round(_LEAST_HEIGHT * canvas.shape[0]))
    margin = max(1, round(_MARGIN * height))
    strip = np.full((height + 2 * margin, ink.shape[1] + 2 * margin), paper, np.uint8)
    top = margin + (height - ink.shape[0]) // 2
    strip[top : top + ink.shape[0], margin : margin + ink.shape[1]] = ink
    return GreyImage(strip)
