"""What an image costs to read, in columns: what one column of a strip costs with the greedy search is the unit."""

from __future__ import annotations

from glyphline.models.manifest import Manifest

__all__ = ["reading_work"]

# Measured with version 3 of the shipped models, one thread, strips of 100 to 2,028 columns. A column costs about 32 µs
# with the greedy search. Every further hypothesis of a step-wise head adds 1 to 3 µs, the more the wider the strip.
# A CTC search costs next to nothing beside the network as long as that is sure, and with a guide about a third more;
# the rest is for networks that are less sure.
_STEP_WISE = 1 / 12
_CTC = 1 / 100
_CTC_GUIDED = 1 / 25


def reading_work(columns: int, manifest: Manifest, beam_width: int, *, guided: bool) -> int:
    """Estimates what reading an image costs.

    Args:
        columns: Width of its strip; of a long line, of all its windows together.
        manifest: Of the model.
        beam_width: Hypotheses that the search keeps; 1 is the greedy search.
        guided: Whether a lexicon or a language model guides the search.

    Returns:
        As many columns as would cost the same with the greedy search.
    """
    share = _STEP_WISE
    if manifest.head == "ctc":
        share = _CTC_GUIDED if guided else _CTC
    return round(columns * (1.0 + share * (beam_width - 1)))
