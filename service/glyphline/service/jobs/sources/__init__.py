"""Where pictures come from: one module for each kind of input."""

from glyphline.service.jobs.sources.inputs import STANDARD_INPUT, Inputs

__all__ = ["STANDARD_INPUT", "Inputs"]
