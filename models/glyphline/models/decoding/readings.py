"""What decoding yields: hypotheses in the network's terms, readings in the caller's."""

from dataclasses import dataclass

__all__ = ["Alternative", "Hypothesis", "Reading", "Token"]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A sequence of symbols that a decoder found, in the network's terms.

    Attributes:
        symbols: Network classes, blank and end excluded.
        score: What the decoder ranks by, higher is better.
        log_probability: Of the text given the image. CTC: summed over all alignments; step by step: over the steps, the
            end included.
        symbol_log_probabilities: One per symbol, calibrated by the temperature.
        closing_log_probability: Calibrated log-probability that nothing more follows, where the decoder weighs it.
            Step by step: of the end, None if truncated. CTC: mean of the blank over all frames if there is no symbol,
            None otherwise.
        spans: First and last frame edge of each symbol, in frames, half-open: a symbol of frame 3 alone spans
            (3.0, 4.0). CTC: what was read for the symbol, from the end of the frames that write the symbol before to
            the end of those that write this one, so spans join without gaps; the first is as long as the others are on
            average, a lone one begins with the strip. Attention: the shortest stretch that holds most of the attention,
            if the details of symbols were asked for. None where the network does not look at frames.
        truncated: Whether the text was cut at the maximum length.
        share: Of what the search summed for all the texts that it still held in the end, this text's part, in [0, 1].
            None where the search holds no others, and under a lexicon.
    """

    symbols: tuple[int, ...]
    score: float
    log_probability: float
    symbol_log_probabilities: tuple[float, ...]
    closing_log_probability: float | None
    spans: tuple[tuple[float, float], ...] | None
    truncated: bool = False
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """One symbol of a reading.

    Attributes:
        text: The symbol.
        confidence: Calibrated probability, in [0, 1].
        span: Left and right edge in pixels of the original image; None if the model does not know. A CTC head's is what
            was read since the symbol before: spans join, and the last one takes in the margin behind it. An attention
            head's is where it looked, which may be narrower than the symbol.
    """

    text: str
    confidence: float
    span: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to read an image.

    Attributes:
        text: The text, in Unicode normal form C.
        confidence: Calibrated, in [0, 1]: the geometric mean of the symbols' probabilities.
        log_probability: Of the whole text given the image, uncalibrated. Of a truncated text: of what it was cut from.
        tokens: One per symbol if token details were asked for, else empty.
        truncated: Whether the text was cut at the maximum length.
    """

    text: str
    confidence: float
    log_probability: float
    tokens: tuple[Token, ...] = ()
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What one image says.

    Attributes:
        text: The best alternative's text; empty for an image without any writing.
        confidence: The best alternative's confidence.
        alternatives: Best first by the decoder's score; at least one. Their confidences need not be in that order.
        truncated: Whether the best alternative was cut at the maximum length.
    """

    text: str
    confidence: float
    alternatives: tuple[Alternative, ...]
    truncated: bool = False
