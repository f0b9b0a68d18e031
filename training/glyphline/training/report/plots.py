"""The plots of a report, as SVG that takes its colours from the page and so follows its light or dark theme."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from glyphline.training.report.calibration import BINS, Bin, coverage_curve
from glyphline.training.report.figures import Group

FEWEST = 5
"""Strips of which a share is drawn: of fewer, nearly any share can come about by chance."""
_FEW_BARS = 6

# Stand-ins: matplotlib wants colours, the page has variables.
_TEXT, _FAINT = "#010203", "#040506"
_SERIES = ("#0a0b01", "#0a0b02", "#0a0b03", "#0a0b04")
_VARIABLES = {
    _TEXT: "var(--text)",
    _FAINT: "var(--line)",
    **{colour: f"var(--series-{number})" for number, colour in enumerate(_SERIES, 1)},
}
_MARKERS = "osD^"
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: small, selectable, in the page's font
    "svg.hashsalt": "glyphline",
    "font.size": 9,
    "text.color": _TEXT,
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _TEXT,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": _FAINT,
    "grid.linewidth": 0.6,
    "xtick.color": _TEXT,
    "ytick.color": _TEXT,
    "legend.frameon": False,
}


def series_number(model: int) -> int:
    """Which of the page's series colours a model has, from 1."""
    return model % len(_SERIES) + 1


def _svg(figure: Figure, title: str) -> str:
    """Renders a figure as an element to put into a page."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Title": title})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, variable)
    # The page sets the font and the width.
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    return text.replace("<svg", '<svg role="img"', 1)


def _legend(axes: Axes, models: int) -> None:
    if models > 1:
        # Above the axes: within them it would lie on the points.
        axes.legend(fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 0.99), ncols=models, borderaxespad=0)


def _say_too_few(axes: Axes) -> None:
    """Fills axes without a point."""
    axes.text(
        0.5, 0.5, f"fewer than {FEWEST} strips in each", transform=axes.transAxes, ha="center", va="center", fontsize=8
    )
    axes.set_yticks([])


def _draw_shares(
    axes: Axes, number: int, name: str, places: Sequence[float], shares: Sequence[Bin] | Sequence[Group], line: str
) -> None:
    """Draws shares with their intervals; `line` is how they are joined."""
    exact = np.array([share.exact for share in shares])
    bounds = np.array([share.interval if isinstance(share, Bin) else share.exact_interval for share in shares]).T
    axes.errorbar(
        places,
        exact,
        yerr=np.abs(bounds - exact) if len(shares) else None,
        fmt=_MARKERS[number % len(_MARKERS)] + line,
        markersize=4.5,
        linewidth=1.2,
        color=_SERIES[number % len(_SERIES)],
        label=name,
    )


def _number_bars(axes: Axes, bars: BarContainer, *, upright: bool) -> None:
    """Writes over every bar how many strips it stands for, in place of an axis."""
    heights = np.asarray(bars.datavalues, dtype=np.float64)
    axes.bar_label(bars, [f"{height:,.0f}" for height in heights], fontsize=6.5, padding=1.5, rotation=90 * upright)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def draw_groups(series: Mapping[str, Sequence[Group]], label: str) -> str:
    """Draws the exact share by group, with 95 % intervals, over how many strips there are in each.

    Args:
        series: Groups of each model, the same ones.
        label: What strips are grouped by.
    """
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5.2, 3.3), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1.4))
        for number, (name, groups) in enumerate(series.items()):
            shift = (number - (len(series) - 1) / 2) * 0.16
            shown = [place for place, group in enumerate(groups) if group.images >= FEWEST]
            _draw_shares(
                upper, number, name, [place + shift for place in shown], [groups[place] for place in shown], ""
            )
        groups = next(iter(series.values()))
        many = len(groups) > 12
        bars = lower.bar(range(len(groups)), [group.images for group in groups], color=_FAINT, width=0.7)
        _number_bars(lower, bars, upright=many)
        lower.set_ylim(0, max(group.images for group in groups) * (2.2 if many else 1.5))
        # A few bars keep the width that they would have among more.
        room = max(0, _FEW_BARS - len(groups)) / 2
        lower.set_xlim(-0.6 - room, len(groups) - 0.4 + room)
        lower.set_xticks(
            range(len(groups)), [group.label for group in groups], rotation=90 if many else 0, fontsize=7 if many else 8
        )
        lower.grid(False)
        upper.grid(axis="x", visible=False)
        upper.set_ylabel("exact")
        upper.yaxis.set_major_formatter(PercentFormatter(1.0))
        lows = [group.exact_interval[0] for groups in series.values() for group in groups if group.images >= FEWEST]
        if lows:
            upper.set_ylim(max(0.0, min(lows) - 0.04), 1.02)
        else:
            _say_too_few(upper)
        lower.set(xlabel=label, ylabel="strips")
        _legend(upper, len(series))
        return _svg(figure, f"Exact by {label}")


def draw_reliability(series: Mapping[str, Sequence[Bin]]) -> str:
    """Draws the share of right readings against confidence, over how many strips have it.

    Args:
        series: Bins of each model.
    """
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5.2, 4.2), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1.4))
        upper.plot([0, 1], [0, 1], color=_TEXT, linewidth=0.8, linestyle=(0, (4, 3)))
        width = 0.8 / BINS / len(series)
        for number, (name, bins) in enumerate(series.items()):
            shown = [each for each in bins if each.lines >= FEWEST]
            _draw_shares(upper, number, name, [each.confidence for each in shown], shown, "-")
            places = [(min(int(each.confidence * BINS), BINS - 1) + 0.5) / BINS for each in bins]
            shift = (number - (len(series) - 1) / 2) * width
            bars = lower.bar(
                [place + shift for place in places],
                [each.lines for each in bins],
                width,
                color=_SERIES[number % len(_SERIES)],
                alpha=0.45,
            )
            _number_bars(lower, bars, upright=len(series) > 1)
        every = [each for bins in series.values() for each in bins]
        known = [each for each in every if each.lines >= FEWEST]
        least_sure = math.floor(10 * min(each.confidence for each in every)) / 10
        upper.set(ylabel="share that is right", xlim=(min(least_sure, 0.8) - 0.01, 1.01))
        if known:
            upper.set_ylim(math.floor(10 * min(each.interval[0] for each in known)) / 10 - 0.02, 1.02)
        lower.set(xlabel="confidence", ylabel="strips", yscale="log")
        most = max(each.lines for each in every)
        lower.set_ylim(0.7, 0.7 * (most / 0.7) ** (1.9 if len(series) > 1 else 1.45))
        lower.minorticks_off()
        lower.set_yticks([])
        lower.grid(False)
        for axis in (upper.xaxis, upper.yaxis, lower.xaxis):
            axis.set_major_formatter(PercentFormatter(1.0))
        if not known:
            _say_too_few(upper)
        _legend(upper, len(series))
        return _svg(figure, "Reliability")


def draw_coverage(series: Mapping[str, tuple[Sequence[float], Sequence[bool]]], levels: Sequence[float]) -> str:
    """Draws how much of what goes straight through is wrong, against how much goes through.

    Args:
        series: Confidences and whether each line is right, of each model.
        levels: Accuracies to mark.
    """
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5.2, 4.2), layout="constrained")
        axes = figure.subplots()
        for level in levels:
            axes.axhline(1 - level, color=_TEXT, linewidth=0.8, linestyle=(0, (4, 3)))
            axes.text(0.005, 1 - level, f"{level * 100:g} % right", va="bottom", fontsize=7)
        for number, (name, (confidences, right)) in enumerate(series.items()):
            share, wrong = coverage_curve(confidences, right)
            axes.plot(
                share, wrong, color=_SERIES[number % len(_SERIES)], linewidth=1.4, label=name, drawstyle="steps-post"
            )
        axes.set_yscale("symlog", linthresh=1e-3)
        axes.set(xlabel="share of strips that goes through", ylabel="wrong among these", xlim=(0, 1.02))
        axes.set_ylim(0, None)
        highest = axes.get_ylim()[1]
        axes.set_yticks([tick for tick in (0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5) if tick <= max(highest, 0.01)])
        axes.minorticks_off()
        axes.xaxis.set_major_formatter(PercentFormatter(1.0))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * 100:g}%"))
        _legend(axes, len(series))
        return _svg(figure, "Coverage")
