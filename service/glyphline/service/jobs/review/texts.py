"""Compares texts, and says in which characters they differ."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from rapidfuzz.distance import Levenshtein

__all__ = ["Piece", "marked", "pieces_of", "same_text"]

Piece = tuple[str, float | None, bool]
"""A stretch of a text: its characters, their confidence if it is known, and whether they differ. One without any
characters stands where the other text has more."""


def same_text(one: str, other: str) -> bool:
    """Whether two texts are one, however their characters are composed."""
    return unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other)


def marked(text: str, other: str) -> list[Piece]:
    """Divides a text into stretches that another has as well and such that it has not.

    Args:
        text: The text; the stretches together are this text.
        other: What it is compared with.
    """
    # Aligned from the other text's side, as `pieces_of` aligns that one: both then mark the same characters.
    return [
        (text[operation.dest_start : operation.dest_end], None, operation.tag != "equal")
        for operation in Levenshtein.opcodes(other, text)
    ]


def pieces_of(text: str, tokens: Sequence[Mapping[str, Any]] | None, others: Sequence[str]) -> list[Piece]:
    """Divides a reading into its characters with their confidences, marked where another text differs.

    Args:
        text: The reading.
        tokens: Its characters, if they are known.
        others: What it is compared with; a character differs if it does so from any of them.

    Returns:
        The stretches; none where nothing is to be shown of them.
    """
    if not others and not tokens:
        return []
    differs = [False] * len(text)
    gaps = [False] * (len(text) + 1)
    for other in others:
        for operation in Levenshtein.opcodes(text, other):
            if operation.tag == "insert":
                gaps[operation.src_start] = True
            elif operation.tag != "equal":
                differs[operation.src_start : operation.src_end] = [True] * (operation.src_end - operation.src_start)
    parts: list[tuple[str, float | None]] = [(token["text"], token["confidence"]) for token in tokens or ()]
    if "".join(part for part, _ in parts) != text:
        parts = [(character, None) for character in text]
    pieces: list[Piece] = []
    place = 0
    for part, confidence in parts:
        if any(gaps[place : place + len(part)]):
            pieces.append(("", None, True))
        pieces.append((part, confidence, any(differs[place : place + len(part)])))
        place += len(part)
    return [*pieces, ("", None, True)] if gaps[len(text)] else pieces
