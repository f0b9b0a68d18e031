"""Which strips share a run of the network, where any shape may be run: what costs least in all.

A run costs as its columns do, those of the padding too, and something besides, whatever is in it. So strips of one
width should be run together, those of far widths apart, and a few that are left over are better padded than run alone.
"""

from collections.abc import Sequence

__all__ = ["RUN_COLUMNS", "plan_runs"]

RUN_COLUMNS = 48
"""What a run costs besides its columns, as so many of them. Measured with both shipped heads on one thread: about 1 ms,
where a column takes 21 µs."""


def plan_runs(
    widths: Sequence[int], *, max_batch: int, max_columns: int, multiple: int, run_columns: int = RUN_COLUMNS
) -> list[tuple[int, int]]:
    """Cuts strips that are ordered by width into runs.

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
        padded = -(-widest // multiple) * multiple
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
