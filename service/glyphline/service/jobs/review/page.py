"""Renders the page: one file that needs no other and no network, and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Any

from glyphline.service.jobs.review.advice import advice_on
from glyphline.service.jobs.review.selection import Chosen
from glyphline.service.jobs.review.strips import Strip
from glyphline.service.jobs.review.texts import marked, pieces_of, same_text
from glyphline.service.jobs.rows import RowError, one_cell

__all__ = ["Review", "render_page", "script_text"]

Row = Mapping[str, Any]

_LABELS = "glyphline review {output} --labels labels.tsv --dataset corrected/"


@dataclass(frozen=True, slots=True)
class Review:
    """What a page shows.

    Attributes:
        output: The job, as it was named.
        notes: Sentences that say how rows were chosen, and what else is to be known.
        chosen: The rows.
        strips: The picture of each, or why there is none.
    """

    output: str
    notes: Sequence[str]
    chosen: Sequence[Chosen]
    strips: Sequence[Strip | RowError]


def render_page(review: Review, quote: Callable[[str], str]) -> str:
    """Renders the page.

    Args:
        review: What it shows.
        quote: Quotes a word of the command that the page tells.
    """
    style, script = (_resource(name) for name in ("page.css", "page.js"))
    data = {
        "key": hashlib.sha256(os.path.realpath(review.output).encode("utf-8", "surrogateescape")).hexdigest()[:16],
        "command": _LABELS.format(output=quote(review.output)),
        "rows": [_row(each, strip) for each, strip in zip(review.chosen, review.strips, strict=True)],
    }
    policy = (
        f"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src {_hash(style)};"
        f" script-src {_hash(script)}"
    )
    return Template(_resource("page.html")).substitute(
        policy=policy,
        title=_markup(f"Review of {review.output}"),
        notes="\n".join(f"<p>{_markup(note)}</p>" for note in review.notes),
        style=style,
        data=script_text(data),
        script=script,
    )


def script_text(data: object) -> str:
    """Writes JSON that may stand within a `<script>`: nothing in it can end the element or begin a comment."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return _encodable(text)


def _markup(text: str) -> str:
    return html.escape(_encodable(text))


def _encodable(text: str) -> str:
    r"""Writes half a surrogate pair, as file names that are not UTF-8 give, as `\uNNNN`, which JSON reads back."""
    return text.encode("utf-8", "backslashreplace").decode()


def _resource(name: str) -> str:
    return files("glyphline.service.jobs.review").joinpath(name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _row(chosen: Chosen, strip: Strip | RowError) -> dict[str, Any]:
    """Makes what the script is told of a row."""
    row = chosen.row
    values: dict[str, Any] = {"name": one_cell(row["id"]), "id": row["id"], "reason": chosen.reason}
    if isinstance(strip, Strip):
        values |= {"picture": strip.uri, "width": strip.width, "height": strip.height}
    elif chosen.reason != "error":
        values["missing"] = strip.message
    if (error := row["error"]) is not None:
        values["error"] = {**error, "advice": advice_on(str(error.get("code")))}
    text = None if row["text"] is None else unicodedata.normalize("NFC", row["text"])
    suggestions = _suggestions(chosen, text)
    if text is not None:
        others = [suggested for suggested, _, is_alternative in suggestions if not is_alternative]
        values |= {"text": text, "confidence": row["confidence"], "cut": bool(row.get("truncated") in (True, "true"))}
        values["pieces"] = pieces_of(text, row.get("tokens"), others)
    values["suggestions"] = [
        {"text": suggested, "note": note, "pieces": [] if text is None else marked(suggested, text)}
        for suggested, note, _ in suggestions
    ]
    return values


def _suggestions(chosen: Chosen, text: str | None) -> list[tuple[str, str, bool]]:
    """Lists other texts that the row may have: each with whose it is, and whether it is but an alternative."""
    row, other = chosen.row, chosen.other
    offered: list[tuple[str, str, bool]] = []
    if row.get("reference") is not None:
        offered.append((row["reference"], "reference", False))
    if other is not None:
        offered.append((other["text"], f"{_reader(other, row)}, {other['confidence'] * 100:.1f} %", False))
    for each in row.get("alternatives") or ():
        offered.append((each["text"], f"{each['confidence'] * 100:.1f} %", True))
    found: dict[str, tuple[str, str, bool]] = {}
    for suggested, note, is_alternative in offered:
        plain = unicodedata.normalize("NFC", suggested)
        if text is None or not same_text(plain, text):
            found.setdefault(plain, (plain, note, is_alternative))
    return list(found.values())


def _reader(other: Row, row: Row) -> str:
    """Says what read the other row, by what tells it from this row's."""
    if (other.get("model"), other.get("version")) == (row.get("model"), row.get("version")):
        return str(other.get("decoder", "the other job"))
    return f"{other.get('model', 'the other job')} {other.get('version', '')}".strip()
