"""The manifests: kustomize assembles them, Kubernetes' own schemas take them, and they agree with the server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from glyphline.cli.application import app
from glyphline.service.health import ITSELF
from glyphline.service.metrics import Metrics
from glyphline.service.settings import ServerSettings

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
COMPONENTS = sorted(path.name for path in (FOLDER / "components").iterdir())
MARGIN_SECONDS = 10  # as docs/serving.md promises
KUBERNETES = "1.32"
FOREIGN = {"ScaledObject", "ServiceMonitor"}  # of operators, whose schemas are not Kubernetes' own

Resource = dict[str, Any]
Build = Callable[[Sequence[str]], list[Resource]]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Returns what assembles the base and some components, as an overlay of one's own would."""
    if shutil.which("kustomize"):
        command = ["kustomize", "build"]
    elif shutil.which("kubectl"):
        command = ["kubectl", "kustomize"]
    else:
        pytest.skip("kustomize is missing; kubectl has it too")

    def assemble(components: Sequence[str]) -> list[Resource]:
        folder = tmp_path_factory.mktemp("overlay").resolve()
        here = Path(os.path.relpath(FOLDER, folder))
        overlay = {"resources": [str(here / "base")], "components": [str(here / "components" / c) for c in components]}
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay), encoding="utf-8")
        done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert not done.stderr, done.stderr  # warnings, as of fields that will go
        return list(yaml.safe_load_all(done.stdout))

    return assemble


@pytest.fixture(scope="module")
def base(build: Build) -> list[Resource]:
    return build([])


@pytest.fixture(scope="module")
def everything(build: Build) -> list[Resource]:
    """All components but the simpler of the two that scale."""
    return build([name for name in COMPONENTS if name != "hpa"])


def find(resources: list[Resource], kind: str, name: str = "glyphline") -> Resource:
    (found,) = (each for each in resources if each["kind"] == kind and each["metadata"]["name"] == name)
    return found


def pod_of(deployment: Resource) -> Resource:
    found: Resource = deployment["spec"]["template"]["spec"]
    return found


def server_of(resources: list[Resource]) -> Resource:
    (container,) = pod_of(find(resources, "Deployment"))["containers"]
    assert isinstance(container, dict)
    return container


def settings_of(arguments: list[str]) -> dict[str, str]:
    """Returns the options by the names of the settings; every one must be an option of the command."""
    command, *options = arguments
    commands = get_command(app).commands  # type: ignore[attr-defined]  # typer's own copy of click has no types
    known = {option for parameter in commands[command].params for option in parameter.opts}
    pairs = [option.split("=", 1) for option in options]
    assert {name for name, _ in pairs} <= known
    return {name.removeprefix("--").replace("-", "_"): value for name, value in pairs}


@pytest.mark.parametrize("components", [[], ["hpa"], [name for name in COMPONENTS if name != "hpa"]])
def test_kubernetes_takes_what_is_assembled(build: Build, components: list[str]) -> None:
    kubernetes_validate = pytest.importorskip(
        "kubernetes_validate", reason="has the schemas: install kubernetes-validate"
    )
    resources = build(components)
    for resource in resources:
        assert resource["metadata"].get("namespace") == "glyphline" or resource["kind"] == "Namespace"
        if resource["kind"] not in FOREIGN:
            kubernetes_validate.validate(resource, KUBERNETES, strict=True)
    names = [(resource["kind"], resource["metadata"]["name"]) for resource in resources]
    assert len(names) == len(set(names))


def test_each_component_can_be_taken_alone(build: Build) -> None:
    for name in COMPONENTS:
        assert build([name])


def test_selectors_find_the_pods(everything: list[Resource]) -> None:
    labels = {
        resource["metadata"]["name"]: resource["spec"]["template"]["metadata"]["labels"]
        for resource in everything
        if resource["kind"] == "Deployment"
    }
    assert set(labels) == {"glyphline", "glyphline-envoy"}
    for resource in everything:
        name, spec = resource["metadata"]["name"], resource.get("spec", {})
        selector = {
            "Deployment": lambda spec: spec["selector"]["matchLabels"],
            "PodDisruptionBudget": lambda spec: spec["selector"]["matchLabels"],
            "NetworkPolicy": lambda spec: spec["podSelector"]["matchLabels"],
            "Service": lambda spec: spec["selector"],
        }.get(resource["kind"])
        if selector is not None:
            assert selector(spec).items() <= labels[name].items(), resource
        if resource["kind"] == "Deployment":
            for spread in pod_of(resource)["topologySpreadConstraints"]:
                assert spread["labelSelector"]["matchLabels"].items() <= labels[name].items()
    service = find(everything, "Service")
    monitor = find(everything, "ServiceMonitor")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert {each["port"] for each in monitor["spec"]["endpoints"]} <= {
        each["name"] for each in service["spec"]["ports"]
    }


def test_ports_are_those_of_the_containers(everything: list[Resource]) -> None:
    for deployment in (each for each in everything if each["kind"] == "Deployment"):
        (container,) = pod_of(deployment)["containers"]
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        for resource in everything:
            if resource["kind"] == "Service" and resource["metadata"]["name"] == deployment["metadata"]["name"]:
                assert {each["targetPort"] for each in resource["spec"]["ports"]} <= set(ports)
            if resource["kind"] == "NetworkPolicy" and resource["metadata"]["name"] == deployment["metadata"]["name"]:
                allowed = {port["port"] for rule in resource["spec"]["ingress"] for port in rule["ports"]}
                assert allowed <= set(ports)
        for probe in (value for name, value in container.items() if name.endswith("Probe")):
            if "grpc" in probe:
                assert probe["grpc"]["port"] in ports.values()
            if "tcpSocket" in probe:
                assert probe["tcpSocket"]["port"] in ports
    server = {each["name"]: each["containerPort"] for each in server_of(everything)["ports"]}
    defaults = ServerSettings.model_fields
    assert server == {"grpc": defaults["port"].default, "metrics": defaults["metrics_port"].default}


def test_pods_are_killed_no_earlier_than_they_end_by_themselves(base: list[Resource]) -> None:
    settings = settings_of(server_of(base)["args"])
    needed = float(settings["drain_seconds"]) + float(settings["grace_seconds"]) + MARGIN_SECONDS
    assert pod_of(find(base, "Deployment"))["terminationGracePeriodSeconds"] == needed


@pytest.mark.parametrize("kind", ["base", "everything"])
def test_the_server_takes_its_settings(kind: str, request: pytest.FixtureRequest) -> None:
    resources: list[Resource] = request.getfixturevalue(kind)
    settings = ServerSettings.model_validate(settings_of(server_of(resources)["args"]))
    assert settings.host == "0.0.0.0"
    cores = server_of(resources)["resources"]["requests"]["cpu"]
    assert settings.worker_count == int(cores)


def test_probes_ask_what_they_should(base: list[Resource], everything: list[Resource]) -> None:
    server = server_of(base)
    assert server["livenessProbe"]["grpc"]["service"] == ITSELF
    assert "service" not in server["readinessProbe"]["grpc"]
    patience = ServerSettings.model_fields["start_seconds"].default
    for container in (server, server_of(everything)):
        startup = container["startupProbe"]
        assert startup["periodSeconds"] * startup["failureThreshold"] >= patience
        readiness = container["readinessProbe"]
        drain = float(settings_of(container["args"])["drain_seconds"])
        assert readiness["periodSeconds"] * readiness["failureThreshold"] < drain
    commands = get_command(app).commands  # type: ignore[attr-defined]
    known = {option for parameter in commands["health"].params for option in parameter.opts}
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        program, command, *options = server_of(everything)[name]["exec"]["command"]
        assert (program, command) == ("glyphline", "health")
        assert {option.split("=", 1)[0] for option in options} <= known


def test_pods_can_do_little(everything: list[Resource]) -> None:
    for deployment in (each for each in everything if each["kind"] == "Deployment"):
        pod = pod_of(deployment)
        (container,) = pod["containers"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]}
        assert set(container["resources"]["limits"]) == {"memory"}
    policy = find(everything, "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert "egress" not in policy  # calls nobody


def test_queues_are_counted_by_metrics_that_the_server_has(everything: list[Resource]) -> None:
    triggers = find(everything, "ScaledObject")["spec"]["triggers"]
    (query,) = (each["metadata"]["query"] for each in triggers if each["type"] == "prometheus")
    exposed = {sample.name for family in Metrics().registry.collect() for sample in family.samples}
    named = set(re.findall(r"glyphline_\w+", query))
    assert named
    assert named <= exposed


@pytest.mark.parametrize("component", ["hpa", "keda"])
def test_only_one_sets_the_number_of_servers(build: Build, component: str) -> None:
    resources = build([component])
    assert "replicas" not in find(resources, "Deployment")["spec"]
    kind = {"hpa": "HorizontalPodAutoscaler", "keda": "ScaledObject"}[component]
    spec = find(resources, kind)["spec"]
    assert spec["scaleTargetRef"]["name"] == "glyphline"
    assert (spec.get("minReplicas") or spec["minReplicaCount"]) >= 2


def test_envoy_has_the_shipped_configuration(everything: list[Resource]) -> None:
    (configuration,) = (each for each in everything if each["kind"] == "ConfigMap")
    for name, text in configuration["data"].items():
        assert text == (FOLDER.parent / "envoy" / name).read_text(encoding="utf-8")
    pod = pod_of(find(everything, "Deployment", "glyphline-envoy"))
    (reference,) = (volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume)
    assert reference == configuration["metadata"]["name"]
    config = yaml.safe_load(configuration["data"]["envoy.yaml"])
    (listener,) = config["static_resources"]["listeners"]
    port = listener["address"]["socket_address"]["port_value"]
    assert port in {each["containerPort"] for each in pod["containers"][0]["ports"]}
    (cluster,) = config["static_resources"]["clusters"]
    (endpoint,) = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"]
    address = endpoint["endpoint"]["address"]["socket_address"]
    service = find(everything, "Service")
    assert address["address"] == service["metadata"]["name"]
    assert address["port_value"] in {each["port"] for each in service["spec"]["ports"]}
    mounts = {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounts == {"/etc/envoy", "/etc/envoy/tls"}
