"""Texts from a fused graph, which has the whole search of a step-wise head in one run.

The graph loops over the decoder's step, keeps the beams and stops as soon as no image needs another step. It does so by
the rules of `decode_attention`, and hands out what every step gave. What is left to do here is what takes no network:
to pick the best hypotheses and follow them back, so that both ways give the same texts, scores, confidences and places.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glyphline.models.decoding.distributions import FloatArray, calibrated_at, restrict
from glyphline.models.decoding.history import END, History
from glyphline.models.decoding.options import ResolvedOptions
from glyphline.models.decoding.readings import Hypothesis

__all__ = ["FUSED_INPUTS", "FusedOutput", "fused_inputs", "fused_outputs", "read_fused"]

FUSED_INPUTS = ("allowed", "max_output_length", "beam_width", "max_alternatives", "length_penalty")
"""What a fused graph is told of the search, besides what the encoder gives."""


@dataclass(frozen=True, slots=True, eq=False)
class FusedOutput:
    """What a fused graph gives; a row is a slot of an image's beam, those of one image stand together.

    Attributes:
        symbols: What was written (steps, images, slots). An image goes on writing after its end, until all are done.
        log_probabilities: Of the next symbol, class 0 is the end (steps, rows, symbols).
        attention: Where the decoder looked (steps, rows, frames); None if it does not look at frames, or nobody asks.
        parents: The slot at the step before that each continues (steps, images, slots). This and what follows is empty
            for a beam width of 1.
        totals: Log-probability of what a slot held before the step, -inf where it was empty (steps, images, slots).
        live: Whether the search for an image was still on at a step (steps, images).
    """

    symbols: NDArray[np.int64]
    log_probabilities: FloatArray
    attention: FloatArray | None
    parents: NDArray[np.int64]
    totals: FloatArray
    live: NDArray[np.bool_]


def fused_outputs(*, looks_at_frames: bool) -> tuple[str, ...]:
    """Names the outputs of a fused graph, in the order of `FusedOutput`."""
    looked = ("attention",) if looks_at_frames else ()
    return ("symbols", "log_probabilities", *looked, "parents", "totals", "live")


def fused_inputs(options: ResolvedOptions, symbols: int) -> dict[str, NDArray[Any]]:
    """Puts a search as a fused graph takes it.

    Args:
        options: The search; without a guide, for which there is only the loop.
        symbols: Number of classes.

    Returns:
        The inputs of `FUSED_INPUTS`.
    """
    assert options.guide is None
    return {
        "allowed": np.ones(symbols, dtype=np.bool_) if options.allowed is None else options.allowed,
        "max_output_length": np.array(options.max_output_length, dtype=np.int64),
        "beam_width": np.array(options.beam_width, dtype=np.int64),
        "max_alternatives": np.array(options.max_alternatives, dtype=np.int64),
        "length_penalty": np.array(options.length_penalty, dtype=np.float64),
    }


def read_fused(
    output: FusedOutput, lengths: NDArray[np.int64], options: ResolvedOptions, *, temperature: float = 1.0
) -> list[list[Hypothesis]]:
    """Finds the texts in what a fused graph gave.

    Args:
        output: That.
        lengths: Valid frames of each image (images).
        options: The options that the graph was given.
        temperature: Calibrates confidences.

    Returns:
        For each image its hypotheses, best first, as `decode_attention` would give them.
    """
    log_probabilities = restrict(output.log_probabilities.astype(np.float64), options.allowed)
    history = History(lengths, options.length_penalty, temperature)
    for step, values in enumerate(log_probabilities):
        history.add(values, output.attention[step] if options.token_details and output.attention is not None else None)
    if options.beam_width == 1:
        return _read_greedy(output.symbols[:, :, 0], log_probabilities, history, options, temperature)
    return _read_beams(output, log_probabilities, history, options)


def _read_greedy(
    symbols: NDArray[np.int64],
    log_probabilities: FloatArray,
    history: History,
    options: ResolvedOptions,
    temperature: float,
) -> list[list[Hypothesis]]:
    """Cuts what was written (steps, images) at its end."""
    ends = symbols == END
    ended = ends.any(axis=0)
    written = np.where(ended, ends.argmax(axis=0), options.max_output_length)
    values = np.take_along_axis(log_probabilities, symbols[:, :, None], axis=2)[:, :, 0]
    counts = written + ended
    totals = np.where(np.arange(len(symbols))[:, None] < counts, values, 0.0).sum(axis=0)
    # All at once: image by image this would take longer than all else that is done here.
    every = log_probabilities.reshape(-1, log_probabilities.shape[2])
    chances: FloatArray = calibrated_at(every, symbols.ravel(), temperature).reshape(symbols.shape)
    by_image: NDArray[Any] = chances.T
    texts, sure, sums = symbols.T.tolist(), by_image.tolist(), totals.tolist()
    return [
        [history.hypothesis(image, texts[image][:length], [image] * count, sums[image], sure[image][:count])]
        for image, (length, count) in enumerate(zip(written.tolist(), counts.tolist(), strict=True))
    ]


def _read_beams(
    output: FusedOutput, log_probabilities: FloatArray, history: History, options: ResolvedOptions
) -> list[list[Hypothesis]]:
    """Picks the best of all hypotheses that ended while the search was on, and of those that were cut."""
    steps, images, width = output.totals.shape
    longest = options.max_output_length
    by_slot = log_probabilities.reshape(steps, images, width, -1)
    totals = output.totals + by_slot[..., END]
    counts = np.broadcast_to(np.arange(1, steps + 1)[:, None, None], totals.shape).copy()
    if steps > longest:
        # The last step, which writes nothing: what does not end there is cut.
        cut = by_slot[longest].argmax(axis=2) != END
        totals[longest][cut] = output.totals[longest][cut]
        counts[longest][cut] = longest
    totals[~output.live] = -np.inf
    scores = totals / counts**options.length_penalty
    found = []
    for image in range(images):
        flat = scores[:, image].ravel()
        order = np.argsort(-flat, kind="stable")[: options.max_alternatives]  # of equals the earlier found is better
        places = [divmod(place, width) for place in order.tolist() if np.isfinite(flat[place])]
        found.append(
            [
                history.hypothesis(
                    image,
                    *_trace(output, image, (step, slot), ended=int(counts[step, image, slot]) > step),
                    float(totals[step, image, slot]),
                )
                for step, slot in places
            ]
        )
    return found


def _trace(output: FusedOutput, image: int, place: tuple[int, int], *, ended: bool) -> tuple[list[int], list[int]]:
    """Follows a hypothesis back from a step and slot to its first symbol; returns its symbols and the rows of them."""
    step, slot = place
    first = image * output.totals.shape[2]
    symbols, rows = [], [first + slot] if ended else []
    for before in range(step - 1, -1, -1):
        symbols.append(int(output.symbols[before, image, slot]))
        slot = int(output.parents[before, image, slot])
        rows.append(first + slot)
    return symbols[::-1], rows[::-1]
