"""One configuration trained with several seeds: a run alone does not tell how far another would differ from it."""

from __future__ import annotations

import json
import logging
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from glyphline.training.errors import DivergedError
from glyphline.training.loop.distributed import started_processes
from glyphline.training.loop.run import train
from glyphline.training.metrics_log import MetricsLog
from glyphline.training.run_folder import METRICS_NAME

logger = logging.getLogger(__name__)

SUMMARY_NAME = "seeds.json"
BEST_NAME = "best_validation_error"


@dataclass(frozen=True)
class SeedResult:
    """What came of one seed.

    Attributes:
        seed: The seed.
        run: Folder of its run.
        figures: Error rates of its last validation, and the best of all validations.
        failure: Why it stopped before its end, if it did.
    """

    seed: int
    run: str
    figures: dict[str, float]
    failure: str = ""


@dataclass(frozen=True)
class Spread:
    """A figure over the seeds.

    Attributes:
        mean: Their mean.
        deviation: Their standard deviation (of a sample: n - 1); None where there is only one.
        values: All of them, in order of the seeds.
    """

    mean: float
    deviation: float | None
    values: tuple[float, ...]


def read_figures(run: Path) -> dict[str, float]:
    """Returns the error rates of a run's last validation, and the best mean error rate of all its validations."""
    rows = [row for row in MetricsLog(run / METRICS_NAME).rows() if "validation_error" in row]
    if not rows:
        return {}
    chosen = {name: value for name, value in rows[-1].items() if name.endswith(("_exact", "_cer", "_error"))}
    return chosen | {BEST_NAME: min(row["validation_error"] for row in rows)}


def spread_figures(results: Sequence[SeedResult]) -> dict[str, Spread]:
    """Returns mean and standard deviation of each figure over the seeds that have it."""
    names = dict.fromkeys(name for result in results for name in result.figures)
    spreads = {}
    for name in names:
        values = tuple(result.figures[name] for result in results if name in result.figures)
        deviation = statistics.stdev(values) if len(values) > 1 else None
        spreads[name] = Spread(statistics.fmean(values), deviation, values)
    return spreads


def train_seeds(
    config_path: Path,
    data_root: Path,
    output: Path,
    count: int,
    resume: bool = True,
    start_from: Path | None = None,
) -> list[SeedResult]:
    """Trains with the seeds 1 to `count`, one after the other; what is finished is not trained again.

    A seed whose loss stops being a number is among the results, and the next one is tried.

    Args:
        config_path: TOML configuration; its own seed is passed over.
        data_root: Folder below which its data are.
        output: Folder of the runs: `seed-1`, `seed-2` and so on, and `seeds.json`.
        count: Number of seeds.
        resume: Go on with runs that were begun.
        start_from: Folder of another run whose weights each starts from.

    Returns:
        A result for each seed.
    """
    processes = started_processes()
    results = []
    for seed in range(1, count + 1):
        run = output / f"seed-{seed}"
        failure = ""
        logger.info("seed %d of %d: %s", seed, count, run)
        try:
            train(config_path, data_root, run, resume, start_from, seed)
        except DivergedError as error:
            if processes.count > 1:  # the others wait for this process
                raise
            failure = str(error)
            logger.warning("seed %d: %s", seed, failure)
        results.append(SeedResult(seed, run.name, read_figures(run), failure))
        if processes.first:
            write_summary(results, output / SUMMARY_NAME)
    return results


def write_summary(results: Sequence[SeedResult], path: Path) -> None:
    """Writes every seed's figures, and their spread, as JSON."""
    record = {
        "seeds": [asdict(result) for result in results],
        "spread": {name: asdict(spread) for name, spread in spread_figures(results).items()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
