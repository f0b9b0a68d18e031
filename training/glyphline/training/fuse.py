"""Gives a bundle its fused graph, behind a gate: the graph must read as the loop over the decoder's step does."""

from __future__ import annotations

import logging
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from glyphline.models.alphabet import Alphabet
from glyphline.models.bundle import Bundle, load_bundle, write_manifest
from glyphline.models.decoding import Hypothesis, ResolvedOptions
from glyphline.models.heads import StepHead, open_head
from glyphline.models.recognizer import Recognizer
from glyphline.models.timings import StageTimings
from glyphline.training.errors import ExportError
from glyphline.training.fused_graph import write_fused

logger = logging.getLogger(__name__)

FUSED_TOLERANCE = 1e-4
"""Greatest difference of a score, a mean of log-probabilities."""

_TIE = 1e-6
"""Difference of two scores that are the same but for rounding."""

FUSED_NAME = "decode.onnx"

_BATCHES = (1, 5)
_WIDTHS = (16, 64, 100, 332)
_LONGEST = 8  # symbols: random strips have no text that would end


def random_strips(
    random: np.random.Generator, batch: int, width: int, height: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Makes up normalised strips, of which at least one fills the width.

    Args:
        random: Source of randomness.
        batch: Number of strips.
        width: Of the widest.
        height: Of all.

    Returns:
        The strips (batch, 1, height, width) and the width of each (batch).
    """
    widths = random.integers(1, width + 1, batch)
    widths[0] = width
    images = random.integers(0, 256, (batch, 1, height, width)).astype(np.uint8)
    images *= (random.random(images.shape) < 0.2).astype(np.uint8)
    return images, widths.astype(np.int64)


def check_fused(bundle: Bundle) -> float:
    """Compares the fused graph of a bundle with the loop over its step, on made-up strips, by several searches.

    Args:
        bundle: With a fused graph.

    Returns:
        Greatest difference of a score.

    Raises:
        ExportError: If a text differs, or a score by more than `FUSED_TOLERANCE`.
    """
    manifest = bundle.manifest
    alphabet = Alphabet(manifest.alphabet)
    head = open_head(bundle, alphabet, "cpu", 1, allow_cpu_fallback=False)
    assert isinstance(head, StepHead)
    allowed = np.arange(alphabet.size) % 2 == 0  # class 0, the end, among them
    plain = ResolvedOptions(max_output_length=min(_LONGEST, manifest.max_output_length))
    beam = replace(plain, beam_width=4, max_alternatives=3, length_penalty=manifest.decoder.length_penalty)
    searches = [each for options in (plain, beam) for each in (options, replace(options, allowed=allowed))]
    random = np.random.default_rng(0)
    worst = 0.0
    for width in (width for width in _WIDTHS if width <= manifest.image.max_width):
        padded = width + -width % manifest.width_multiple
        for batch in _BATCHES:
            images, widths = random_strips(random, batch, padded, manifest.image.height)
            timings = StageTimings()
            encoded = head.encode(images, widths, timings)
            for options in searches:
                ours, theirs = (
                    head.decode(encoded, options, manifest.temperature, timings, fused=fused) for fused in (True, False)
                )
                for found, expected in zip(ours, theirs, strict=True):
                    worst = max(worst, _difference(found, expected))
                if not worst <= FUSED_TOLERANCE:
                    raise ExportError(
                        f"the fused graph does not read as the decoder's loop does: with beam width "
                        f"{options.beam_width} for a batch of {batch}, {width} wide, texts differ or scores by more "
                        f"than {FUSED_TOLERANCE:g}"
                    )
    return worst


def _difference(found: list[Hypothesis], expected: list[Hypothesis]) -> float:
    """Returns the greatest difference of a score, infinite where texts differ that are not equally likely.

    A decoder that carries no state gives the same steps in another order exactly the same score: which of such texts
    comes first, or is the last that is kept, is chance.
    """
    if len(found) != len(expected):
        return np.inf
    differences = [abs(one.score - other.score) for one, other in zip(found, expected, strict=True)]
    for one, other, difference in zip(found, expected, differences, strict=True):
        same = one.symbols == other.symbols or difference <= _TIE
        if not same or one.truncated != other.truncated:
            return np.inf
    return max(differences)


def fuse_bundle(path: Path) -> None:
    """Gives the bundle of a step-wise head its fused graph, in place of one that it may have.

    Args:
        path: Folder of the bundle.

    Raises:
        ExportError: If the bundle has a CTC head, or the graph does not read as the loop does. The bundle is left as it
            was.
    """
    bundle = load_bundle(path)
    manifest = bundle.manifest
    if manifest.head == "ctc":
        raise ExportError(f"{path}: a CTC head has no steps to fuse")
    old = manifest.graphs.get("decode")
    manifest = manifest.model_copy(update={"graphs": manifest.graphs | {"decode": FUSED_NAME}})
    folder = Path(tempfile.mkdtemp(prefix=".fused-", dir=path.parent))
    try:
        for name in bundle.manifest.files:
            if name != old:
                shutil.copy2(path / name, folder / name)
        write_fused(folder / manifest.graphs["decoder_step"], folder / FUSED_NAME)
        write_manifest(folder, manifest)
        made = load_bundle(folder)
        logger.info("greatest difference of a score between the fused graph and the loop: %.2g", check_fused(made))
        Recognizer.load(made)  # with its probe, as every server will
        if old is not None:
            (path / old).unlink()
        # A server that starts meanwhile finds either a fault or the whole.
        (folder / FUSED_NAME).replace(path / FUSED_NAME)
        write_manifest(path, manifest)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
