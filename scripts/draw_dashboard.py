"""Draws what Grafana's dashboard asks, from the answers of a Prometheus, where no Grafana is at hand.

Needs Matplotlib (the extra `train`). Places, titles, units and colours are those of the dashboard:

    python scripts/draw_dashboard.py --prometheus http://localhost:9091 --minutes 60 --output dashboard.png
    python scripts/draw_dashboard.py --rows 1 6 7 --output quality.png
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

Json = dict[str, Any]
DASHBOARD = Path(__file__).parents[1] / "deploy" / "grafana" / "dashboards" / "glyphline.json"
COLUMNS = 24
WIDTH_INCHES = 16.0
ROW_INCHES = 0.4
POINTS = 240  # of a curve
COLOURS = {"blue": "#3274b5", "green": "#3f8f3f", "yellow": "#c99700", "red": "#c4302b"}


@dataclass(frozen=True)
class Curve:
    """The answer to a query, of one series.

    Attributes:
        labels: Of the series.
        legend: Its name.
        times: Seconds since the beginning, (points).
        values: What was answered, (points).
    """

    labels: dict[str, str]
    legend: str
    times: NDArray[np.float64]
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Span:
    """What is asked, and of whom.

    Attributes:
        prometheus: Its address.
        begin: Seconds since 1970.
        end: Likewise.
        window: What stands for `$__rate_interval`.
    """

    prometheus: str
    begin: float
    end: float
    window: str

    def ask(self, target: Json) -> list[Curve]:
        """Returns the curves of a query of a panel, with all that its variables could choose."""
        query = re.sub(r"\$\w+", ".*", target["expr"].replace("$__rate_interval", self.window))
        step = max(1.0, (self.end - self.begin) / POINTS)
        asked = urllib.parse.urlencode({"query": query, "start": self.begin, "end": self.end, "step": step})
        with urllib.request.urlopen(f"{self.prometheus}/api/v1/query_range?{asked}", timeout=60) as answer:
            series = json.load(answer)["data"]["result"]
        return [self._curve(each, target["legendFormat"]) for each in series]

    def _curve(self, series: Json, legend: str) -> Curve:
        labels: dict[str, str] = series["metric"]
        told = ", ".join(labels.values()) if legend == "__auto" else legend
        name = re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), told)
        points = np.array(series["values"], dtype=np.float64)
        return Curve(labels, name, points[:, 0] - self.begin, points[:, 1])


def spell(value: float, unit: str) -> str:
    """Writes a value in its unit."""
    if not math.isfinite(value):
        return ""
    if unit == "percentunit":
        return f"{100 * value:.3g} %"
    if unit == "s":
        return f"{1000 * value:.3g} ms" if abs(value) < 1 else f"{value:.3g} s"
    return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}") + {"reqps": " /s", "ops": " /s"}.get(unit, "")


def draw_number(axes: Axes, panel: Json, curves: Sequence[Curve]) -> None:
    """Draws the last value, on the colour that it has."""
    defaults = panel["fieldConfig"]["defaults"]
    axes.set_xticks([])
    axes.set_yticks([])
    if not curves:
        axes.text(0.5, 0.5, "No data", ha="center", va="center", transform=axes.transAxes, color="grey")
        return
    value = float(curves[0].values[-1])
    steps = defaults["thresholds"]["steps"]
    colour = [step["color"] for step in steps if step["value"] is None or value >= step["value"]][-1]
    axes.set_facecolor(COLOURS[colour])
    text = spell(value, defaults["unit"])
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes, color="white", fontsize=20)


def draw_curves(axes: Axes, panel: Json, curves: Sequence[Curve]) -> None:
    """Draws curves, one above the other where the panel piles them up."""
    defaults = panel["fieldConfig"]["defaults"]
    shown = sorted(curves, key=lambda curve: -float(np.nanmax(curve.values, initial=0.0)))
    if defaults["custom"]["stacking"]["mode"] == "normal" and shown:
        times = np.unique(np.concatenate([curve.times for curve in shown]))
        heights = [np.nan_to_num(np.interp(times, curve.times, curve.values, 0.0, 0.0)) for curve in shown]
        axes.stackplot(times, heights, labels=[curve.legend for curve in shown], alpha=0.7)
    else:
        for curve in shown:
            axes.plot(curve.times, curve.values, label=curve.legend, linewidth=1.2)
    for step in defaults["thresholds"]["steps"][1:]:
        axes.axhline(step["value"], color=COLOURS[step["color"]], linestyle="--", linewidth=0.8)
    axes.set_ylim(bottom=0, top=defaults.get("max"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: spell(value, defaults["unit"])))
    axes.grid(alpha=0.3)
    if shown:
        axes.legend(fontsize=6, loc="upper left", ncols=2, framealpha=0.6)


def draw_buckets(axes: Axes, panel: Json, curves: Sequence[Curve]) -> None:
    """Draws how many of a histogram's values came in which bucket and when."""
    del panel
    rising = sorted(curves, key=lambda curve: float(curve.labels["le"]))
    if not rising:
        return
    counts = np.diff(np.array([np.nan_to_num(curve.values) for curve in rising]), axis=0, prepend=0.0)
    times = rising[0].times
    axes.imshow(
        counts, aspect="auto", origin="lower", cmap="Oranges", extent=(times[0], times[-1], -0.5, len(rising) - 0.5)
    )
    axes.set_yticks(range(len(rising)), [curve.labels["le"] for curve in rising], fontsize=5)


def draw_table(axes: Axes, panel: Json, curves: Sequence[Curve]) -> None:
    """Writes the labels of the series that there are at the end."""
    hidden = panel["transformations"][0]["options"]["excludeByName"]
    last = max((curve.times[-1] for curve in curves), default=0.0)
    axes.set_xticks([])
    axes.set_yticks([])
    rows = [
        "   ".join(f"{k}={v}" for k, v in curve.labels.items() if k not in hidden)
        for curve in curves
        if curve.times[-1] == last
    ]
    axes.text(
        0.005, 0.95, "\n".join(rows) or "nothing", va="top", transform=axes.transAxes, fontsize=7, family="monospace"
    )


DRAW: dict[str, Callable[[Axes, Json, Sequence[Curve]], None]] = {
    "stat": draw_number,
    "timeseries": draw_curves,
    "heatmap": draw_buckets,
    "table": draw_table,
}


def choose(panels: Sequence[Json], rows: Sequence[int]) -> list[Json]:
    """Returns the panels of some rows, moved up to where nothing is between them.

    Args:
        panels: Of the dashboard, in its order.
        rows: Numbers of rows from 1; all if empty.
    """
    chosen: list[Json] = []
    row = end = lifted = 0
    for panel in panels:
        place = panel["gridPos"]
        if panel["type"] == "row":
            row += 1
            lifted = place["y"] - end
        if not rows or row in rows:
            chosen.append(panel | {"gridPos": place | {"y": place["y"] - lifted}})
            end = max(end, place["y"] - lifted + place["h"])
    return chosen


def draw(panels: Sequence[Json], span: Span, output: Path) -> None:
    """Draws panels.

    Args:
        panels: As Grafana reads them.
        span: What is asked, and of whom.
        output: Picture.
    """
    mpl.rcParams.update({"font.size": 8, "axes.titlesize": 9, "axes.titlelocation": "left"})
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    figure = plt.figure(figsize=(WIDTH_INCHES, ROW_INCHES * height))
    for panel in panels:
        place = panel["gridPos"]
        left, top = place["x"] / COLUMNS, 1 - place["y"] / height
        if panel["type"] == "row":
            figure.text(0.005, top - 0.8 / height, panel["title"], fontsize=12, weight="bold")
            continue
        inner = (place["w"] - 1.2) / COLUMNS, (place["h"] - (1.4 if place["h"] < 6 else 1.9)) / height
        axes = figure.add_axes((left + 0.8 / COLUMNS, top - 0.9 / height - inner[1], *inner))
        axes.set_title(panel["title"])
        curves = [curve for target in panel["targets"] for curve in span.ask(target)]
        DRAW[panel["type"]](axes, panel, curves)
        if panel["type"] in {"timeseries", "heatmap"}:
            axes.set_xlim(0, span.end - span.begin)
            axes.xaxis.set_major_formatter("{x:.0f} s")
    figure.savefig(output, dpi=90)
    plt.close(figure)


def main() -> None:
    """Draws the dashboard."""
    parser = argparse.ArgumentParser(description="Draw Grafana's dashboard from the answers of a Prometheus.")
    parser.add_argument("--prometheus", default="http://localhost:9091", help="its address (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=60, help="how far back (default: %(default)g)")
    parser.add_argument("--window", default="1m", help="of rates, four scrapes or more (default: %(default)s)")
    parser.add_argument("--rows", type=int, nargs="*", default=[], help="numbers of rows to draw (default: all)")
    parser.add_argument("--output", type=Path, required=True, help="picture to write")
    arguments = parser.parse_args()
    end = time.time()
    span = Span(arguments.prometheus, end - 60 * arguments.minutes, end, arguments.window)
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    draw(choose(panels, arguments.rows), span, arguments.output)


if __name__ == "__main__":
    mpl.use("Agg")
    main()
