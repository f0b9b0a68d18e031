"""Lines that are too long for one run of a network: read in windows that overlap, and put together frame by frame.

A CTC head labels every frame, so a line may be cut anywhere as long as the frames that are kept have seen enough of
what is beside them. Each window gives the frames of its middle part; what lies nearer to its edges is left to its
neighbours. The frames then stand in one row and are searched once, as those of a strip that was read in one piece: no
texts are ever joined, so nothing can be doubled or dropped by joining them.

Recurrent layers see the whole window, so how much context is enough is a matter of measurement; docs/architecture.md
has the figures behind `WINDOW` and `CONTEXT`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from glyphline.models.decoding.distributions import FloatArray
from glyphline.models.errors import ImageTooWideError
from glyphline.models.image import normalised_width
from glyphline.models.manifest import Manifest

__all__ = [
    "CONTEXT",
    "LONGEST_LINE",
    "WINDOW",
    "Window",
    "columns_to_read",
    "merge_frames",
    "plan_windows",
    "readable_width",
    "widest_strip",
]

LONGEST_LINE = 32_768  # columns of a normalised strip: bounds what one image can cost in time and memory
WINDOW = 8192  # as many columns as the largest batch of strips has
CONTEXT = 512
STEP = 16  # windows and seams lie at multiples of it, so that frames of all windows fall on one grid


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of a strip that is read by itself, in columns, ends exclusive.

    Attributes:
        start: Where it begins.
        stop: Where it ends.
        first: Where the part begins whose frames are kept.
        last: Where that part ends.
    """

    start: int
    stop: int
    first: int
    last: int


def plan_windows(width: int, window: int = WINDOW, context: int = CONTEXT, step: int = STEP) -> list[Window]:
    """Cuts a strip into windows.

    Args:
        width: Columns of the strip, at least 1.
        window: Columns of a window, more than twice the context. All are as wide, so that they share a batch; a strip
            no wider than that is one window.
        context: Least number of columns between what is kept of a window and an edge of it that is not the strip's.
        step: Windows begin and seams lie at multiples of it; `window` and `context` are multiples, too.

    Returns:
        The windows from left to right. Their kept parts join without a gap, from the strip's beginning to its end.

    Raises:
        ValueError: If the sizes do not go together.
    """
    if width < 1 or context < 0 or window <= 2 * context or window % step or context % step:
        raise ValueError(f"no windows of {window} with a context of {context} in steps of {step} for {width} columns")
    if width <= window:
        return [Window(0, width, 0, width)]
    starts = [*range(0, width - window, window - 2 * context), step * ceil((width - window) / step)]
    stops = [min(start + window, width) for start in starts]
    # In the middle of what two windows share, which is twice the context, and more before the last one.
    seams = [(start + stop) // (2 * step) * step for start, stop in zip(starts[1:], stops[:-1], strict=True)]
    return [Window(*edges) for edges in zip(starts, stops, [0, *seams], [*seams, width], strict=True)]


def merge_frames(parts: Sequence[FloatArray], windows: Sequence[Window], pixels_per_frame: float) -> FloatArray:
    """Puts the frames of windows together.

    Args:
        parts: The log-probabilities of each window's valid frames (frames, symbols).
        windows: The windows.
        pixels_per_frame: Columns of a frame.

    Returns:
        (frames, symbols) of the whole strip.
    """
    kept = []
    for part, window in zip(parts, windows, strict=True):
        first, last = (round((column - window.start) / pixels_per_frame) for column in (window.first, window.last))
        kept.append(part[first : last if window.last < window.stop else None])
    return np.concatenate(kept)


def widest_strip(manifest: Manifest) -> int:
    """Returns the widest strip that a bundle's recogniser reads, normalised and with its padding."""
    widest = manifest.image.max_width
    return max(widest, LONGEST_LINE) if manifest.head == "ctc" else widest


def readable_width(width: int, height: int, manifest: Manifest) -> int:
    """Foretells how wide a strip is when a bundle's recogniser reads it.

    Args:
        width: Width of the strip, in pixels.
        height: Height of the strip, in pixels.
        manifest: Of the bundle.

    Returns:
        The normalised width, with the padding.

    Raises:
        ImageTooWideError: If the recogniser refuses it. The message has the width and the limit.
    """
    try:
        return normalised_width(width, height, manifest.image, widest_strip(manifest))
    except ImageTooWideError as error:
        if manifest.head == "ctc":
            raise
        raise ImageTooWideError(
            f"{error} for a head that writes step by step; a ctc model reads lines up to {LONGEST_LINE} wide"
        ) from None


def columns_to_read(width: int, manifest: Manifest) -> int:
    """Returns how many columns a network has to go through for a strip of a normalised width, overlaps included."""
    if width <= manifest.image.max_width:
        return width
    return sum(window.stop - window.start for window in plan_windows(width))
