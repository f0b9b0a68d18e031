"""The recent readings, kept so that their true texts can be handed in later."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from glyphline.models.alphabet import Alphabet
from glyphline.service.catalogue import ServedModel
from glyphline.service.errors import ReferenceConflictError, RequestNotFoundError

__all__ = ["RecentReadings", "RememberedReading"]


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
    """The last readings by request id; of two of one id the later.

    Args:
        capacity: How many are kept.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._readings: OrderedDict[str, RememberedReading] = OrderedDict()

    def __len__(self) -> int:
        return len(self._readings)

    def remember(self, request_id: str, reading: RememberedReading) -> None:
        """Keeps a reading, and forgets the oldest if there are too many."""
        self._readings[request_id] = reading
        self._readings.move_to_end(request_id)
        while len(self._readings) > self._capacity:
            self._readings.popitem(last=False)

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
        reading = self._readings.get(request_id)
        if reading is None:
            raise RequestNotFoundError(request_id)
        if reading.reference is None:
            reading.reference = reference
            return reading, True
        if Alphabet.normalise_text(reading.reference) != Alphabet.normalise_text(reference):
            raise ReferenceConflictError("this reading has been given another reference text before, which counts")
        return reading, False
