"""Tables on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from glyphline.models.decoding import Reading
from glyphline.service.jobs import Row, RowError
from glyphline.service.jobs.rows import one_cell, printable


def print_readings(rows: Sequence[Row], *, alternatives: bool, console: Console | None = None) -> int:
    """Prints a table of readings and errors.

    Args:
        rows: What was read.
        alternatives: Whether to list further readings beneath the best.
        console: Where to; None is the standard output.

    Returns:
        How many rows have an error.
    """
    table = Table("File", "Text", "Confidence")
    for row in rows:
        source = Text(one_cell(printable(row.source)), overflow="fold")
        if isinstance(row.outcome, RowError):
            table.add_row(source, Text(printable(row.outcome.message), style="red"), "")
            continue
        table.add_row(source, _text(row.outcome), Text(f"{row.outcome.confidence:.1%}"))
        for alternative in row.outcome.alternatives[1:] if alternatives else ():
            table.add_row("", Text(alternative.text, style="dim"), Text(f"{alternative.confidence:.1%}", style="dim"))
    (console or Console()).print(table)
    return sum(isinstance(row.outcome, RowError) for row in rows)


def _text(reading: Reading) -> Text:
    text = Text(reading.text, style="bold") if reading.text else Text("(blank)", style="dim")
    if reading.truncated:
        text.append(" … cut short", style="yellow")
    return text
