"""The recent readings, kept so that their true texts can be handed in later."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from glyphline.models.alphabet import Alphabet
from glyphline.service.catalogue import ServedModel
from glyphline.service.errors import ReferenceConflictError, RequestNotFoundError
from glyphline.service.security.callers import token_name

__all__ = ["RecentReadings", "RememberedReading"]

_KEPT_SECONDS = 24 * 3600.0


@dataclass(slots=True)
class RememberedReading:
    """A reading that may still be given its true text.

    Attributes:
        text: What was read.
        model: What read it.
        reference: The true text, once known.
    """

    text: str
    model: ServedModel
    reference: str | None


class RecentReadings:
    """The last readings of a day by request id; of two of one id the later.

    Where callers have tokens, each name has its own request ids: nobody learns or judges what another has had read.

    Args:
        capacity: How many are kept.
        clock: Tells the time in seconds.
    """

    def __init__(self, capacity: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._capacity = capacity
        self._clock = clock
        # By name of the token and request id, with the time: the oldest first.
        self._readings: OrderedDict[tuple[str, str], tuple[float, RememberedReading]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._readings)

    def remember(self, request_id: str, reading: RememberedReading) -> None:
        """Keeps a reading of the caller, and forgets what is too old or too much."""
        key = token_name(), request_id
        self._readings[key] = self._clock(), reading
        self._readings.move_to_end(key)
        self._forget()

    def submit(self, request_id: str, reference: str) -> tuple[RememberedReading, bool]:
        """Gives a reading its true text.

        Args:
            request_id: Of the reading.
            reference: The true text.

        Returns:
            The reading, and whether the text is news: repeating a text that it has changes nothing.

        Raises:
            RequestNotFoundError: If the reading is not kept.
            ReferenceConflictError: If it has another true text.
        """
        self._forget()
        _, reading = self._readings.get((token_name(), request_id), (0.0, None))
        if reading is None:
            raise RequestNotFoundError(request_id)
        if reading.reference is None:
            reading.reference = reference
            return reading, True
        if Alphabet.normalise_text(reading.reference) != Alphabet.normalise_text(reference):
            raise ReferenceConflictError("this reading has been given another reference text before, which counts")
        return reading, False

    def _forget(self) -> None:
        """Forgets the oldest readings, as far as they are too many or too old."""
        latest = self._clock() - _KEPT_SECONDS
        while self._readings:
            at, _ = next(iter(self._readings.values()))
            if len(self._readings) <= self._capacity and at > latest:
                break
            self._readings.popitem(last=False)
