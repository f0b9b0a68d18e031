"""Draws what was read over the picture it was read from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from PIL import Image, ImageDraw, ImageFont

from glyphline.models.decoding import Reading, Token
from glyphline.models.image import GreyImage

__all__ = ["Colour", "confidence_colour", "draw_alignment", "draw_reading"]

_STRIP_HEIGHT = 120
_LEAST_WIDTH = 360
_MARGIN = 12
_CHARACTER_SIZE = 26
_PERCENT_SIZE = 12
_TEXT_SIZE = 30
_LABELS_TOP = _MARGIN + _STRIP_HEIGHT + 6
_LABEL_HEIGHT = _CHARACTER_SIZE + _PERCENT_SIZE + 10
_PAPER = (255, 255, 255)
_INK = (20, 24, 32)
_FAINT = (120, 126, 138)

Colour = tuple[int, int, int]


def draw_reading(image: GreyImage, reading: Reading, caption: str = "") -> Image.Image:
    """Draws a strip with a box around each character's span, and the whole text beneath.

    Args:
        image: The strip.
        reading: What was read, with tokens.
        caption: A line of small print, such as the model's name.

    Returns:
        The drawing, as `draw_alignment` makes it, with the text and the caption below.
    """
    aligned = draw_alignment(image, reading.alternatives[0].tokens)
    summary = f"{reading.text or '(blank)'}   {reading.confidence:.1%}" + ("   cut short" if reading.truncated else "")
    text_font, small_font = _font(_TEXT_SIZE), _font(_PERCENT_SIZE)
    widths = [aligned.width - 2 * _MARGIN, _LEAST_WIDTH, text_font.getlength(summary), small_font.getlength(caption)]
    height = aligned.height + _TEXT_SIZE + _PERCENT_SIZE + _MARGIN + 4
    canvas = Image.new("RGB", (round(max(widths)) + 2 * _MARGIN, height), _PAPER)
    canvas.paste(aligned, (0, 0))
    draw = ImageDraw.Draw(canvas)
    text_top = aligned.height - _MARGIN + 4
    draw.text((_MARGIN, text_top), summary, fill=_INK, font=text_font)
    draw.text((_MARGIN, text_top + _TEXT_SIZE + 8), caption, fill=_FAINT, font=small_font)
    return canvas


def draw_alignment(image: GreyImage, tokens: Sequence[Token]) -> Image.Image:
    """Draws a strip, scaled up, with a box around each character's span and what was read beneath it.

    Args:
        image: The strip.
        tokens: What was read. Those that have no span are left out.

    Returns:
        The drawing. Boxes are green where the recogniser was sure and red where it was not.
    """
    scale = _STRIP_HEIGHT / image.height
    strip = Image.fromarray(image.pixels).convert("RGB")
    strip = strip.resize((max(1, round(image.width * scale)), _STRIP_HEIGHT), Image.Resampling.BICUBIC)
    labels = _place_labels(tokens, scale)
    rows = 1 + max((label.row for label in labels), default=0)
    width = round(max([strip.width, *(label.end - _MARGIN for label in labels)]))
    height = _LABELS_TOP + rows * _LABEL_HEIGHT + _MARGIN
    canvas = Image.new("RGB", (width + 2 * _MARGIN, height), _PAPER)
    canvas.paste(strip, (_MARGIN, _MARGIN))
    draw = ImageDraw.Draw(canvas)
    draw.rectangle((_MARGIN - 1, _MARGIN - 1, _MARGIN + strip.width, _MARGIN + _STRIP_HEIGHT), outline=_FAINT)
    for label in labels:
        _draw_label(draw, label)
    return canvas


def confidence_colour(confidence: float) -> Colour:
    """Goes from red at 0.5 and below over amber to green at 1, all dark enough to read on white."""
    share = min(max((confidence - 0.5) / 0.5, 0.0), 1.0)
    return round(210 * min(1.0, 2 - 2 * share)), round(140 * min(1.0, 2 * share)), 30


@dataclass(frozen=True, slots=True)
class _Label:
    """Where a character's box and label stand, in pixels of the drawing.

    Attributes:
        text: The character, or a mark that stands for it.
        confidence: How sure the recogniser was.
        left: Left edge of the box.
        right: Right edge of the box.
        middle: Middle of the label: the box's, but never so far left that the label is cut.
        end: Right edge of the label.
        row: Row of labels, from 0.
    """

    text: str
    confidence: float
    left: float
    right: float
    middle: float
    end: float
    row: int


def _place_labels(tokens: Sequence[Token], scale: float) -> list[_Label]:
    """Places labels beneath their boxes; one that would touch its left neighbour goes to a second row."""
    labels = []
    row_ends = [0.0, 0.0]
    for token in tokens:
        if token.span is None:
            continue
        left, right = (_MARGIN + edge * scale for edge in token.span)
        right = max(right, left + 2)
        shown = "␣" if token.text == " " else token.text
        width = max(_font(_PERCENT_SIZE).getlength("100%"), _font(_CHARACTER_SIZE).getlength(shown))
        middle = max((left + right) / 2, width / 2)
        row = 0 if middle - width / 2 >= row_ends[0] else 1
        end = row_ends[row] = middle + width / 2 + 2
        labels.append(_Label(shown, token.confidence, left, right, middle, end, row))
    return labels


def _draw_label(draw: ImageDraw.ImageDraw, label: _Label) -> None:
    colour = confidence_colour(label.confidence)
    draw.rectangle((label.left, _MARGIN, label.right, _MARGIN + _STRIP_HEIGHT - 1), outline=colour, width=2)
    middle, top = label.middle, _LABELS_TOP + label.row * _LABEL_HEIGHT
    draw.text((middle, top), label.text, fill=_INK, font=_font(_CHARACTER_SIZE), anchor="ma")
    percent_top = top + _CHARACTER_SIZE + 4
    draw.text((middle, percent_top), f"{label.confidence:.0%}", fill=colour, font=_font(_PERCENT_SIZE), anchor="ma")


@cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
