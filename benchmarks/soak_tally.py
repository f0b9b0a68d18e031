"""What became of the calls of a soak, and what the server's memory did."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, fields

import numpy as np

# How the calls of each kind may end.
ALLOWED = {
    "plain OK",
    "slow OK",
    "cancelled CANCELLED",
    "cancelled OK",
    "bad INVALID_ARGUMENT",
    "burst OK",
    "burst RESOURCE_EXHAUSTED",
    "silent CLOSED",
}
MOST_GROWTH = 1.0  # MB a minute
_JUDGED_SAMPLES = 120  # of the second half: in shorter runs memory still settles
_BLOCK_SAMPLES = 20  # samples next to each other are alike: they are drawn together
_DRAWS = 1000


@dataclass(frozen=True, slots=True)
class Slope:
    """Growth of the memory over the second half of a run, in MB a minute.

    Attributes:
        value: Of the straight line through all samples.
        low: Lower end of the interval of 95 %.
        high: Upper end.
        judged: Whether there were samples enough to judge by.
    """

    value: float
    low: float
    high: float
    judged: bool


@dataclass(slots=True)
class Tally:
    """What became of the calls.

    Attributes:
        sent: Calls sent, by kind: `plain`; `slow`, streams that send and read at leisure; `cancelled`, whose caller
            went away; `bad`, no images; `burst`, more at once than the queue holds; `silent`, connections that say
            nothing.
        ends: How they ended, by kind and status.
        again: Tries that a caller had to repeat, by status. They are no ends.
        different: Answers unlike the recogniser's own.
        latencies: Seconds of each plain call that was answered.
        done: What was done to the server, and how often.
        faults: What went wrong besides.
        memory: Moment in seconds, and bytes of the server as it is when none of its workers is being replaced.
        resident: Bytes that it held in fact at these moments.
    """

    sent: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    again: Counter[str] = field(default_factory=Counter)
    different: int = 0
    latencies: list[float] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    memory: list[tuple[float, int]] = field(default_factory=list)
    resident: list[int] = field(default_factory=list)

    def figures(self) -> dict[str, object]:
        """Returns all of it as JSON can hold it; `asdict` makes nonsense of counters."""
        return {each.name: getattr(self, each.name) for each in fields(self)} | {
            "slope_mb_per_minute": asdict(self.slope()),
            "failures": self.failures(),
        }

    def failures(self) -> list[str]:
        """Says what went wrong; nothing where all went as it must."""
        found = list(self.faults)
        for kind, sent in sorted(self.sent.items()):
            ended = sum(count for end, count in self.ends.items() if end.split()[0] == kind)
            if sent != ended:
                found.append(f"{sent} {kind} calls and {ended} ends")
        found += [f"{count} × {end}" for end, count in sorted(self.ends.items()) if end not in ALLOWED]
        if self.different:
            found.append(f"{self.different} answers were another text")
        slope = self.slope()
        if slope.judged and slope.low > MOST_GROWTH:
            found.append(f"memory grows by {slope.value:.2f} MB a minute ({slope.low:.2f} to {slope.high:.2f})")
        return found

    def slope(self) -> Slope:
        """Fits a line to the memory; its interval comes from drawing blocks of what the line leaves over."""
        half = np.array(self.memory[len(self.memory) // 2 :], dtype=float).reshape(-1, 2)
        if len(half) < 3:
            return Slope(0.0, 0.0, 0.0, judged=False)
        minutes, sizes = (half[:, 0] - half[0, 0]) / 60, half[:, 1] / 1e6
        fit = np.polyfit(minutes, sizes, 1)
        line = np.polyval(fit, minutes)
        left = sizes - line
        random = np.random.default_rng(0)
        length = min(_BLOCK_SAMPLES, len(half))
        starts = random.integers(0, len(half) - length + 1, (_DRAWS, -(-len(half) // length)))
        drawn = left[(starts[..., None] + np.arange(length)).reshape(_DRAWS, -1)[:, : len(half)]]
        slopes = np.polyfit(minutes, (line + drawn).T, 1)[0]
        low, high = np.percentile(slopes, [2.5, 97.5])
        return Slope(float(fit[0]), float(low), float(high), judged=len(half) >= _JUDGED_SAMPLES)
