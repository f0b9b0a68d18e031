"""The rules for Prometheus: each alert fires when it should and else not, and the page says what to do then."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "prometheus"
PAGE = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
CASES = sorted((FOLDER / "tests").glob("*.yml"))

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (on Debian: apt-get install prometheus)"
)


def read(file: Path) -> Any:  # noqa: ANN401  # as the file has it
    return yaml.safe_load(file.read_text(encoding="utf-8"))


RULES: list[dict[str, Any]] = [
    rule
    for file in sorted((FOLDER / "rules").glob("*.yml"))
    for group in read(file)["groups"]
    for rule in group["rules"]
]
ALERTS = [rule for rule in RULES if "alert" in rule]
RECORDED = [rule["record"] for rule in RULES if "record" in rule]


def promtool(*words: str | Path) -> None:
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_promtool_takes_the_configuration_and_the_rules() -> None:
    promtool("check", "config", FOLDER / "prometheus.yml")
    promtool("check", "rules", "--lint=all", *sorted((FOLDER / "rules").glob("*.yml")))


@needs_promtool
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_promtool_sees_alerts_fire_and_stay_silent(case: Path) -> None:
    promtool("test", "rules", case)


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    fires, silent = set(), set()
    for case in CASES:
        for test in read(case)["tests"]:
            for expected in test.get("alert_rule_test", []):
                name = expected["alertname"]
                seen = {(name, *labels(each["exp_labels"])) for each in expected["exp_alerts"]}
                fires |= seen
                silent |= {(name, *labels(rule["labels"])) for rule in ALERTS if rule["alert"] == name} - seen
    rules = {(rule["alert"], *labels(rule["labels"])) for rule in ALERTS}
    assert rules == fires
    assert rules == silent


def labels(given: dict[str, str]) -> tuple[str, str]:
    """What tells rules of one name apart."""
    return given["severity"], given.get("window", "")


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: "-".join((rule["alert"], *labels(rule["labels"]))).strip("-"))
def test_every_alert_says_what_is_wrong_and_what_to_read(rule: dict[str, Any]) -> None:
    name = rule["alert"]
    assert name.startswith("Glyphline")
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    assert "{{" not in rule["annotations"]["summary"]
    assert rule["annotations"]["description"].endswith(".")
    assert rule["annotations"]["runbook"] == f"docs/monitoring.md#{name.lower()}"
    (section,) = re.findall(rf"^### {name}\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert "*Look" in section
    assert "*Do:*" in section or "do:*" in section
    (row,) = re.findall(rf"^\| \[{name}\]\(#{name.lower()}\) \| ([^|]*) \|", PAGE, re.MULTILINE)
    assert set(row.split(", ")) == {each["labels"]["severity"] for each in ALERTS if each["alert"] == name}


def test_the_page_has_no_alert_that_there_is_not() -> None:
    assert set(re.findall(r"Glyphline[A-Z]\w+", PAGE)) == {rule["alert"] for rule in ALERTS}


def test_the_page_names_every_recorded_series() -> None:
    table = PAGE[PAGE.index("## Recording rules") : PAGE.index("## Alerts")]
    stems = set(re.findall(r"`([\w]+:[\w]+:\w*?rate)\d+[mhdw]`", table))
    assert stems == {re.sub(r"\d+[mhdw]$", "", name) for name in RECORDED}
    assert len(set(RECORDED)) == len(RECORDED)


def test_the_rules_ask_only_for_series_that_there_are() -> None:
    known = {*RECORDED, "up", *(name for name, _ in catalogue())}
    for rule in RULES:
        names = set(re.findall(r"\b(?:job\w*:\w+:\w+|(?:glyphline|grpc_server)_\w+|up\b)", rule["expr"]))
        assert names
        assert {re.sub(r"_(bucket|count|sum)$", "", name) for name in names} <= known, rule


def catalogue() -> list[tuple[str, str]]:
    """Name and type of the families that the page lists; tests/service/test_prometheus.py sees that there are these."""
    return re.findall(r"^\| `(\w+)` \| (counter|gauge|histogram) \|", PAGE, re.MULTILINE)
