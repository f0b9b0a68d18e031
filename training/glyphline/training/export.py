"""Export: from a training run to a bundle, behind a gate that ONNX Runtime must pass.

The graphs are written with torch's exporter, compared with the network over a grid of batch sizes and widths, and only
then does the bundle appear, whole, in its place.
"""

from __future__ import annotations

import datetime
import logging
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import torch
from PIL import Image
from pydantic import JsonValue
from torch import nn

from glyphline.models.bundle import Bundle, load_bundle, write_manifest
from glyphline.models.errors import ImageError
from glyphline.models.image import GreyImage, normalise
from glyphline.models.manifest import MODEL_CARD_NAME, DecoderDefaults, Manifest, Probe, StateTensor
from glyphline.models.recognizer import Recognizer
from glyphline.models.session import available_threads
from glyphline.training.calibrate import calibrate
from glyphline.training.card import write_card
from glyphline.training.config import NetworkConfig, TrainingConfig
from glyphline.training.datasets.build import build_set
from glyphline.training.datasets.samples import Sample
from glyphline.training.errors import ExportError
from glyphline.training.evaluate import read_samples
from glyphline.training.fuse import FUSED_NAME, check_fused
from glyphline.training.fused_graph import write_fused
from glyphline.training.half_weights import halve_weights
from glyphline.training.loop import load_network
from glyphline.training.loop.folder import Which, choose_checkpoint, read_start
from glyphline.training.networks.encoder import StripEncoder
from glyphline.training.networks.onnx_recurrent import OPSET
from glyphline.training.networks.recogniser import RecogniserNetwork
from glyphline.training.networks.rounding import round_weights
from glyphline.training.onnx_graphs import Head, make_graphs, write_graph
from glyphline.training.parity import check_parity
from glyphline.training.run_folder import free_target

logger = logging.getLogger(__name__)


def check_texts(
    network: RecogniserNetwork, config: TrainingConfig, head: Head, recognizer: Recognizer, samples: list[Sample]
) -> None:
    """Reads strips one by one in torch and in batches in the recogniser; every text must be the same.

    Raises:
        ExportError: If a text differs; strip and texts are named.
    """
    alphabet = config.make_alphabet()
    for sample, reading in zip(samples, read_samples(recognizer, samples), strict=True):
        pixels = normalise(GreyImage(sample.pixels), config.image)
        width = pixels.shape[1]
        padded = np.pad(pixels, ((0, 0), (0, -width % StripEncoder.WIDTH_MULTIPLE)))
        images = torch.from_numpy(padded)[None, None]
        symbols = network.read(images, torch.tensor([width]), config.max_output_length)[head][0]
        expected = alphabet.decode(symbols[: config.max_output_length])
        if reading.text != expected:
            raise ExportError(
                f"{sample.source}: torch reads {expected!r}, the bundle {reading.text!r}: no bundle was written"
            )


def git_commit(folder: Path) -> str:
    """Returns the commit of the source tree that holds `folder`, or `unknown`."""
    command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def choose_head(config: NetworkConfig) -> Head:
    """Returns the head that is exported where none is named: `ctc` if there is one, else the step-wise head."""
    if "ctc" in config.heads or config.decoder_head is None:
        return "ctc"
    return config.decoder_head


def list_states(network: RecogniserNetwork) -> list[StateTensor]:
    """Returns what a manifest says of the state of a network's step-wise head."""
    decoder = network.decoder
    assert decoder is not None
    return [
        StateTensor(name=name, kind="frames")
        if name in decoder.frame_states
        else StateTensor(name=name, kind="fixed", size=decoder.size)
        for name in decoder.state_names
    ]


def export_run(
    run: Path, output: Path, name: str, version: int, head: str | None, data_root: Path, which: Which = "best"
) -> Path:
    """Exports one head of a trained network as a bundle.

    Args:
        run: Folder of the training run.
        output: Repository folder; the bundle becomes `<output>/<name>/<version>`.
        name: Name of the bundle.
        version: Its version.
        head: Which of its heads; where none is named, `ctc` if the network has it, else its step-wise head.
        data_root: Folder of the data; probe, calibration and the check of texts come from the validation sets.
        which: Which checkpoint; see `choose_checkpoint`.

    Returns:
        Folder of the bundle.

    Raises:
        TrainingError: If the target exists, or the run has no checkpoint.
        ExportError: If the run lacks the head, or ONNX Runtime does not agree with torch.
    """
    target = free_target(output, name, version)
    checkpoint = choose_checkpoint(run, which)
    logger.info("exporting the averaged weights of %s", checkpoint)
    if which == "last" and (best := choose_checkpoint(run)).which == "best":
        logger.info("%s read the validation sets better: without --checkpoint last it would be exported", best)
    config, network, strips_seen = load_network(run, lambda _: checkpoint.path)
    round_weights(network)
    chosen = cast(Head, head) if head is not None else choose_head(config.network)
    logger.info("reading %d validation sets", len(config.validation))
    samples = [sample for settings in config.validation.values() for sample in build_set(settings, data_root)]
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{version}-", dir=target.parent))
    try:
        graphs = make_graphs(network, chosen, config.image.height)
        for graph in graphs:
            logger.info("writing %s.onnx", graph.role)
            write_graph(graph, partial / f"{graph.role}.onnx")
            if graph.role != "decoder_step":  # whose loop would turn them back at every step
                halve_weights(partial / f"{graph.role}.onnx")
        files = {graph.role: f"{graph.role}.onnx" for graph in graphs}
        if chosen != "ctc":
            logger.info("writing %s", FUSED_NAME)
            files["decode"] = FUSED_NAME
            write_fused(partial / files["decoder_step"], partial / FUSED_NAME)
        logger.info("comparing ONNX Runtime with torch")
        difference = check_parity(network, chosen, partial, config.image.height)
        logger.info("greatest difference of a probability between torch and ONNX Runtime: %.2g", difference)
        states = list_states(network) if chosen != "ctc" else []
        probe = next((s for s in samples if len(s.text) >= 5), max(samples, key=lambda sample: len(sample.text)))
        Image.fromarray(probe.pixels).save(partial / "probe.png")
        frame = StripEncoder.WIDTH_MULTIPLE / (config.network.frames_per_step if chosen == "ctc" else 1)
        manifest = Manifest(
            name=name,
            version=version,
            task=config.task,
            head=chosen,
            alphabet=list(config.make_alphabet().symbols),
            image=config.image,
            max_output_length=config.max_output_length,
            decoder=DecoderDefaults(name="greedy", beam_width=10, length_penalty=0.0 if chosen == "ctc" else 1.0),
            pixels_per_frame=frame,
            width_multiple=StripEncoder.WIDTH_MULTIPLE,
            graphs=files,
            states=states,
            probe=Probe(image="probe.png", text="", confidence=0.0),
            training={
                "config": config.model_dump(mode="json"),
                "strips_seen": strips_seen,
                "checkpoint": {
                    "which": checkpoint.which,
                    "epoch": checkpoint.epoch,
                    "validation_error": checkpoint.error,
                    "weights": "averaged",
                },
                "start_from": cast(JsonValue, read_start(run)),
                "parameters": sum(parameter.numel() for parameter in _parameters(network, chosen)),
                "parity": difference,
                "opset": OPSET,
                "torch": torch.__version__,
            },
            licence=config.licence,
            data=list(config.data),
            git_commit=git_commit(Path(__file__).parent),
            created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        )
        _finish(partial, manifest, network, config, chosen, samples)
        partial.chmod(0o755)
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return target


def _parameters(network: RecogniserNetwork, head: Head) -> Iterator[nn.Parameter]:
    yield from network.encoder.parameters()
    part = network.ctc if head == "ctc" else network.decoder
    assert part is not None
    yield from part.parameters()


def _finish(
    folder: Path,
    manifest: Manifest,
    network: RecogniserNetwork,
    config: TrainingConfig,
    head: Head,
    samples: list[Sample],
) -> None:
    """Calibrates, checks the texts, notes what the probe gives, and writes card and manifest."""

    def write(manifest: Manifest) -> Bundle:
        (folder / MODEL_CARD_NAME).write_text(write_card(manifest), encoding="utf-8")
        write_manifest(folder, manifest)
        return load_bundle(folder)

    first = write(manifest)
    if "decode" in manifest.graphs:
        logger.info("comparing the fused graph with the loop over the step")
        check_fused(first)
    recognizer = Recognizer.load(first, threads=available_threads(), verify_probe=False)
    compared = samples[:: max(1, len(samples) // 200)]
    logger.info("reading %s strips with torch, too", f"{len(compared):,}")
    check_texts(network, config, head, recognizer, compared)
    logger.info("calibrating the confidence on %s strips", f"{len(samples):,}")
    calibrated = calibrate(recognizer, samples)
    probe = (folder / manifest.probe.image).read_bytes()
    [reading] = calibrated.recognize([probe])
    if isinstance(reading, ImageError):
        raise ExportError(f"the probe image cannot be read: {reading}")
    noted = Probe(image=manifest.probe.image, text=reading.text, confidence=round(reading.confidence, 4))
    bundle = write(calibrated.bundle.manifest.model_copy(update={"probe": noted}))
    Recognizer.load(bundle)  # with its probe, as every server will
