"""What changes over a run, as functions of the share of it that is done."""

from __future__ import annotations

import math

from glyphline.training.config.loop import LoopConfig, ScheduleName

FLOOR = 0.01
"""Factor that warm-ups start from and cosines end at."""

CYCLE_START = 1 / 25
CYCLE_END = CYCLE_START / 1e4
"""Factors at both ends of one cycle, as fastai and torch have them."""


def cosine(progress: float, first: float, last: float) -> float:
    """Half a period of a cosine from `first` to `last`; beyond [0, 1] it stays."""
    progress = min(1.0, max(0.0, progress))
    return last + (first - last) * 0.5 * (1 + math.cos(math.pi * progress))


def learning_rate_factor(
    progress: float, warm_up: float, decay: float, schedule: ScheduleName = "plateau-cosine"
) -> float:
    """Factor of the peak learning rate.

    Args:
        progress: Share of the run that is done, in [0, 1].
        warm_up: Share over which the rate rises.
        decay: Share at the end over which the rate of `plateau-cosine` falls.
        schedule: How it moves; see `LoopConfig.schedule`.

    Returns:
        Factor in (0, 1].
    """
    if schedule == "one-cycle":
        if progress < warm_up:
            return cosine(progress / warm_up, CYCLE_START, 1.0)
        return cosine((progress - warm_up) / (1 - warm_up), 1.0, CYCLE_END)
    if progress < warm_up:
        return FLOOR + (1 - FLOOR) * progress / warm_up
    if schedule == "cosine":
        decay = 1 - warm_up
    if decay and progress > 1 - decay:
        return cosine((progress - 1 + decay) / decay, 1.0, FLOOR)
    return 1.0


def learning_rate(progress: float, loop: LoopConfig) -> float:
    """The learning rate of a run when a share of it is done."""
    return loop.learning_rate * learning_rate_factor(progress, loop.warm_up, loop.decay, loop.schedule)


def sampling_share(progress: float, loop: LoopConfig) -> float:
    """Share of input symbols that are the step-wise head's own, when a share of the run is done."""
    begin, end = loop.sampling_ramp
    if progress >= end:
        return loop.sampling
    return loop.sampling * max(0.0, progress - begin) / (end - begin)
