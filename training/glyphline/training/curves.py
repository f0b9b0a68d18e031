"""Curves of a run: losses, error rates and the learning rate against the strips seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

_THOUSANDS_FROM = 10_000  # strips
_WIDE = (
    5.0  # times the lowest value: an axis that spans less is not logarithmic, which would leave it one label or none
)


def draw_curves(rows: list[dict[str, float]], path: Path) -> None:
    """Draws the curves of a run.

    Args:
        rows: Rows of its metrics log.
        path: PNG file to write.
    """
    curves_of(rows).savefig(path, dpi=100)


def curves_of(rows: list[dict[str, float]]) -> Figure:
    """Makes the figure of a run's curves.

    Args:
        rows: Rows of its metrics log.
    """
    figure = Figure(figsize=(15, 4.5), layout="constrained")
    losses, errors, rates = figure.subplots(1, 3, width_ratios=(5, 5, 3))
    names = list(dict.fromkeys(name for row in rows for name in row))
    parts = [name for name in names if name.startswith("train_") and name != "train_loss"]
    if len(parts) == 1:  # the loss of the only head is the loss
        names = [name for name in names if name != "train_loss"]
    many = max((row["strips"] for row in rows), default=0) >= _THOUSANDS_FROM
    for name in names:
        known = [row for row in rows if name in row]
        strips = [row["strips"] / (1000 if many else 1) for row in known]
        if name.startswith("train_"):
            losses.plot(strips, [row[name] for row in known], marker=".", label=name.removeprefix("train_"))
        elif name.endswith("_exact"):
            errors.plot(strips, [100 * (1 - row[name]) for row in known], marker=".", label=name.removesuffix("_exact"))
        elif name == "learning_rate":
            rates.plot(strips, [row[name] for row in known], marker=".", label="at the end of each epoch")
    losses.set(title="Training loss", ylabel="loss per symbol")
    errors.set(title="Validation, each head reading alone", ylabel="strips not exact, %")
    rates.set(title="Learning rate", ylabel="learning rate")
    _scale_losses(losses)
    _scale_errors(errors)
    for axes in (losses, errors, rates):
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlabel("thousand strips seen" if many else "strips seen")
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend(fontsize=7)
    return figure


def _values(axes: Axes) -> list[float]:
    return [float(value) for line in axes.lines for value in np.asarray(line.get_ydata(), dtype=np.float64)]


def _scale_losses(axes: Axes) -> None:
    """Makes a logarithmic axis where losses span enough of it to have labels, at 1, 2 and 5 times powers of ten."""
    values = _values(axes)
    if values and min(values) > 0 and max(values) >= _WIDE * min(values):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_locator(NullLocator())


def _scale_errors(axes: Axes) -> None:
    """Makes an axis that is logarithmic from 1 % on, where errors are few and many."""
    values = _values(axes)
    if values and max(values) >= _WIDE * max(min(values), 1.0):
        axes.set_yscale("symlog", linthresh=1)
        ticks = (0, 0.5, 1, 2, 5, 10, 20, 50, 100)
        low, high = min(values), max(values)
        below, above = [tick for tick in ticks if tick <= low], [tick for tick in ticks if tick >= high]
        axes.set_ylim((below[-1] if below else 0) - 0.05, (above[0] if above else high) * 1.05)
        axes.yaxis.set_major_locator(FixedLocator(ticks))
        axes.yaxis.set_minor_locator(NullLocator())
