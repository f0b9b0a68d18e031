"""What a search has found in the caller's terms: texts, confidences, and places on the original image."""

from collections.abc import Iterator, Sequence

from glyphline.models.alphabet import Alphabet
from glyphline.models.decoding.confidence import hypothesis_confidence, line_confidence, odds_confidence
from glyphline.models.decoding.readings import Alternative, Hypothesis, Reading, Token
from glyphline.models.manifest import Manifest

__all__ = ["interpret"]


def interpret(
    hypotheses: Sequence[Hypothesis],
    manifest: Manifest,
    alphabet: Alphabet,
    *,
    width: int,
    height: int,
    token_details: bool,
) -> Reading:
    """Makes a reading of hypotheses.

    Args:
        hypotheses: What was found in a strip, the best first; at least one.
        manifest: Of the bundle that it was found with.
        alphabet: The manifest's.
        width: Of the original image, in pixels.
        height: Likewise.
        token_details: Whether the reading tells of every symbol.
    """
    alternatives: dict[str, Alternative] = {}
    for hypothesis in hypotheses:
        text = alphabet.decode(hypothesis.symbols)
        # Where symbols have several characters, two sequences may spell one text: the better one stands for it.
        if text not in alternatives:
            alternatives[text] = Alternative(
                text=text,
                confidence=_confidence(hypothesis, manifest),
                log_probability=hypothesis.log_probability,
                tokens=tuple(_tokens(hypothesis, manifest, alphabet, width, height)) if token_details else (),
                truncated=hypothesis.truncated,
            )
    ranked = tuple(alternatives.values())
    best = ranked[0]
    return Reading(text=best.text, confidence=best.confidence, alternatives=ranked, truncated=best.truncated)


def _confidence(hypothesis: Hypothesis, manifest: Manifest) -> float:
    """Sums up a hypothesis, by its odds where those were fitted for the kind of search that found it."""
    odds = manifest.odds.get("greedy" if hypothesis.share is None else "beam")
    if odds is None:
        return hypothesis_confidence(hypothesis, manifest.confidence)
    return odds_confidence(hypothesis, odds)


def _tokens(hypothesis: Hypothesis, manifest: Manifest, alphabet: Alphabet, width: int, height: int) -> Iterator[Token]:
    scale = height / manifest.image.height
    right_edge = float(width)
    frame = min(manifest.pixels_per_frame * scale, right_edge)

    def place(edge: float) -> float:
        """Takes a frame edge to a column of the original image, which may lie in the padding beside it."""
        return (edge * manifest.pixels_per_frame - manifest.image.padding) * scale

    spans = hypothesis.spans
    places = [None] * len(hypothesis.symbols) if spans is None else spans
    for symbol, value, edges in zip(hypothesis.symbols, hypothesis.symbol_log_probabilities, places, strict=True):
        span = None
        if edges is not None:
            left, right = place(edges[0]), place(edges[1])
            # What lies in the padding is moved to the image's edge, where it keeps the width of a frame.
            span = min(max(left, 0.0), right_edge - frame), max(min(right, right_edge), frame)
        yield Token(text=alphabet.symbols[symbol - 1], confidence=line_confidence([value]), span=span)
