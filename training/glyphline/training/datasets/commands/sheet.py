"""Contact sheets: strips with a line of text beneath each, section by section, as one picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from glyphline.training.datasets.samples import Grey

WIDTH = 1600
"""Pixels of a sheet."""

_GAP, _CAPTION, _TITLE = 10, 18, 26
_TALLEST = 40_000  # pixels: no viewer shows more


@dataclass(frozen=True, slots=True)
class Shown:
    """A strip on a sheet.

    Attributes:
        pixels: Grey levels `(height, width)`.
        caption: What stands beneath it.
    """

    pixels: Grey
    caption: str


@dataclass(frozen=True, slots=True)
class Section:
    """Strips beneath a title.

    Attributes:
        title: The title.
        strips: The strips, set side by side as far as they fit.
    """

    title: str
    strips: Sequence[Shown]


def draw_sheet(sections: Sequence[Section]) -> Image.Image:
    """Draws a sheet.

    Args:
        sections: What it shows.

    Returns:
        A picture `WIDTH` wide and as high as it has to be.
    """
    places: list[tuple[int, int, Image.Image, str]] = []
    titles: list[tuple[int, str]] = []
    y = _GAP
    for section in sections:
        titles.append((y, section.title))
        y += _TITLE
        x, tall = _GAP, 0
        for shown in section.strips:
            strip = Image.fromarray(shown.pixels)
            if strip.width > WIDTH - 2 * _GAP:
                strip = strip.resize((WIDTH - 2 * _GAP, max(1, strip.height * (WIDTH - 2 * _GAP) // strip.width)))
            caption = _fit(shown.caption, max(strip.width, 90))
            wide = max(strip.width, round(_font(13).getlength(caption)))
            if x > _GAP and x + wide > WIDTH - _GAP:
                x, y, tall = _GAP, y + tall + _CAPTION + _GAP, 0
            places.append((x, y, strip, caption))
            x, tall = x + wide + _GAP, max(tall, strip.height)
        y += tall + _CAPTION + 2 * _GAP
    sheet = Image.new("RGB", (WIDTH, min(y, _TALLEST)), "#f4f4f2")
    pen = ImageDraw.Draw(sheet)
    for top, title in titles:
        pen.text((_GAP, top), title, fill="#1a3d6d", font=_font(16))
    for left, top, strip, caption in places:
        sheet.paste(strip, (left, top))
        pen.text((left, top + strip.height + 1), caption, fill="#444444", font=_font(13))
    return sheet


def _fit(text: str, width: int) -> str:
    """Cuts a caption to what fits beneath its strip."""
    font = _font(13)
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "…") > width:
        text = text[:-1]
    return text + "…"


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """A font with Latin, Greek, Cyrillic and more, where matplotlib brings it along; else Pillow's own."""
    try:
        import matplotlib as mpl  # noqa: PLC0415  (of the extra `train`)

        return ImageFont.truetype(str(Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), size)
    except (ModuleNotFoundError, OSError):
        return ImageFont.load_default(size)
