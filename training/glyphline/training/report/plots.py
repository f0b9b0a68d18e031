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
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from glyphline.training.report.calibration import Bin, coverage_curve
from glyphline.training.report.figures import Group

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


def draw_groups(series: Mapping[str, Sequence[Group]], label: str) -> str:
    """Draws the exact share by group, with 95 % intervals, over how many strips there are in each.

    Args:
        series: Groups of each model, the same ones.
        label: What strips are grouped by.
    """
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5.2, 3.3), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
        for number, (name, groups) in enumerate(series.items()):
            colour, shift = _SERIES[number % len(_SERIES)], (number - (len(series) - 1) / 2) * 0.16
            places = np.arange(len(groups)) + shift
            exact = np.array([group.exact for group in groups])
            bounds = np.array([group.exact_interval for group in groups]).T
            upper.errorbar(
                places,
                exact,
                yerr=np.abs(bounds - exact),
                fmt=_MARKERS[number % len(_MARKERS)],
                markersize=4.5,
                linewidth=1.2,
                color=colour,
                label=name,
            )
        groups = next(iter(series.values()))
        lower.bar(range(len(groups)), [group.images for group in groups], color=_FAINT, width=0.7)
        many = len(groups) > 12
        lower.set_xticks(
            range(len(groups)), [group.label for group in groups], rotation=90 if many else 0, fontsize=7 if many else 8
        )
        lower.grid(False)
        upper.grid(axis="x", visible=False)
        upper.set_ylabel("exact")
        upper.yaxis.set_major_formatter(PercentFormatter(1.0))
        lowest = min(group.exact_interval[0] for groups in series.values() for group in groups)
        upper.set_ylim(max(0.0, lowest - 0.04), 1.02)
        lower.set(xlabel=label, ylabel="strips")
        lower.locator_params(axis="y", nbins=2)
        _legend(upper, len(series))
        return _svg(figure, f"Exact by {label}")


def draw_reliability(series: Mapping[str, Sequence[Bin]]) -> str:
    """Draws the share of right readings against confidence, over how many strips have it.

    Args:
        series: Bins of each model.
    """
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5.2, 4.2), layout="constrained")
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
        upper.plot([0, 1], [0, 1], color=_TEXT, linewidth=0.8, linestyle=(0, (4, 3)))
        for number, (name, bins) in enumerate(series.items()):
            colour = _SERIES[number % len(_SERIES)]
            places, exact = [each.confidence for each in bins], np.array([each.exact for each in bins])
            bounds = np.array([each.interval for each in bins]).T
            upper.errorbar(
                places,
                exact,
                yerr=np.abs(bounds - exact),
                fmt=_MARKERS[number % len(_MARKERS)] + "-",
                markersize=4.5,
                linewidth=1.2,
                color=colour,
                label=name,
            )
            lower.plot(places, [each.lines for each in bins], ".-", linewidth=1, markersize=5, color=colour)
        every = [each for bins in series.values() for each in bins]
        least_sure = math.floor(10 * min(each.confidence for each in every)) / 10
        least_right = math.floor(10 * min(each.interval[0] for each in every)) / 10
        upper.set(
            ylabel="share that is right", xlim=(min(least_sure, 0.8) - 0.01, 1.01), ylim=(least_right - 0.02, 1.02)
        )
        lower.set(xlabel="confidence", ylabel="strips", yscale="log")
        lower.set_ylim(0.7, None)
        lower.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        lower.minorticks_off()
        for axis in (upper.xaxis, upper.yaxis, lower.xaxis):
            axis.set_major_formatter(PercentFormatter(1.0))
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
