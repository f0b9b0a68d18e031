"""Errors of the training room: all are `GlyphlineError`s, so the command line shows them without a traceback."""

from __future__ import annotations

from glyphline.models.errors import GlyphlineError


class TrainingError(GlyphlineError):
    """Something about a training run, its configuration or its folder is wrong."""


class DataError(TrainingError):
    """A data set is missing, unreadable, or does not fit the configuration."""


class DivergedError(TrainingError):
    """The loss of a run is no longer a number; the message names the step and the saved batch."""


class ExportError(TrainingError):
    """A trained network could not be written as a bundle that gives the same results."""
