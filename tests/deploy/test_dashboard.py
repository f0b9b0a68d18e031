"""The dashboard: as its generator writes it, as Grafana's own types read it, and tidy. test_rehearsal.py asks it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "deploy" / "grafana"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "dashboards" / "glyphline.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
# Marks have fields of the Prometheus plugin, `titleFormat` and `step`, which Grafana's own types leave to it.
OF_PROMETHEUS = tuple(f".annotations.list[{number}].{name}" for number in (0, 1) for name in ("titleFormat", "step"))


def test_it_is_as_it_would_be_written() -> None:
    command = [sys.executable, str(FOLDER / "dashboard.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_grafanas_own_types_read_it_without_a_loss() -> None:
    sdk = pytest.importorskip("grafana_foundation_sdk.models.dashboard")
    plugins = pytest.importorskip("grafana_foundation_sdk.cog.plugins")
    encoder = pytest.importorskip("grafana_foundation_sdk.cog.encoder")
    plugins.register_default_plugins()
    again = json.loads(json.dumps(sdk.Dashboard.from_json(DASHBOARD), cls=encoder.JSONEncoder))
    unknown = [path for path in lost(DASHBOARD, again, "") if not path.startswith(OF_PROMETHEUS)]
    assert unknown == []


def lost(given: Any, kept: Any, path: str) -> list[str]:  # noqa: ANN401  # any JSON
    """Returns the paths at which what was given is not there any more, or is something else."""
    if isinstance(given, dict):
        if not isinstance(kept, dict):
            return [path]
        return [each for name, value in given.items() for each in lost(value, kept.get(name), f"{path}.{name}")]
    if isinstance(given, list):
        if not isinstance(kept, list) or len(kept) != len(given):
            return [path]
        return [
            each
            for number, (value, other) in enumerate(zip(given, kept, strict=True))
            for each in lost(value, other, f"{path}[{number}]")
        ]
    return [] if given == kept else [f"{path}: {given!r} became {kept!r}"]


def test_every_panel_says_what_to_see_and_asks_something() -> None:
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    for panel in PANELS:
        assert panel["description"].endswith("."), panel["title"]
        assert panel["targets"], panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]


def test_panels_do_not_overlap() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        apart = [one[p] + one[s] <= other[p] or other[p] + other[s] <= one[p] for p, s in (("x", "w"), ("y", "h"))]
        assert any(apart), (one, other)


def test_queries_follow_the_variables_and_leave_no_placeholder() -> None:
    for panel in PANELS:
        for target in panel["targets"]:
            query = target["expr"]
            assert not re.search(r"\{[A-Z_]+[,}]", query), query
            used = set(re.findall(r"\$(\w+)", query)) - {"__rate_interval"}
            assert used <= VARIABLES, query
            assert used or "ALERTS" in query, query


def test_grafana_finds_prometheus_and_the_dashboards() -> None:
    (source,) = yaml.safe_load((FOLDER / "provisioning/datasources/prometheus.yml").read_text())["datasources"]
    (chosen,) = [each["current"]["value"] for each in DASHBOARD["templating"]["list"] if each["name"] == "datasource"]
    assert source["uid"] == chosen
    (provider,) = yaml.safe_load((FOLDER / "provisioning/dashboards/glyphline.yml").read_text())["providers"]
    compose = yaml.safe_load((FOLDER.parent / "compose.yaml").read_text())["services"]
    assert f"./grafana/dashboards:{provider['options']['path']}:ro" in compose["grafana"]["volumes"]
    assert source["url"] == "http://prometheus:9090"
    assert "prometheus" in compose
