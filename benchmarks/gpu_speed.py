"""How fast a device runs the networks: arrays that come and go against tensors that stay, and what else there is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from gpu_figures import Scale, Speed
from gpu_reading import SEARCHES, real_strips, strip_of_width
from numpy.typing import NDArray

from glyphline.models.binding import Binder
from glyphline.models.devices import Device, gpu_number
from glyphline.models.errors import DeviceError
from glyphline.models.gpu import CUDA, LARGEST_ENGINE_BATCH, EngineShapes, cuda_options
from glyphline.models.heads import HEADS_THAT_LOOK_AT_FRAMES, StepHead
from glyphline.models.image import normalise
from glyphline.models.recognizer import Recognizer
from glyphline.models.session import Session, open_session, session_options
from glyphline.models.timings import StageTimings

Batch = tuple[NDArray[np.uint8], NDArray[np.int64]]
Way = Callable[[NDArray[np.uint8], NDArray[np.int64]], object]
TENSORRT_WAY = "TensorRT"


def make_batch(recognizer: Recognizer, batch: int, width: int) -> Batch:
    """Makes the input of a network: images (batch, 1, height, width) and widths (batch)."""
    bundle = recognizer.bundle
    image = strip_of_width(bundle, width, real_strips(bundle, 1)[0])
    pixels = normalise(image, bundle.manifest.image.model_copy(update={"max_width": width}))
    images = np.zeros((batch, 1, len(pixels), width), dtype=np.uint8)
    images[:, 0, :, : pixels.shape[1]] = pixels
    return images, np.full(batch, pixels.shape[1], dtype=np.int64)


def rate(way: Way, batch: Batch, seconds: float) -> float:
    """Returns images a second, once the shape is known."""
    way(*batch)
    way(*batch)
    runs, begun = 0, time.perf_counter()
    while (spent := time.perf_counter() - begun) < seconds or runs < 3:
        way(*batch)
        runs += 1
    return runs * len(batch[1]) / spent


def rounded_session(recognizer: Recognizer, device: Device) -> Session:
    """Opens a CTC network whose products are rounded to TF32, which Glyphline's own sessions never do."""
    import onnxruntime  # noqa: PLC0415  (optional)

    options = cuda_options(gpu_number(device) or 0) | {"use_tf32": "1"}
    file = recognizer.bundle.file(recognizer.bundle.manifest.graphs["network"])
    session: Session = onnxruntime.InferenceSession(
        file, session_options(1), providers=[(CUDA, options), "CPUExecutionProvider"], enable_fallback=0
    )
    return session


def ctc_ways(recognizer: Recognizer, device: Device, *, tensorrt: bool) -> dict[str, Way]:
    """Returns the ways to run a CTC network."""
    bundle, outputs = recognizer.bundle, ["log_probabilities", "lengths"]
    file = bundle.file(bundle.manifest.graphs["network"])
    binder = Binder(device)

    def arrays(session: Session) -> Way:
        return lambda images, widths: session.run(outputs, {"images": images, "widths": widths})

    session = open_session(file, device)
    ways: dict[str, Way] = {
        "arrays": arrays(session),
        "bound": lambda images, widths: binder.run(session, {"images": images, "widths": widths}, fetched=outputs),
    }
    if gpu_number(device) is not None:
        ways["arrays, TF32"] = arrays(rounded_session(recognizer, device))
        ways["CPU, one thread"] = arrays(open_session(file))
    if gpu_number(device) is not None and tensorrt:
        shapes = EngineShapes(bundle.manifest.image.height, bundle.manifest.image.max_width)
        try:
            ways[TENSORRT_WAY] = arrays(open_session(file, device, provider="tensorrt", shapes=shapes))
        except DeviceError as error:
            print(f"TensorRT is left out: {error}", file=sys.stderr)
    return ways


def step_ways(recognizer: Recognizer, device: Device) -> dict[str, Way]:
    """Returns the ways to run a step-wise head, greedily: the loop over its step, and the graph of all steps."""
    manifest, alphabet = recognizer.bundle.manifest, recognizer.alphabet
    options = SEARCHES["greedy"].resolve(alphabet, manifest.decoder, manifest.max_output_length)

    def head(device: Device, binder: Binder | None) -> StepHead:
        sessions = {role: open_session(recognizer.bundle.file(file), device) for role, file in manifest.graphs.items()}
        return StepHead(
            sessions["encoder"],
            sessions["decoder_step"],
            [state.name for state in manifest.states],
            alphabet.start,
            looks_at_frames=manifest.head in HEADS_THAT_LOOK_AT_FRAMES,
            decode=sessions.get("decode"),
            binder=binder,
        )

    def reads(head: StepHead, fused: bool) -> Way:
        timings = StageTimings()
        return lambda images, widths: head.decode(
            head.encode(images, widths, timings), replace(options), 1.0, timings, fused=fused
        )

    plain, bound = head(device, None), head(device, Binder(device))
    ways = {"loop, arrays": reads(plain, False), "loop, bound": reads(bound, False)}
    if "decode" in manifest.graphs:
        ways |= {"graph, arrays": reads(plain, True), "graph, bound": reads(bound, True)}
    if gpu_number(device) is not None:
        ways["CPU, one thread"] = reads(head("cpu", None), "decode" in manifest.graphs)
    return ways


def measure(recognizer: Recognizer, device: Device, scale: Scale, *, tensorrt: bool = False) -> list[Speed]:
    """Times every way to run a model in every shape."""
    manifest = recognizer.bundle.manifest
    ways = ctc_ways(recognizer, device, tensorrt=tensorrt) if manifest.head == "ctc" else step_ways(recognizer, device)
    speeds = []
    for size, width in scale.shapes:
        batch = make_batch(recognizer, size, min(width, manifest.image.max_width))
        for name, way in ways.items():
            if name == TENSORRT_WAY and size > LARGEST_ENGINE_BATCH:
                continue  # the recogniser would make several runs of it
            speeds.append(Speed(manifest.name, name, size, width, rate(way, batch, scale.seconds)))
    return speeds


def measure_whole(recognizer: Recognizer, way: str, scale: Scale) -> Speed:
    """Times reading files: decoding, network and search."""
    contents = real_strips(recognizer.bundle, scale.strips)
    recognizer.recognize(contents)
    runs, begun = 0, time.perf_counter()
    while (spent := time.perf_counter() - begun) < 3 * scale.seconds or not runs:
        recognizer.recognize(contents)
        runs += 1
    return Speed(recognizer.bundle.manifest.name, way, len(contents), 0, runs * len(contents) / spent)
