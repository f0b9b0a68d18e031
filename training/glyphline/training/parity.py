"""The parity gate: torch and ONNX Runtime must give the same probabilities, whatever the batch and the widths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray

from glyphline.models.session import open_session
from glyphline.training.errors import ExportError
from glyphline.training.fuse import random_strips
from glyphline.training.networks.recogniser import RecogniserNetwork
from glyphline.training.onnx_graphs import Head

TOLERANCE = 1e-4
"""Greatest difference of a probability between torch and ONNX Runtime."""

PARITY_BATCHES = (1, 2, 5, 33)
PARITY_WIDTHS = (16, 32, 64, 100, 128, 332)


def widths_of(network: RecogniserNetwork) -> list[int]:
    """Returns the widths of the grid that a network takes; the widest is the canvas, where there is one."""
    canvas = network.config.canvas_width
    return [width for width in PARITY_WIDTHS if width < canvas] + [canvas] if canvas else list(PARITY_WIDTHS)


def check_parity(network: RecogniserNetwork, head: Head, folder: Path, height: int) -> float:
    """Compares torch and ONNX Runtime over a grid of batch sizes and widths.

    A step-wise head is followed for several steps, each side with its own states. Widths stop at the canvas of a head
    that has one.

    Args:
        network: The trained network.
        head: Its head.
        folder: Folder of the graphs.
        height: Height of strips.

    Returns:
        Greatest difference of a probability.

    Raises:
        ExportError: If it is above `TOLERANCE`, or the likeliest symbols differ where their probabilities do.
    """
    random = np.random.default_rng(0)
    roles = ["network"] if head == "ctc" else ["encoder", "decoder_step"]
    sessions = {role: open_session(folder / f"{role}.onnx", "cpu", 1) for role in roles}
    worst = 0.0
    for batch in PARITY_BATCHES:
        for width in widths_of(network):
            images, widths = random_strips(random, batch, width, height)
            feeds: dict[str, NDArray[Any]] = {"images": images, "widths": widths}
            if head == "ctc":
                difference = _compare_ctc(network, sessions["network"], feeds)
            else:
                difference = _compare_steps(network, sessions["encoder"], sessions["decoder_step"], feeds)
            worst = max(worst, difference)
            if not difference <= TOLERANCE:
                raise ExportError(
                    f"ONNX Runtime differs from torch by {difference:.2g} in a probability (at most {TOLERANCE:g}) for "
                    f"a batch of {batch}, {width} wide: no bundle was written"
                )
    return worst


def _valid(lengths: NDArray[Any], longest: int) -> NDArray[Any]:
    return np.arange(longest)[None, :] < lengths[:, None]


@torch.no_grad()
def _compare_ctc(
    network: RecogniserNetwork, session: onnxruntime.InferenceSession, feeds: dict[str, NDArray[Any]]
) -> float:
    found, lengths = session.run(None, feeds)
    assert network.ctc is not None
    expected, frames = network.ctc(
        *network.encoder(torch.from_numpy(feeds["images"]), torch.from_numpy(feeds["widths"]))
    )
    if not np.array_equal(lengths, frames.numpy()):
        raise ExportError(
            f"ONNX Runtime counts {lengths.tolist()} frames, torch {frames.tolist()}: no bundle was written"
        )
    difference = np.abs(np.exp(found) - expected.exp().numpy()).max(axis=2)
    return float(difference[_valid(lengths, found.shape[1])].max())


@torch.no_grad()
def _compare_steps(
    network: RecogniserNetwork,
    encoder: onnxruntime.InferenceSession,
    step: onnxruntime.InferenceSession,
    feeds: dict[str, NDArray[Any]],
    steps: int = 6,
) -> float:
    head = network.decoder
    assert head is not None
    encoded = dict(zip([output.name for output in encoder.get_outputs()], encoder.run(None, feeds), strict=True))
    frames = {name: encoded[name] for name in ("memory", "keys", "lengths")} if head.looks_at_frames else {}
    states = [encoded[f"initial_{name}"] for name in head.state_names]
    memory, lengths = network.encoder(torch.from_numpy(feeds["images"]), torch.from_numpy(feeds["widths"]))
    if not np.array_equal(encoded["lengths"], lengths.numpy()):
        raise ExportError(
            f"ONNX Runtime counts {encoded['lengths'].tolist()} frames, torch {lengths.tolist()}: no bundle was written"
        )
    keys, torch_states = head.begin(memory, lengths)
    mask = torch.arange(memory.shape[1]).unsqueeze(0) < lengths.unsqueeze(1)
    symbols = np.full(len(lengths), head.start, np.int64)
    outputs = ["log_probabilities", *(f"next_{name}" for name in head.state_names)]
    worst = 0.0
    for _ in range(steps):
        inputs = {"symbols": symbols, **frames, **dict(zip(head.state_names, states, strict=True))}
        found, *states = step.run(outputs, inputs)
        scores, _, torch_states = head.step(torch.from_numpy(symbols), memory, keys, mask, torch_states)
        expected = torch.softmax(scores, dim=-1).numpy()
        worst = max(worst, float(np.abs(np.exp(found) - expected).max()))
        symbols = expected.argmax(axis=1).astype(np.int64)
    return worst
