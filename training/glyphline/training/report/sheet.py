"""A sheet of typical errors, one picture, for a model card."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

from glyphline.training.report.measure import Line, Measured

COLUMNS, ROWS = 3, 10
LETTERS = 48
"""Letters of a text that are shown."""


def choose_errors(results: Sequence[Measured], most: int = COLUMNS * ROWS) -> list[tuple[str, Line]]:
    """Chooses what to show: of each set in turn an error of the middling kind, so that no set crowds the others out.

    Errors of a set are ordered by their edits a character. Taken evenly from that order they show the usual slip, not
    only the strips that nobody could read.

    Args:
        results: What was read of each set.
        most: Greatest number of errors.

    Returns:
        Sets and lines, set by set.
    """
    wrong = {each.figures.data_set: [line for line in each.lines if not line.counts.exact] for each in results}
    wrong = {name: lines for name, lines in wrong.items() if lines}
    shares = dict.fromkeys(wrong, 0)
    for _ in range(most):
        left = [name for name in wrong if shares[name] < len(wrong[name])]
        if left:
            shares[min(left, key=shares.__getitem__)] += 1
    chosen = []
    for name, lines in wrong.items():
        ordered = sorted(lines, key=lambda line: line.counts.edits / max(1, line.counts.reference_characters))
        count = shares[name]
        chosen += [(name, ordered[(2 * index + 1) * len(ordered) // (2 * count)]) for index in range(count)]
    return chosen


def _shown(text: str) -> str:
    """Brings a text to a line of the sheet."""
    short = text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"
    return short or "(nothing)"


def draw_errors(results: Sequence[Measured], path: Path) -> None:
    """Draws the sheet: each strip with its text, what was read, and how sure the model was.

    Args:
        results: What was read of each set.
        path: PNG file to write; one that lies there is replaced.
    """
    chosen = choose_errors(results)
    rows = -(-len(chosen) // COLUMNS)
    figure = Figure(figsize=(4 * COLUMNS, 1.15 * max(1, rows)), layout="constrained")
    grid = figure.subplots(max(1, rows), COLUMNS, squeeze=False).flatten()
    for axes in grid:
        axes.set_axis_off()
    for axes, (name, line) in zip(grid, chosen, strict=False):
        axes.imshow(line.sample.pixels, cmap="gray", vmin=0, vmax=255, aspect="equal")
        axes.set_title(
            f"{_shown(line.sample.text)}\n→ {_shown(line.text)}   {line.confidence:.2f}",
            fontsize=7,
            parse_math=False,
        )
        axes.text(0.5, -0.04, name, transform=axes.transAxes, ha="center", va="top", fontsize=5, color="0.5")
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=110, format="png")
    # Nothing on it has a colour, and 64 greys take half the space.
    Image.open(buffer).convert("L").quantize(64).save(path, "PNG", optimize=True)
