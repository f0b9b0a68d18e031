"""How long batches take: learnt from those that were run."""

from __future__ import annotations

__all__ = ["Pace"]

_KEPT = 0.9  # what the batches before a batch weigh, beside it
_DECAY = 0.2  # of the difference between the longest and a quicker batch, this share is taken back
_VARIED = 0.01  # squared share of their work by which batches must differ to tell what is fixed and what grows
_TRIED = 2.0  # times the usual work: as long as batches do not differ, one of so much is taken to cost no more


class Pace:
    """A line through the recent batches, seconds over work, of which older ones count less and less."""

    def __init__(self) -> None:
        self.longest = 0.0
        """Seconds of the longest batch of late."""
        self._count = 0.0
        self._work = 0.0
        self._seconds = 0.0
        self._work_squared = 0.0
        self._work_seconds = 0.0

    def observe(self, work: float, seconds: float) -> None:
        """Notes a batch."""
        self.longest = max(seconds, self.longest + _DECAY * (seconds - self.longest))
        self._count = _KEPT * self._count + 1.0
        self._work = _KEPT * self._work + work
        self._seconds = _KEPT * self._seconds + seconds
        self._work_squared = _KEPT * self._work_squared + work * work
        self._work_seconds = _KEPT * self._work_seconds + work * seconds

    def seconds(self, work: float) -> float:
        """Estimates how long a batch takes; 0 as long as none was seen."""
        if not self._work:
            return 0.0
        usual, mean = self._work / self._count, self._seconds / self._count
        variance = self._work_squared / self._count - usual * usual
        if variance <= _VARIED * usual * usual:
            return mean * max(1.0, work / (_TRIED * usual))  # hopeful, or small batches would stay small for ever
        slope = (self._work_seconds / self._count - usual * mean) / variance
        slope = min(max(slope, 0.0), mean / usual)
        return mean + slope * (work - usual)
