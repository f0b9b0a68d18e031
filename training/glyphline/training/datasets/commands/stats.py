"""`glyphline data stats`: how many, how long, how wide, and which characters how often."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from glyphline.training.datasets.commands.inputs import Inputs, Progress, silent
from glyphline.training.datasets.commands.validate import normalised_widths
from glyphline.training.errors import DataError


@dataclass(frozen=True, slots=True)
class Stats:
    """A data set in numbers.

    Attributes:
        name: Name.
        strips: Number of strips.
        unreadable: How many of them have no picture that can be read.
        empty: How many have no text.
        lengths: Number of strips by number of characters.
        widths: Normalised width of each picture that can be read.
        heights: Height in pixels of each.
        characters: Each character's number, the most frequent first.
    """

    name: str
    strips: int
    unreadable: int
    empty: int
    lengths: dict[int, int]
    widths: tuple[int, ...]
    heights: tuple[int, ...]
    characters: dict[str, int]

    def summary(self) -> dict[str, object]:
        """Returns it as plain values for JSON, with ranges in place of every picture's size."""
        return {
            "name": self.name,
            "strips": self.strips,
            "unreadable": self.unreadable,
            "empty": self.empty,
            "lengths": {str(length): count for length, count in self.lengths.items()},
            "widths": spread(self.widths),
            "heights": spread(self.heights),
            "characters": self.characters,
        }


def spread(values: tuple[int, ...]) -> dict[str, float] | None:
    """Returns least, median, 95th percentile and greatest of some numbers."""
    if not values:
        return None
    least, median, most = (float(value) for value in np.percentile(values, (0, 50, 95)))
    return {"least": least, "median": median, "percentile_95": most, "greatest": float(max(values))}


def measure(inputs: Inputs, progress: Progress = silent) -> list[Stats]:
    """Counts; pictures are opened for their size alone.

    Args:
        inputs: Data sets that could be read.
        progress: Is told of every picture.
    """
    results = []
    done = failed = 0
    for part in inputs.parts:
        sizes = []
        unreadable = 0
        for image in part.images:
            try:
                sizes.append(image.size())
            except DataError:
                unreadable += 1
                failed += 1
            done += 1
            progress(done, failed)
        lengths = Counter(len(image.text) for image in part.images)
        characters = Counter(character for image in part.images for character in image.text)
        results.append(
            Stats(
                name=part.name,
                strips=len(part.images),
                unreadable=unreadable,
                empty=lengths[0],
                lengths=dict(sorted(lengths.items())),
                widths=tuple(normalised_widths(sizes, inputs.image)),
                heights=tuple(height for _, height in sizes),
                characters=dict(sorted(characters.items(), key=lambda item: (-item[1], item[0]))),
            )
        )
    return results


MOST_BARS = 60
"""Characters in the plot; there may be thousands."""


def draw_stats(results: list[Stats], height: int, path: Path) -> None:
    """Draws lengths, widths, heights and the most frequent characters of all data sets.

    Args:
        results: The data sets.
        height: Height of normalised strips, for the axis.
        path: PNG file.
    """
    import matplotlib as mpl  # noqa: PLC0415  (of the extra `train`, and slow to load)

    mpl.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    figure, axes = pyplot.subplots(2, 2, figsize=(13, 8), layout="constrained")
    for result in results:
        label = f"{result.name} ({result.strips:,})"
        lengths = np.repeat(list(result.lengths), list(result.lengths.values()))
        for axis, values, bins in (
            (axes[0, 0], lengths, np.arange(-0.5, max(result.lengths, default=0) + 1.5)),
            (axes[0, 1], result.widths, 40),
            (axes[1, 0], result.heights, 40),
        ):
            if len(values):
                axis.hist(values, bins=bins, histtype="step" if len(results) > 1 else "bar", label=label)
    for axis, title, unit in (
        (axes[0, 0], "Length of the text", "characters"),
        (axes[0, 1], f"Width when {height} pixels high", "pixels"),
        (axes[1, 0], "Height of the picture", "pixels"),
    ):
        axis.set(title=title, xlabel=unit, ylabel="strips")
        if len(results) > 1:
            axis.legend(fontsize="small")
    totals: Counter[str] = Counter()
    for result in results:
        totals.update(result.characters)
    shown = totals.most_common(MOST_BARS)
    names = [{" ": "␣"}.get(character, character) for character, _ in shown]
    axes[1, 1].bar(range(len(shown)), [count for _, count in shown])
    axes[1, 1].set_xticks(range(len(shown)), names, fontsize="small", parse_math=False)
    more = f", the {MOST_BARS} most frequent of {len(totals)}" if len(totals) > MOST_BARS else ""
    axes[1, 1].set(
        title=f"Characters{more}",
        ylabel="times",
        yscale="log" if shown and shown[0][1] > 50 * shown[-1][1] else "linear",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
