"""What can be wrong with a job as a whole; what is wrong with one picture is in its row."""

from __future__ import annotations

from glyphline.models.errors import GlyphlineError

__all__ = ["ClusterError", "InputError", "JobError", "OutputError"]


class InputError(GlyphlineError):
    """An input names nothing that can be read, or its rows cannot be told apart."""


class OutputError(GlyphlineError):
    """The output cannot be written as asked."""


class JobError(GlyphlineError):
    """The job cannot go on now; what it has read is kept."""


class ClusterError(JobError):
    """A cluster is not there, or no longer."""
