"""The compose file: what it names is there, and it agrees with the image and the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from glyphline.service.settings import ServerSettings, unknown_variables

FILE = Path(__file__).parents[2] / "deploy" / "compose.yaml"
MARGIN_SECONDS = 10  # as docs/serving.md promises


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))["services"]
    return found


def test_there_is_a_server_and_what_watches_it(services: dict[str, Any]) -> None:
    assert set(services) == {"glyphline", "prometheus", "grafana"}
    for service in services.values():
        assert ":" in service["image"]
        assert not service["image"].endswith(":latest")
        assert service["cap_drop"] == ["ALL"]
        for port in service["ports"]:
            assert port.startswith("127.0.0.1:")
        for dependency in service.get("depends_on", []):
            assert dependency in services


def test_folders_and_files_that_it_names_are_there(services: dict[str, Any]) -> None:
    build = services["glyphline"]["build"]
    context = FILE.parent / build["context"]
    dockerfile = context / build["dockerfile"]
    assert f" AS {build['target']}\n" in dockerfile.read_text(encoding="utf-8")
    sources = [volume.split(":")[0] for service in services.values() for volume in service.get("volumes", [])]
    folders = [FILE.parent / source for source in sources if source.startswith(".")]
    assert folders
    assert [folder for folder in folders if not folder.is_dir()] == []
    assert (FILE.parent / "prometheus" / "prometheus.yml").is_file()


def test_prometheus_scrapes_the_server(services: dict[str, Any]) -> None:
    config = yaml.safe_load((FILE.parent / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    targets = {
        target
        for job in config["scrape_configs"]
        for static in [*job.get("static_configs", []), *job.get("dns_sd_configs", [])]
        for target in [*static.get("targets", []), *static.get("names", [])]
    }
    assert any(target.startswith("glyphline") for target in targets), targets
    assert services["glyphline"]["expose"] == ["9090"]


def test_the_server_is_killed_no_earlier_than_it_ends_by_itself(services: dict[str, Any]) -> None:
    server = services["glyphline"]
    variables = server["environment"]
    assert unknown_variables(variables) == []
    needed = sum(float(variables[f"GLYPHLINE_{name}_SECONDS"]) for name in ("DRAIN", "GRACE"))
    assert server["stop_grace_period"] == f"{needed + MARGIN_SECONDS:g}s"
    assert server["ports"] == [f"127.0.0.1:{ServerSettings.model_fields['port'].default}:50051"]
    assert server["read_only"] is True
    assert any(each.startswith("/tmp:") for each in server["tmpfs"])
