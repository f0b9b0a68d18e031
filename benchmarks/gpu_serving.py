"""A real server with its workers on the device: its answers, what it says of itself, and its rate."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Sequence

from gpu_figures import Check, Scale, Speed
from gpu_reading import SEARCHES, real_strips
from load import Task, closed_loop
from prometheus_client.parser import text_string_to_metric_families
from server import serving

from glyphline.models.decoding import Reading
from glyphline.models.devices import Device, split_devices
from glyphline.models.recognizer import Recognizer
from glyphline.recognition.v1 import recognition_pb2 as messages
from glyphline.service.client import Client

TIES = 0.005
"""Share of the answers that may differ: which of two texts that score the same comes first may hang on a batch."""


def check_serving(
    recognizers: Sequence[Recognizer], device: Device, workers: int, scale: Scale
) -> tuple[list[Check], list[Speed]]:
    """Serves models from the device and calls them."""
    workers = max(workers, len(split_devices(device)))
    names = [one.bundle.manifest.name for one in recognizers]
    port = _free_port()
    arguments = ["--device", device, "--models", ",".join(names), "--metrics-port", str(port)]
    checks, speeds = [], []
    with serving(workers, arguments) as server:
        sent = 0
        for one in recognizers:
            name = one.bundle.manifest.name
            contents = real_strips(one.bundle, min(scale.strips, 128))
            outcomes = one.recognize(contents, SEARCHES["greedy"])
            expected = [outcome.text if isinstance(outcome, Reading) else "" for outcome in outcomes]
            with Client(server.target, timeout=120) as client:
                used = client.recognize(contents[0], model=name).metadata.execution_provider
            checks.append(Check(f"{name} served: where it reads", used == one.provider, used))
            config = messages.RecognitionConfig(model=name)
            config.greedy.SetInParent()
            task = Task(server.target, contents, expected, config.SerializeToString())
            outcome = closed_loop(task, scale.callers, scale.served_seconds)
            answers, failed = len(outcome.latencies), sum(outcome.errors.values())
            sent += 1 + answers
            detail = f"{answers:,} answers, {failed} failed, {outcome.different} with another text"
            passed = answers > 0 and not failed and outcome.different <= TIES * answers
            checks.append(Check(f"{name} served: answers", passed, detail))
            way = f"served, {workers} worker{'s' if workers > 1 else ''}, {scale.callers} callers"
            speeds.append(Speed(name, way, 1, 0, answers / outcome.seconds))
        checks.append(_check_metrics(port, sent, recognizers))
    return checks, speeds


def _check_metrics(port: int, sent: int, recognizers: Sequence[Recognizer]) -> Check:
    """Compares what the server counted with what was sent."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    samples = [sample for family in families for sample in family.samples]
    read = sum(
        sample.value
        for sample in samples
        if sample.name == "glyphline_images_total" and sample.labels["outcome"] == "ok"
    )
    providers = {sample.labels["provider"] for sample in samples if sample.name == "glyphline_model_info"}
    passed = read == sent and providers == {one.provider for one in recognizers}
    return Check("served: metrics", passed, f"{read:.0f} images counted of {sent} sent; {', '.join(sorted(providers))}")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
