"""Figures of several servers as tables, for a terminal or in Markdown, and as a plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path

from machine import print_report
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from server_figures import ServerFigures

Row = tuple[str, ...]
MARKERS = "osD^vPX*"
LOADS: Row = ("load", "server", "images/s", "p50", "p95", "p99", "CPU", "client", "failed", "wrong")
OVERLOADS: Row = (
    *(
        "server",
        "capacity",
        "due",
        "in time",
        "of capacity",
        "of what is left",
        "refused",
        "late",
        "failed",
        "p99",
        "recovery",
    ),
    *("health p99", "health failed", "client late"),
)
CANCELS: Row = (
    "server",
    "calls",
    "cancelled",
    "neighbours",
    "right",
    "wrong",
    "hung",
    "failed",
    "after",
    "wrong",
    "failed",
)
CAPTIONS = {
    "load": "images/s: right answers; p50 …: latency in ms; CPU, client: CPU time of server and client, ms an image",
    "overload": "images/s; in time: right answers within the deadline; left: of the capacity, by a client that shares "
    "the cores; p99: latency of right answers, ms; recovery: s until a light load is answered fast again; health: ms",
    "cancels": "neighbours: calls that were not cancelled; hung: no answer as long as the client was patient; after: "
    "calls made when all was over",
}


def tables(figures: Sequence[ServerFigures], titles: Mapping[str, str]) -> list[tuple[str, str, list[Row]]]:
    """Returns a title, a caption and rows, headings first, for loads, overload and cancellations."""
    loads: list[Row] = [LOADS]
    for place in range(len(figures[0].loads)):
        for row in figures:
            load = row.loads[place]
            loads.append(
                (
                    load.load,
                    row.server,
                    f"{load.images_per_second:.0f}",
                    *(_number(value) for value in load.latency_milliseconds.values()),
                    f"{load.cpu_milliseconds:.2f}",
                    f"{load.client_cpu_milliseconds:.2f}",
                    _failed(load.failed),
                    str(load.wrong),
                )
            )
    overloads: list[Row] = [OVERLOADS]
    cancels: list[Row] = [CANCELS]
    for row in figures:
        over, cancel = row.overload, row.cancels
        overloads.append(
            (
                row.server,
                f"{over.capacity:.0f}",
                f"{over.offered:.0f}",
                f"{over.goodput:.0f}",
                _percent(over.goodput_ratio),
                _percent(over.left_ratio),
                _percent(over.refused),
                _percent(over.late),
                _percent(over.failed),
                _number(over.accepted_p99_milliseconds),
                "not seen" if over.recovery_seconds is None else f"{over.recovery_seconds:.1f}",
                _number(over.health_p99_milliseconds),
                str(over.health_failed),
                f"{over.client_late_milliseconds:.0f}",
            )
        )
        cancels.append(
            (
                row.server,
                str(cancel.calls),
                str(cancel.cancelled),
                str(cancel.calls - cancel.cancelled),
                str(cancel.right),
                str(cancel.wrong),
                str(cancel.hung),
                _failed(cancel.failed),
                str(cancel.after),
                str(cancel.after_wrong),
                str(cancel.after_failed),
            )
        )
    return [
        (titles[name], CAPTIONS[name], rows)
        for name, rows in (("load", loads), ("overload", overloads), ("cancels", cancels))
    ]


def show(figures: Sequence[ServerFigures], titles: Mapping[str, str], machine: Mapping[str, str]) -> None:
    """Prints the tables: drawn on a terminal, as Markdown elsewhere."""
    parts = tables(figures, titles)
    if not Console().is_terminal:
        for part in parts:
            print(markdown(*part))
        print(", ".join(f"{name} {value}" for name, value in machine.items()))
        return
    for number, (title, caption, (headings, *rows)) in enumerate(parts, 1):
        table = Table(title=title, caption=caption, box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for heading in headings:
            table.add_column(heading, justify="left" if heading in ("load", "server") else "right", overflow="fold")
        for row in rows:
            table.add_row(*row)
        if number < len(parts):
            Console().print(table)
        else:
            print_report(table, dict(machine))


def markdown(title: str, caption: str, rows: Sequence[Row]) -> str:
    """Returns a table in Markdown, its caption below it."""
    headings, *others = rows
    rule = ["---" if heading in ("load", "server") else "---:" for heading in headings]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (headings, rule, *others)]
    return "\n".join([f"{title}\n", *lines, f"\n{caption}.\n"])


def plot(path: Path, figures: Sequence[ServerFigures], title: str) -> None:
    """Draws throughput, latency, overload and cancellations, and writes them as PNG."""
    # Only who wants a plot needs it.
    from matplotlib.figure import Figure  # noqa: PLC0415
    from matplotlib.ticker import NullLocator  # noqa: PLC0415

    figure = Figure(figsize=(11.0, 7.6), layout="constrained")
    (rates, latencies), (overload, cancels) = figure.subplots(2, 2)
    names = [row.server for row in figures]
    places = range(len(names))
    for place, row in enumerate(figures):
        marked = {"marker": MARKERS[place % len(MARKERS)], "color": f"C{place}"}
        closed = [load for load in row.loads if load.callers is not None]
        rates.plot([load.callers for load in closed], [load.images_per_second for load in closed], **marked)
        opened = [load for load in row.loads if load.offered is not None]
        offered = [load.offered for load in opened]
        latencies.plot(offered, [load.latency_milliseconds["p99"] for load in opened], label=row.server, **marked)
        latencies.plot(offered, [load.latency_milliseconds["p50"] for load in opened], linestyle=":", **marked)
    ticks = [load.callers for load in figures[0].loads if load.callers is not None]
    rates.set_xscale("log", base=2)
    rates.set_xticks(ticks, [str(tick) for tick in ticks])
    rates.xaxis.set_minor_locator(NullLocator())
    rates.set_ylim(bottom=0)
    rates.set(title="throughput, closed loop", xlabel="callers", ylabel="images/s")
    latencies.set_yscale("log")
    latencies.set(title="latency, Poisson arrivals: p99, dotted p50", xlabel="images/s due", ylabel="ms")
    bottom = [0.0 for _ in names]
    kinds = {
        "in time": [row.overload.goodput / row.overload.offered for row in figures],
        "refused": [row.overload.refused for row in figures],
        "late": [row.overload.late for row in figures],
        "failed": [row.overload.failed for row in figures],
    }
    for (kind, shares), color in zip(kinds.items(), ("seagreen", "lightgrey", "goldenrod", "firebrick"), strict=True):
        heights = [100 * share for share in shares]
        overload.bar(places, heights, bottom=bottom, label=kind, color=color, width=0.6)
        bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
    for place, row in enumerate(figures):
        overload.text(place, 2, f"{_percent(row.overload.goodput_ratio)}\nof capacity", ha="center", fontsize=8)
    overload.set_xticks(places, names)
    overload.set(title="overload: what comes of a call", ylabel="% of calls", ylim=(0, 118))
    overload.legend(loc="upper center", ncols=4, fontsize=8)
    harmed = [row.cancels.hung + row.cancels.wrong + sum(row.cancels.failed.values()) for row in figures]
    neighbours = [max(1, row.cancels.calls - row.cancels.cancelled) for row in figures]
    shares = [100 * bad / whole for bad, whole in zip(harmed, neighbours, strict=True)]
    bars = cancels.bar(places, shares, color=[f"C{place}" for place in places], width=0.6)
    cancels.bar_label(bars, [f"{bad} of {whole}" for bad, whole in zip(harmed, neighbours, strict=True)], fontsize=8)
    cancels.set_xticks(places, names)
    cancels.set(title="calls that others' cancelling harmed", ylabel="% of those not cancelled")
    cancels.set_ylim(0, max(1.0, 1.2 * max(shares)))
    for axes in (rates, latencies, overload, cancels):
        axes.grid(visible=True, axis="y", which="both", alpha=0.25)
    latencies.legend(fontsize=8)
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, format="png", dpi=150)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share in (0.0, 1.0) or share >= 0.1 else f"{100 * share:.1f} %"


def _number(value: float) -> str:
    return "—" if isnan(value) else f"{value:.1f}"


def _failed(failed: Mapping[str, int]) -> str:
    return ", ".join(f"{code} {count}" for code, count in failed.items()) or "0"
