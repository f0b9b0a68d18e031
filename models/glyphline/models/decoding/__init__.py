"""From network outputs to text: greedy and beam search for both heads, n-best, confidence and places."""

from glyphline.models.decoding.attention import DecoderStep, StepOutput, decode_attention
from glyphline.models.decoding.confidence import (
    Aggregate,
    Coverage,
    coverage_at_accuracy,
    expected_calibration_error,
    hypothesis_confidence,
    line_confidence,
)
from glyphline.models.decoding.ctc import Pruning, decode_ctc
from glyphline.models.decoding.guide import Guide
from glyphline.models.decoding.language_model import CharacterModel
from glyphline.models.decoding.lexicon import Lexicon
from glyphline.models.decoding.options import MAX_BEAM_WIDTH, DecodingOptions, ResolvedOptions
from glyphline.models.decoding.readings import Alternative, Hypothesis, Reading, Token

__all__ = [
    "MAX_BEAM_WIDTH",
    "Aggregate",
    "Alternative",
    "CharacterModel",
    "Coverage",
    "DecoderStep",
    "DecodingOptions",
    "Guide",
    "Hypothesis",
    "Lexicon",
    "Pruning",
    "Reading",
    "ResolvedOptions",
    "StepOutput",
    "Token",
    "coverage_at_accuracy",
    "decode_attention",
    "decode_ctc",
    "expected_calibration_error",
    "hypothesis_confidence",
    "line_confidence",
]
