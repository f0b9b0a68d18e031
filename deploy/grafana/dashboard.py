"""Writes Grafana's dashboard, dashboards/glyphline.json, or checks that it is as it would be written.

The JSON has some sixty lines for each of forty panels. What differs between them is in the files of rows, a few lines
a panel, where it can be read and reviewed. Needs nothing but Python:

    python deploy/grafana/dashboard.py
    python deploy/grafana/dashboard.py --check
"""

import argparse
import json
import sys
from pathlib import Path

from first_row import FIRING, FIRST
from panels import Json, annotation, lay_out, variable
from quality_rows import CHANGE, QUALITY
from service_rows import BATCHES, CALLS, MODELS, REFUSED, SECURITY, TIME

FILE = Path(__file__).parent / "dashboards" / "glyphline.json"
ROWS = (FIRST, CALLS, TIME, BATCHES, REFUSED, QUALITY, CHANGE, MODELS, SECURITY)
_HELD = 'glyphline_confidence_count{job=~"$job", instance=~"$instance"'


def dashboard() -> Json:
    """Returns the whole dashboard."""
    return {
        "uid": "glyphline",
        "title": "Glyphline",
        "description": "The service, and how well it reads. Written by deploy/grafana/dashboard.py.",
        "tags": ["glyphline"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,  # one cross-hair for all panels
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Data source",
                    "type": "datasource",
                    "query": "prometheus",
                    "refresh": 1,
                    "current": {"text": "Prometheus", "value": "prometheus", "selected": True},
                },
                variable("job", "Job", "label_values(glyphline_workers, job)"),
                variable("instance", "Instance", 'label_values(glyphline_workers{job=~"$job"}, instance)'),
                variable("model", "Model", f"label_values({_HELD}}}, model)"),
                variable("version", "Version", f'label_values({_HELD}, model=~"$model"}}, version)'),
            ]
        },
        "annotations": {
            "list": [
                annotation("Alerts", "red", FIRING, "{{alertname}}"),
                annotation(
                    "New versions",
                    "blue",
                    'sum by (model) (increase(glyphline_model_loads_total{SERVER, outcome="loaded"}[1m])) > 0',
                    "{{model}} loaded",
                ),
            ]
        },
        "panels": list(lay_out(ROWS)),
    }


def main() -> int:
    """Writes the file, or checks it.

    Returns:
        The exit code: 1 if the file is not as it would be written.
    """
    parser = argparse.ArgumentParser(description=f"Write {FILE.name}, Grafana's dashboard of Glyphline.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the file would change")
    check = parser.parse_args().check
    text = json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n"
    if not check:
        FILE.write_text(text, encoding="utf-8")
        return 0
    if FILE.is_file() and FILE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{FILE} is out of date: run python {sys.argv[0]}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
