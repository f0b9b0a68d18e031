"""Writes what was read as HTML, every text escaped."""

from __future__ import annotations

import base64
import io
from html import escape

from glyphline.models.decoding import Alternative, Token
from glyphline.service.drawing import confidence_colour, draw_alignment
from glyphline.service.playground.reading import Problem, Shown

__all__ = ["WAITING", "render"]

_LONG = 16  # characters of a text that is written smaller, so that it fits on one line
WAITING = '<div class="summary" role="status"><span class="waiting">What is read is shown here.</span></div>'


def render(outcome: Shown | Problem) -> str:
    """Writes what the page shows below the picture.

    Args:
        outcome: What was read, or why nothing was.
    """
    if isinstance(outcome, Problem):
        return _status(f'<span class="problem">{escape(outcome.message)}</span>')
    best, *others = outcome.reading.alternatives
    parts = [_summary(outcome), _characters(best), _alignment(outcome, best)]
    if others:
        parts.append(_alternatives(outcome.reading.alternatives))
    return "".join(parts)


def _summary(shown: Shown) -> str:
    reading = shown.reading
    size = "text long" if len(reading.text) > _LONG else "text"
    text = f'<output class="{size}"><bdi>{escape(reading.text)}</bdi></output>'
    if not reading.text:
        text = '<output class="blank">no text</output>'
    cut = " · cut at the longest text that the model writes" if reading.truncated else ""
    about = f"{shown.model.label} · {shown.search} · {_duration(shown.seconds)} {shown.place}{cut}"
    sure = f'<span class="sure">{_percent(reading.confidence)} sure</span>'
    return f'{_status(text + sure)}<p class="about">{escape(about)}</p>'


def _status(content: str) -> str:
    """Puts what has just come where it is read aloud: always the first element, so that it is changed, not replaced."""
    return f'<div class="summary" role="status">{content}</div>'


def _characters(best: Alternative) -> str:
    if not best.tokens:
        return ""
    items = "".join(_character(token) for token in best.tokens)
    return f'<h2>Confidence of each character</h2><ol class="characters">{items}</ol>'


def _character(token: Token) -> str:
    red, green, blue = confidence_colour(token.confidence)
    style = f"--share: {token.confidence:.3f}; --colour: rgb({red}, {green}, {blue})"
    shown = '<span class="space" title="space">␣</span>' if token.text == " " else f"<bdi>{escape(token.text)}</bdi>"
    bar = '<i class="bar" aria-hidden="true"></i>'
    return f'<li style="{style}"><b>{shown}</b>{bar}<small>{_percent(token.confidence, 0)}</small></li>'


def _alignment(shown: Shown, best: Alternative) -> str:
    buffer = io.BytesIO()
    drawing = draw_alignment(shown.image, best.tokens)
    drawing.save(buffer, "PNG")
    address = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    placed = [token for token in best.tokens if token.span is not None]
    spans = "; ".join(f"{token.text} from {token.span[0]:.0f} to {token.span[1]:.0f}" for token in placed if token.span)
    said = f"The strip with a box around each character, in pixels: {spans}" if placed else "The strip"
    return (
        '<h2>Where each character was found</h2><div class="strip" tabindex="0" role="region" aria-label="Alignment">'
        f'<img src="{address}" width="{drawing.width}" height="{drawing.height}" style="--width: {drawing.width}px" '
        f'alt="{escape(said)}"></div>'
    )


def _alternatives(alternatives: tuple[Alternative, ...]) -> str:
    rows = "".join(
        f"<tr><td>{number}</td><td><bdi>{escape(each.text) or '<i>no text</i>'}</bdi></td>"
        f'<td><i class="bar" aria-hidden="true" style="--share: {each.confidence:.3f}"></i>'
        f"{_percent(each.confidence)}</td></tr>"
        for number, each in enumerate(alternatives, 1)
    )
    return (
        '<h2 id="alternatives">Alternatives, best first by the search</h2>'
        '<table class="alternatives" aria-labelledby="alternatives">'
        '<thead><tr><th scope="col">Rank</th><th scope="col">Text</th><th scope="col">Confidence</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _percent(share: float, decimals: int = 1) -> str:
    return f"{100 * share:.{decimals}f} %"


def _duration(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 10 else f"{seconds:.1f} s"
