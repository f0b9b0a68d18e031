"""The yardstick: ONNX Runtime alone, one thread, fed arrays that are ready.

No file is decoded, nothing is scaled, padded, searched or written: what the network itself costs, and so the least
that reading could. A CTC bundle is one call; an attention bundle is the encoder and one call for each symbol, for as
many rows as the beam is wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from glyphline.models.bundle import Bundle
from glyphline.models.image import normalise, read_image
from glyphline.models.manifest import Manifest
from glyphline.models.runs import BUCKET_STEP, MAX_COLUMNS, bucket_width, plan_runs


@dataclass(frozen=True, slots=True)
class ReadyBatch:
    """Images of near widths as the network takes them.

    Attributes:
        images: Pixels `(batch, 1, height, width)`.
        widths: Columns of each that are not padding `(batch,)`.
    """

    images: NDArray[np.uint8]
    widths: NDArray[np.int64]

    @property
    def size(self) -> int:
        """Number of images."""
        return int(self.images.shape[0])


Batching = Literal["buckets", "runs"]
"""How ready images are batched: by 16 columns of their width, as is usual, or in the runs that the recogniser plans if
it is given all of them at once, of which none cost less."""


def ready_batches(
    contents: Sequence[bytes], manifest: Manifest, max_batch: int, batching: Batching
) -> list[ReadyBatch]:
    """Decodes, scales and pads images into batches of at most `max_batch`, narrow to wide."""
    settings = manifest.image
    strips = sorted((normalise(read_image(content), settings) for content in contents), key=lambda each: each.shape[1])
    widths = [strip.shape[1] for strip in strips]
    multiple = BUCKET_STEP if batching == "buckets" else manifest.width_multiple
    if batching == "buckets":
        runs = _buckets(widths, max_batch)
    else:
        runs = plan_runs(widths, max_batch=max_batch, max_columns=MAX_COLUMNS, multiple=multiple)
    batches = []
    for begin, end in runs:
        images = np.zeros((end - begin, 1, settings.height, bucket_width(widths[end - 1], multiple)), np.uint8)
        for row, strip in zip(images, strips[begin:end], strict=True):
            row[0, :, : strip.shape[1]] = strip
        batches.append(ReadyBatch(images, np.array(widths[begin:end], np.int64)))
    return batches


def _buckets(widths: Sequence[int], max_batch: int) -> list[tuple[int, int]]:
    runs = []
    begin = 0
    for _, members in groupby(widths, bucket_width):
        count = len(list(members))
        runs += [(begin + at, begin + min(at + max_batch, count)) for at in range(0, count, max_batch)]
        begin += count
    return runs


def open_bare_session(path: str) -> ort.InferenceSession:
    """Opens a graph on the CPU with one thread that does not spin."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


class BareNetwork:
    """The graphs of one bundle, run and nothing else."""

    def __init__(self, bundle: Bundle) -> None:
        """Opens the graphs of `bundle`."""
        self._manifest = bundle.manifest
        self._sessions = {
            role: open_bare_session(str(bundle.path / file)) for role, file in bundle.manifest.graphs.items()
        }

    def run(self, batch: ReadyBatch, beam_width: int = 1) -> None:
        """Runs the network on one batch; `beam_width` matters to an attention head alone."""
        feeds = {"images": batch.images, "widths": batch.widths}
        if self._manifest.head == "ctc":
            self._sessions["network"].run(None, feeds)
        else:
            self._run_attention(feeds, beam_width)

    def _run_attention(self, feeds: dict[str, Any], beam_width: int) -> None:
        """Encodes, then steps until every row has ended, each row taking its likeliest symbol."""
        encoder, step = self._sessions["encoder"], self._sessions["decoder_step"]
        names = [output.name for output in encoder.get_outputs()]
        encoded = dict(zip(names, encoder.run(None, feeds), strict=True))
        if beam_width > 1:
            encoded = {name: np.repeat(value, beam_width, axis=0) for name, value in encoded.items()}
        fixed = {name: encoded[name] for name in ("memory", "keys", "lengths")}
        states = {state.name: encoded[f"initial_{state.name}"] for state in self._manifest.states}
        step_names = [output.name for output in step.get_outputs()]
        rows = fixed["lengths"].shape[0]
        symbols = np.full(rows, len(self._manifest.alphabet) + 1, np.int64)
        ended = np.zeros(rows, bool)
        for _ in range(self._manifest.max_output_length + 1):
            outputs = dict(zip(step_names, step.run(None, {"symbols": symbols, **fixed, **states}), strict=True))
            symbols = outputs["log_probabilities"].argmax(axis=1)
            states = {name: outputs[f"next_{name}"] for name in states}
            ended |= symbols == 0
            if ended.all():
                break
