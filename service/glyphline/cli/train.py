"""`glyphline train`: trains a recogniser as a configuration file says."""

from __future__ import annotations

import logging
import math
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glyphline.cli.exit_codes import CommandError, ExitCode
from glyphline.cli.options import DataRootOption
from glyphline.cli.stopping import stoppable
from glyphline.cli.training_room import require_torch, training_room

if TYPE_CHECKING:
    from collections.abc import Sequence

    from glyphline.training.loop.sanity import SanityResult
    from glyphline.training.loop.seeds import SeedResult

logger = logging.getLogger(__name__)

EXAMPLES = """\b
Examples: from a configuration to a model
  glyphline train mine.toml --data-root data/ --sanity       can it learn at all? seconds
  glyphline train mine.toml --data-root data/ --find-rate    a learning rate to begin with; about 100 batches
  glyphline train mine.toml --data-root data/                runs/mine; curves.png shows how it goes
  glyphline export runs/mine --output models/ --name mine

\b
More:
  glyphline train mine.toml --seeds 3                        three runs and a table: is a difference more than luck?
  glyphline train mine.toml --output runs/other --start-from runs/mine
  glyphline train mine.toml --fresh                          from the beginning, whatever is there
  torchrun --nproc-per-node 2 -m glyphline train mine.toml   two processes (or GPUs), one network

\b
A run is a folder: config.toml, checkpoints/, metrics.csv (a row an epoch), curves.png, and logs by step in tensorboard/
and steps/. Stop it with Ctrl-C or SIGTERM, or kill it; the same command goes on from the last epoch's end, and what
comes out is what would have come out without the stop. [loop] of the configuration may be changed in between, what is
trained may not. `glyphline data init` writes a first configuration; docs/training.md explains each setting.
"""


def train(
    *,
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The configuration, a TOML file.")],
    data_root: DataRootOption = Path("data"),
    output: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Folder of the run.  [default: runs/<name of the configuration>]")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Go on from the run's last checkpoint, or begin anew.")
    ] = True,
    start_from: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN", help="Start a new run from the weights of another one, as far as their networks agree."
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Train with the seeds 1 to N, in RUN/seed-1 and so on; print every one's figures with their mean and "
            "standard deviation, and write seeds.json.",
        ),
    ] = None,
    sanity: Annotated[
        bool,
        typer.Option(
            "--sanity",
            help="Do not train: learn one strip by heart, and say whether that works (exit code 0) or not (1).",
        ),
    ] = False,
    find_rate: Annotated[
        bool,
        typer.Option(
            "--find-rate", help="Do not train: search a learning rate, print it, and draw RUN/rate-finder.png."
        ),
    ] = False,
) -> None:
    """Trains a recogniser. Stop it with Ctrl-C and start it again: it goes on where it was."""
    run = Path("runs", config.stem) if output is None else output
    if not config.is_file():
        raise CommandError(f"{config}: no such file; digits.toml in glyphline/training/configs is one to start from")
    alone = [name for name, given in (("--sanity", sanity), ("--find-rate", find_rate), ("--seeds", seeds)) if given]
    if len(alone) > 1:
        raise CommandError(f"{' and '.join(alone)} do different things: give one of them")
    if sanity or find_rate:
        unused = [name for name, given in (("--fresh", not resume), ("--start-from", start_from)) if given]
        if unused:
            raise CommandError(f"{unused[0]} does nothing with {alone[0]}, which trains no run")
    with stoppable(lambda: _tell_how_to_go_on(run, resume, seeds, trains=not (sanity or find_rate))):
        _check_data(config, data_root, run, resume and seeds is None)
        _quieten_lightning()
        if sanity:
            _check_sanity(config, data_root)
        elif find_rate:
            _find_rate(config, data_root, run)
        elif seeds is not None:
            _train_seeds(config, data_root, run, seeds, resume, start_from)
        else:
            with training_room():
                from glyphline.training import loop

                loop.train(config, data_root, run, resume, start_from, checked=True)


def _tell_how_to_go_on(run: Path, resume: bool, seeds: int | None, *, trains: bool) -> str:
    """Says what starting again would do."""
    from glyphline.training.run_folder import last_checkpoint

    if not trains:
        return "nothing was kept"
    if seeds is None:
        there = [last_checkpoint(run)] if last_checkpoint(run).exists() else []
    else:
        there = sorted(run.glob("seed-*/checkpoints/last.ckpt"), key=lambda path: path.stat().st_mtime)
    if not there:
        return f"no checkpoint yet in {run}, one is written at each epoch's end; the same command starts anew"
    again = "run the same command again" if resume else "run it again without --fresh"
    return f"{again} to go on from {there[-1]}"


def _check_data(config: Path, data_root: Path, run: Path, resume: bool) -> None:
    """Finds what is wrong with the data, and says what they are, before torch is loaded; of several processes one does.

    Raises:
        GlyphlineError: If the configuration or the data do not fit; the message has all that is wrong.
    """
    if os.environ.get("TORCHELASTIC_RUN_ID") and os.environ.get("RANK", "0") != "0":
        return
    with training_room():
        require_torch()
        from glyphline.training.config import read_config
        from glyphline.training.datasets.checks import check_run

        logger.info(check_run(read_config(config), data_root, run, resume=resume))


def _quieten_lightning() -> None:
    """Keeps Lightning's advice to its own users, and warnings of its own code, out of what is shown."""
    with training_room():
        import pytorch_lightning  # it sets the level of its log
    logging.getLogger(pytorch_lightning.__name__).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module=r"pytorch_lightning\b")


def _check_sanity(config: Path, data_root: Path) -> None:
    with training_room():
        from glyphline.training.loop.sanity import overfit_one

        result = overfit_one(config, data_root)
    print(f"one strip, {result.source}, with the text {result.text!r}")
    for head, reading in result.readings.items():
        first, last = result.losses.get(head, (float("nan"), float("nan")))
        verdict = "reads it" if reading == result.text else f"reads {reading!r}"
        print(f"  {head}: loss {first:.3g} -> {last:.3g}, {verdict}")
    print(f"{result.steps} steps, {result.seconds:.1f} s")
    if result.learnt:
        print("it can learn: data, labels, network, losses and reading fit together")
        return
    print(_advise(result), flush=True)
    raise typer.Exit(ExitCode.FINDINGS)


def _advise(result: SanityResult) -> str:
    """What most likely keeps a network from learning one strip by heart."""
    pairs = list(result.losses.values())
    if not all(math.isfinite(last) for _, last in pairs):
        return "it can't learn: the loss is no longer a number; look at the strip with `glyphline data preview`"
    if all(last > 0.5 * first for first, last in pairs):
        return (
            "it can't learn: the loss hardly falls; look at image.height, at [network], "
            "and at the strip with `glyphline data preview`"
        )
    return (
        "it did not learn in so many steps: the loss falls but a head doesn't read the text yet; a very large or deep "
        "network may only be slow, else look at the label of this strip"
    )


def _find_rate(config: Path, data_root: Path, run: Path) -> None:
    with training_room():
        from glyphline.training.loop.rate_finder import find_rate

        search = find_rate(config, data_root, run)
    if search.suggestion is None:
        print(f"no suggestion: the loss was a number at {len(search.rates)} rates only; see {search.plot}")
        raise typer.Exit(ExitCode.FINDINGS)
    print(f"learning_rate = {search.suggestion:.2g}")
    print(f"where the loss falls fastest; {search.plot} shows all rates", file=sys.stderr)


def _train_seeds(config: Path, data_root: Path, run: Path, count: int, resume: bool, start_from: Path | None) -> None:
    with training_room():
        from glyphline.training.loop.distributed import started_processes
        from glyphline.training.loop.seeds import SUMMARY_NAME, train_seeds

        results = train_seeds(config, data_root, run, count, resume, start_from)
    if not started_processes().first:
        return
    _print_seeds(results)
    print(f"{run / SUMMARY_NAME} has the same figures", file=sys.stderr)
    if any(result.failure for result in results):
        raise typer.Exit(ExitCode.FINDINGS)


def _print_seeds(results: Sequence[SeedResult]) -> None:
    """Prints a table: a row for each figure, a column for each seed, and their mean and standard deviation."""
    from rich.console import Console
    from rich.table import Column, Table

    from glyphline.training.loop.seeds import spread_figures

    columns = [Column(f"seed {result.seed}", justify="right") for result in results]
    table = Table(Column("%", overflow="fold"), *columns, Column("mean ± sd", justify="right"))
    for name, spread in spread_figures(results).items():
        cells = [f"{100 * result.figures[name]:.2f}" if name in result.figures else "" for result in results]
        deviation = "" if spread.deviation is None else f" ± {100 * spread.deviation:.2f}"
        table.add_row(name.replace("_", " "), *cells, f"{100 * spread.mean:.2f}{deviation}")
    console = Console()
    console.print(table)
    for result in results:
        if result.failure:
            console.print(f"seed {result.seed} did not end: {result.failure}", markup=False)
