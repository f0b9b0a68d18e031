"""Pieces of Markdown that the generated pages share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

__all__ = ["cell", "escape", "outside_code", "paragraphs", "table"]

# A fenced block, or code within a paragraph.
_CODE = re.compile(
    r"^(`{3,}|~{3,}).*?^\1[^\n]*$|(?<!`)(`+)(?!`)(?:(?!\n[ \t]*\n).)+?(?<!`)\2(?!`)", re.MULTILINE | re.DOTALL
)
_SPECIAL = re.compile(r"([\\*_<>\[\]])")


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Changes what of a text is not code.

    Args:
        text: Markdown.
        change: Is given each stretch between two pieces of code.
    """
    parts, end = [], 0
    for match in _CODE.finditer(text):
        parts += [change(text[end : match.start()]), match.group()]
        end = match.end()
    return "".join([*parts, change(text[end:])])


def escape(text: str) -> str:
    """Escapes plain text, so that Markdown shows it as it is; what stands between backticks stays code."""
    return outside_code(text, lambda part: _SPECIAL.sub(r"\\\1", part))


def cell(text: str) -> str:
    """Makes Markdown fit for a cell of a table: one line, without a bar that would end the cell."""
    return outside_code(" ".join(text.split()), lambda part: part.replace("|", "\\|"))


def table(heading: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Formats a table of cells that are Markdown."""
    titles = list(heading)
    lines = [titles, ["---"] * len(titles), *([cell(value) for value in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def paragraphs(text: str) -> list[str]:
    """Splits a text at its empty lines."""
    return [part for part in re.split(r"\n[ \t]*\n", text.strip("\n")) if part.strip()]
