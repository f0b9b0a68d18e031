"""How a panel becomes the JSON that Grafana reads. What is on the dashboard is in dashboard.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, Literal

__all__ = ["Json", "Panel", "Query", "Row", "annotation", "lay_out", "quantiles", "share", "stat", "variable"]

Json = dict[str, Any]
Kind = Literal["stat", "timeseries", "heatmap", "table"]

COLUMNS = 24  # of Grafana's grid
_SHARES = {0.1: "a tenth", 0.5: "half", 0.95: "95 %", 0.99: "99 %"}
DATA_SOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
_SERVER = 'job=~"$job", instance=~"$instance"'
# What may stand between the braces of a query for what the variables above the dashboard choose.
_SELECTORS = {
    "SERVER": _SERVER,
    "MODEL": f'{_SERVER}, model=~"$model", version=~"$version"',
    "CALLS": f'{_SERVER}, grpc_service=~"glyphline.+|inference.+"',
    "READS": f'{_SERVER}, grpc_service="glyphline.recognition.v1.RecognitionService", grpc_method="Recognize"',
    # Recorded series have fewer labels.
    "RECORDED": 'job=~"$job", model=~"$model", version=~"$version"',
    "RECORDED_OF_MODEL": 'job=~"$job", model=~"$model"',
    "RECORDED_OF_JOB": 'job=~"$job"',
}


@dataclass(frozen=True, slots=True)
class Query:
    """What a panel asks.

    Attributes:
        expression: PromQL, in which a name of `_SELECTORS` stands for what the variables choose: `up{SERVER}`.
        legend: Name of the series, with labels as `{{model}}`.
    """

    expression: str
    legend: str = ""

    @property
    def text(self) -> str:
        """The query with its selectors."""
        text = self.expression
        for name, selector in _SELECTORS.items():
            for end in ("}", ","):
                text = text.replace(f"{{{name}{end}", f"{{{selector}{end}")
        return text


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel.

    Attributes:
        kind: What is drawn.
        title: What it shows, in few words.
        description: What to see in it, behind the panel's "i".
        queries: What is asked.
        unit: Grafana's name of the unit.
        steps: From which value on which colour holds, rising; green below, or blue if there are none.
        falling: Whether low values are the bad ones: red below the first step.
        width: Columns of 24.
        height: Rows.
        stacked: Whether series are piled up.
        bars: Whether events are drawn as bars.
        maximum: Upper end of the axis.
        hidden: Columns of a table that tell nothing.
    """

    kind: Kind
    title: str
    description: str
    queries: Sequence[Query]
    unit: str = "short"
    steps: Sequence[tuple[float, str]] = ()
    falling: bool = False
    width: int = 8
    height: int = 7
    stacked: bool = False
    bars: bool = False
    maximum: float | None = None
    hidden: Sequence[str] = ()

    def as_json(self, number: int, left: int, top: int) -> Json:
        """Returns the panel at a place of the grid."""
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": DATA_SOURCE,
            "gridPos": {"h": self.height, "w": self.width, "x": left, "y": top},
            "targets": [
                self._target(letter, query) for letter, query in zip(ascii_uppercase, self.queries, strict=False)
            ],
            "fieldConfig": {"defaults": self._defaults(), "overrides": []},
            "options": _OPTIONS[self.kind],
        } | self._transformations()

    def _target(self, letter: str, query: Query) -> Json:
        once = self.kind == "table"
        return {
            "refId": letter,
            "datasource": DATA_SOURCE,
            "editorMode": "code",
            "expr": query.text,
            "legendFormat": query.legend or "__auto",
            "format": {"table": "table", "heatmap": "heatmap"}.get(self.kind, "time_series"),
            "range": not once,
            "instant": once,
        }

    def _defaults(self) -> Json:
        # A number that has no good and bad is neither green nor red.
        first = "red" if self.falling else "green" if self.steps else "blue"
        steps: list[Json] = [{"color": first, "value": None}]
        steps += [{"color": colour, "value": value} for value, colour in self.steps]
        defaults: Json = {
            "unit": self.unit,
            "thresholds": {"mode": "absolute", "steps": steps},
            "color": {"mode": "thresholds" if self.kind == "stat" else "palette-classic"},
        }
        if self.kind in {"stat", "timeseries"}:
            defaults["min"] = 0
        if self.maximum is not None:
            defaults["max"] = self.maximum
        if self.kind == "timeseries":
            defaults["custom"] = {
                "drawStyle": "bars" if self.bars else "line",
                "lineWidth": 1,
                "fillOpacity": 100 if self.bars else 30 if self.stacked else 0,
                "showPoints": "never",
                "spanNulls": False,
                "stacking": {"mode": "normal" if self.stacked else "none", "group": "A"},
                "thresholdsStyle": {"mode": "dashed" if self.steps else "off"},
            }
        if self.kind == "table":
            defaults["noValue"] = "nothing"
        return defaults

    def _transformations(self) -> Json:
        if self.kind != "table":
            return {}
        hidden = {name: True for name in ("Time", "Value", "__name__", *self.hidden)}
        return {"transformations": [{"id": "organize", "options": {"excludeByName": hidden}}]}


_OPTIONS: dict[Kind, Json] = {
    "stat": {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "background",
        "graphMode": "area",
        "justifyMode": "auto",
        "orientation": "auto",
        "textMode": "value",
    },
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "heatmap": {
        "calculate": False,
        "cellGap": 1,
        "color": {
            "mode": "scheme",
            "scheme": "Oranges",
            "steps": 64,
            "exponent": 0.5,
            "fill": "orange",
            "reverse": False,
        },
        "exemplars": {"color": "rgba(255,0,255,0.7)"},
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "rowsFrame": {"layout": "auto"},
        "tooltip": {"mode": "single", "yHistogram": True},
        "yAxis": {"axisPlacement": "left", "unit": "percentunit", "reverse": False},
    },
    "table": {"showHeader": True, "cellHeight": "sm"},
}


def stat(title: str, description: str, expression: str, **more: Any) -> Panel:  # noqa: ANN401  # as Panel has them
    """Returns a panel with one number, for the top of the dashboard."""
    return Panel("stat", title, description, [Query(expression)], width=4, height=4, **more)


def share(part: str, whole: str) -> str:
    """Returns the query of a ratio, which has no value where there is nothing to divide by."""
    return f"{part} / ({whole} > 0)"


def quantiles(
    buckets: str, shares: Sequence[float], *, by: str = "", legend: str = "", window: str = "$__rate_interval"
) -> list[Query]:
    """Returns queries of the values that shares of what a histogram counted do not exceed.

    Args:
        buckets: The histogram, with its selector.
        shares: Of all.
        by: Labels that are kept.
        legend: Name of the series, before the share.
        window: How far back is looked.
    """
    labels = f"le, {by}" if by else "le"
    return [
        Query(
            f"histogram_quantile({each}, sum by ({labels}) (rate({buckets}[{window}])))",
            f"{legend} {_SHARES[each]}".strip(),
        )
        for each in shares
    ]


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: Sequence[Panel]


def lay_out(rows: Iterable[Row]) -> Iterator[Json]:
    """Yields all rows and panels, from left to right and from top to bottom."""
    number = top = 0
    for row in rows:
        number += 1
        place: Json = {"h": 1, "w": COLUMNS, "x": 0, "y": top}
        yield {"id": number, "type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []}
        top += 1
        left = height = 0
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                left, top, height = 0, top + height, 0
            number += 1
            yield panel.as_json(number, left, top)
            left, height = left + panel.width, max(height, panel.height)
        top += height


def variable(name: str, label: str, query: str) -> Json:
    """Returns a variable whose values are those of a label, of which several or all can be chosen."""
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATA_SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,  # whenever the time range changes
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"], "selected": True},
    }


def annotation(name: str, colour: str, expression: str, title: str) -> Json:
    """Returns marks on the time axis of every panel, wherever a query has a value."""
    return {
        "name": name,
        "datasource": DATA_SOURCE,
        "enable": True,
        "iconColor": colour,
        "expr": Query(expression).text,
        "titleFormat": title,
        "step": "60s",
    }
