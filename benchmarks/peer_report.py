"""Figures of several readers as a table, for a terminal or in Markdown, and as a plot of accuracy against cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from machine import print_report
from peer_figures import PeerFigures
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

HEADINGS = ("reader", "version", "model", "exact (95 %)", "CER (95 %)", "CPU ms", "cost", "refused")
LEFT = 2
MAX_COLUMNS = 3
MARKERS = "osD^vPX*"


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
        # Eighty columns are enough, if nothing that says nothing takes any.
        shown = len(HEADINGS) if any(row.refused for row in figures) else len(HEADINGS) - 1
        caption = "CPU time an image; cost: that over the first reader's"
        table = Table(title=title, caption=caption, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for place, heading in enumerate(HEADINGS[:shown]):
            table.add_column(heading, justify="left" if place < LEFT else "right", overflow="fold")
        for row in figures:
            table.add_row(*cells(row)[:shown])
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
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter  # noqa: PLC0415

    columns = min(len(sets), MAX_COLUMNS)
    rows = -(-len(sets) // columns)
    figure = Figure(figsize=(5.2 * columns, 4.2 * rows + 0.6), layout="constrained")
    # One scale for all, so that panels can be compared.
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    names = dict.fromkeys(row.reader for figures in sets.values() for row in figures)
    marks = {}
    for axes, (title, figures) in zip(grid.flat, sets.items(), strict=False):
        for row in figures:
            place = list(names).index(row.reader)
            low, high = row.exact_interval
            marks[row.reader] = axes.errorbar(
                row.cpu_milliseconds,
                100 * row.exact,
                yerr=[[100 * (row.exact - low)], [100 * (high - row.exact)]],
                fmt=MARKERS[place % len(MARKERS)],
                capsize=3,
                color=f"C{place % 10}",
            )
        axes.set_title(f"{_short(title)}, {figures[0].images:,} images", fontsize=10)
        axes.grid(visible=True, which="both", alpha=0.25)
        axes.xaxis.set_tick_params(labelbottom=True)
    for axes in list(grid.flat)[len(sets) :]:
        axes.set_visible(False)
    axes = grid[0, 0]
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(-2, 102)
    low, high = _bounds([row.cpu_milliseconds for figures in sets.values() for row in figures])
    axes.set_xlim(low, high)
    figure.supxlabel("CPU time an image, ms, one thread", fontsize=10)
    figure.supylabel("read exactly, %, with 95 % interval", fontsize=10)
    figure.legend(marks.values(), marks.keys(), loc="outside upper center", ncols=min(len(marks), 5), fontsize=9)
    figure.savefig(path, format="png", dpi=150)


def _bounds(costs: Sequence[float]) -> tuple[float, float]:
    """Returns limits of the axis that leave some room at both sides."""
    return min(costs) / 1.5, max(costs) * 1.5


def _short(name: str) -> str:
    """Returns the last part of a data set's path."""
    return Path(name).name or name


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _range(bounds: tuple[float, float]) -> str:
    return "–".join(f"{100 * bound:.1f}" for bound in bounds)
