"""Formulas between dollars, as GitHub shows them, become MathML, which browsers show without a script."""

from __future__ import annotations

import re

from latex2mathml.converter import convert
from markdown_text import outside_code

__all__ = ["show_formulas"]

_DISPLAY = re.compile(r"\$\$(.+?)\$\$")
_INLINE = re.compile(r"(?<![\\$\w])\$(?=\S)([^$\n]+?)(?<=\S)\$(?![$\w])")


def show_formulas(text: str) -> str:
    """Replaces the formulas of a page.

    Args:
        text: Markdown with `$…$` in lines and `$$…$$` on lines of their own.
    """
    return outside_code(text, lambda part: _INLINE.sub(_inline, _DISPLAY.sub(_display, part)))


def _display(match: re.Match[str]) -> str:
    return f'<div class="formula">{convert(match[1], display="block")}</div>'


def _inline(match: re.Match[str]) -> str:
    # Within a line Markdown still looks at what stands between the tags. The span keeps a formula that begins a line
    # from being taken for a block.
    formula = convert(match[1]).replace("*", "&#x2A;").replace("_", "&#x5F;")
    return f'<span class="formula">{formula}</span>'
