"""Figures of several readers as a table, for a terminal or in Markdown, and as a plot of accuracy against cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from machine import print_report
from peer_figures import PeerFigures
from rich.console import Console
from rich.table import Table

HEADINGS = ("reader", "version", "model", "exact (95 %)", "CER (95 %)", "CPU ms / image", "cost", "refused")
LEFT = 2


def cells(figures: PeerFigures) -> tuple[str, ...]:
    """Returns one reader's figures in the order of `HEADINGS`."""
    return (
        figures.reader,
        figures.version,
        f"{figures.model_bytes / 1e6:.1f} MB" if figures.model_bytes else "",
        f"{_percent(figures.exact)} ({_range(figures.exact_interval)})",
        f"{_percent(figures.cer)} ({_range(figures.cer_interval)})",
        f"{figures.cpu_milliseconds:.2f}",
        f"× {figures.relative_cost:.2f}",
        str(figures.refused),
    )


def show(title: str, figures: Sequence[PeerFigures], machine: Mapping[str, str]) -> None:
    """Prints a table: drawn on a terminal, as Markdown elsewhere."""
    if Console().is_terminal:
        table = Table(title=title, caption="cost: CPU time over that of the first reader")
        for place, heading in enumerate(HEADINGS):
            table.add_column(heading, justify="left" if place < LEFT else "right")
        for row in figures:
            table.add_row(*cells(row))
        print_report(table, dict(machine))
    else:
        print(markdown(title, figures))
        print("\n" + ", ".join(f"{name} {value}" for name, value in machine.items()) + "\n")


def markdown(title: str, figures: Sequence[PeerFigures]) -> str:
    """Returns the table in Markdown."""
    rule = ["---" if place < LEFT else "---:" for place in range(len(HEADINGS))]
    rows = [HEADINGS, rule, *([cell.replace("|", "\\|") for cell in cells(row)] for row in figures)]
    return "\n".join([f"{title}\n", *("| " + " | ".join(row) + " |" for row in rows)])


def plot(path: Path, sets: Mapping[str, Sequence[PeerFigures]]) -> None:
    """Draws, for each data set, the share of images read exactly against CPU time an image, and writes it as PNG."""
    # Only who wants a plot needs it.
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(6.4 * len(sets), 4.8), layout="constrained")
    names = dict.fromkeys(row.reader for rows in sets.values() for row in rows)
    colours = {name: f"C{number % 10}" for number, name in enumerate(names)}
    for number, (title, rows) in enumerate(sets.items(), 1):
        axes = figure.add_subplot(1, len(sets), number)
        for row in rows:
            low, high = row.exact_interval
            axes.errorbar(
                row.cpu_milliseconds,
                100 * row.exact,
                yerr=[[100 * (row.exact - low)], [100 * (high - row.exact)]],
                fmt="o",
                capsize=3,
                color=colours[row.reader],
                label=row.reader,
            )
        axes.set_xscale("log")
        axes.set_ylim(-2, 102)
        axes.grid(visible=True, which="both", alpha=0.25)
        axes.set_title(f"{title}, {rows[0].images:,} images", fontsize=10)
        axes.set_xlabel("CPU time an image, ms, one thread")
        axes.set_ylabel("read exactly, %, with 95 % interval")
        axes.legend(fontsize=8)
    figure.savefig(path, format="png", dpi=150)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _range(bounds: tuple[float, float]) -> str:
    return "–".join(f"{100 * bound:.1f}" for bound in bounds)
