"""Which strips share a run of the network, and how wide a run is.

A run costs as its columns do, those of the padding too, and something besides, whatever is in it. So strips of one
width should be run together, those of far widths apart, and a few that are left over are better padded than run alone.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from math import lcm

from glyphline.models.gpu import LARGEST_ENGINE_BATCH, TENSORRT
from glyphline.models.manifest import Manifest

__all__ = ["BUCKET_STEP", "MAX_COLUMNS", "RUN_COLUMNS", "RunPlanner", "bucket_width", "plan_runs"]

BUCKET_STEP = 16  # pixels of normalised width; where shapes have to be few the least step is twice that
MAX_COLUMNS = 8192  # of one run: memory grows with them, and beyond this speed does not
RUN_COLUMNS = 32
"""What a run costs besides its columns, as so many of them. Measured with both shipped heads on one thread: 0.7 ms,
where a column takes 21 µs."""


def bucket_width(width: int, multiple: int = BUCKET_STEP) -> int:
    """Rounds a normalised width up, so that images of similar width count as of one.

    Args:
        width: Of a normalised image, at least 1.
        multiple: The result is a multiple of it.

    Returns:
        The width, which depends on nothing but the image.
    """
    return -(-width // multiple) * multiple


def plan_runs(
    widths: Sequence[int], *, max_batch: int, max_columns: int, multiple: int, run_columns: int = RUN_COLUMNS
) -> list[tuple[int, int]]:
    """Cuts strips that are ordered by width into runs, where any shape may be run.

    Args:
        widths: Columns of the strips, ascending.
        max_batch: Most strips of a run.
        max_columns: Most columns of a run, padding included; a strip that is wider goes alone.
        multiple: Strips are padded to the least multiple of it that holds the widest of their run.
        run_columns: What a run costs besides.

    Returns:
        Begin and end of every run, in order. None other costs less: padded columns of all runs, and `run_columns` for
        each.
    """
    costs, begins = [0], [0]  # of the best way to run the first so many strips, and where its last run begins
    for end, widest in enumerate(widths, start=1):
        padded = bucket_width(widest, multiple)
        most = max(1, min(max_batch, max_columns // padded, end))
        cost, begin = min((costs[end - size] + size * padded, end - size) for size in range(1, most + 1))
        costs.append(cost + run_columns)
        begins.append(begin)
    runs = []
    end = len(widths)
    while end:
        runs.append((begins[end], end))
        end = begins[end]
    return runs[::-1]


class RunPlanner:
    """Plans the runs of one bundle's networks as suits what runs them.

    ONNX Runtime's CPU kernels take any shape as it comes. OpenVINO and a GPU prepare themselves anew for every shape:
    they are given few widths, and batches of 1, 2, 4, 8 and so on.
    """

    def __init__(self, manifest: Manifest, provider: str) -> None:
        """Prepares for a bundle.

        Args:
            manifest: Of the bundle.
            provider: What really runs its networks.
        """
        self._multiple = manifest.width_multiple
        self._widest = manifest.image.max_width
        self._few_shapes = not provider.startswith("CPUExecutionProvider")
        self._largest_batch = LARGEST_ENGINE_BATCH if provider == TENSORRT else None

    def padded(self, width: int) -> int:
        """Returns the least width of a run that strips of a normalised width can be in.

        Of few widths each is an eighth to a sixteenth from the next, the narrow ones 32 columns.
        """
        step = max(2 * BUCKET_STEP, 1 << max(0, (width - 1).bit_length() - 4)) if self._few_shapes else 1
        return bucket_width(width, lcm(step, self._multiple))

    def largest_run(self, width: int, max_batch: int) -> int:
        """Returns the most strips of one run of a width."""
        if self._largest_batch is not None:
            max_batch = min(max_batch, self._largest_batch)
        return max(1, min(max_batch, MAX_COLUMNS // width))

    def shapes(self, max_batch: int) -> list[tuple[int, int]]:
        """Lists images and width of every run that strips can come to; nothing where any shape may be run."""
        if not self._few_shapes:
            return []
        widths = sorted({self.padded(width) for width in range(1, self._widest + 1)})
        shapes = [
            (1 << power, width) for width in widths for power in range(self.largest_run(width, max_batch).bit_length())
        ]
        return sorted(shapes, key=lambda shape: shape[0] * shape[1], reverse=True)

    def plan(self, widths: Sequence[int], max_batch: int) -> Iterator[list[tuple[int, int]]]:
        """Cuts strips into runs, and puts those together that are searched together.

        Those are as many strips as one run may have, so that memory is bounded by that.

        Args:
            widths: Columns of the strips, ascending.
            max_batch: Most strips of a run.

        Yields:
            Begin and end of runs, in order.
        """
        group: list[tuple[int, int]] = []
        for begin, end in self._runs(widths, max_batch):
            if group and end - group[0][0] > self.largest_run(self.padded(widths[end - 1]), max_batch):
                yield group
                group = []
            group.append((begin, end))
        if group:
            yield group

    def _runs(self, widths: Sequence[int], max_batch: int) -> Iterator[tuple[int, int]]:
        if not self._few_shapes:
            yield from plan_runs(widths, max_batch=max_batch, max_columns=MAX_COLUMNS, multiple=self._multiple)
            return
        begin = 0
        for width, members in groupby(widths, self.padded):
            count = sum(1 for _ in members)
            while count:
                size = min(self.largest_run(width, max_batch), count)
                size = 1 << (size.bit_length() - 1)
                yield begin, begin + size
                begin, count = begin + size, count - size
