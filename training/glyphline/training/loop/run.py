"""A run: from a configuration to checkpoints, curves and figures, and on from where it was stopped.

A run is a folder: `config.toml` as given, `checkpoints/last.ckpt` and the best one, `metrics.csv`, `curves.png`, and
logs by step in `tensorboard/` and `steps/`. An epoch is a few minutes of strips that no other epoch sees; its
randomness follows from the seed and the epoch's number alone, so a run that is stopped and resumed from an epoch's end
is the run that was never stopped.
"""

from __future__ import annotations

import logging
from pathlib import Path

import torch

from glyphline.training.config import TrainingConfig, read_config
from glyphline.training.datasets.build import build_source
from glyphline.training.datasets.samples import SkipCounts
from glyphline.training.loop.callbacks import make_callbacks
from glyphline.training.loop.distributed import first_before_others, joined, started_processes
from glyphline.training.loop.engine import choose_device, choose_precision, make_loggers, make_trainer, set_threads
from glyphline.training.loop.folder import epoch_of, note_start, open_run, take_weights
from glyphline.training.loop.module import RecogniserModule
from glyphline.training.loop.norms import gather_norms
from glyphline.training.loop.stream import StripData
from glyphline.training.loop.validation import encode_validation
from glyphline.training.run_folder import CONFIG_NAME, last_checkpoint

logger = logging.getLogger(__name__)


def train(
    config_path: Path,
    data_root: Path,
    output: Path,
    resume: bool = True,
    start_from: Path | None = None,
    seed: int | None = None,
    *,
    checked: bool = False,
) -> None:
    """Trains a recogniser; under `torchrun`, together with the other processes.

    Args:
        config_path: TOML configuration.
        data_root: Folder below which the configuration's paths lie.
        output: Folder of the run; made where it does not exist.
        resume: Go on from the run's last checkpoint where there is one.
        start_from: Folder of another run whose weights a new run starts from; see `take_weights`.
        seed: Takes the place of the configuration's.
        checked: Whether the data were checked before, by `check_run`.

    Raises:
        TrainingError: If the configuration or the data do not fit, the run was made with another configuration, or the
            loss stops being a number.
        AlphabetError: If a label has characters outside the alphabet; all are named with their lines.
    """
    processes = started_processes()
    device = choose_device(read_config(config_path).loop)
    if not processes.first:
        logging.getLogger("glyphline").setLevel(logging.WARNING)
    with joined(processes, device):
        with first_before_others(processes):
            fresh = not resume and processes.first
            begun = not fresh and (output / CONFIG_NAME).exists()
            config = open_run(config_path, data_root, output, resume=not fresh, seed=seed, checked=checked)
        set_threads(processes)
        torch.manual_seed(config.seed)
        alphabet, left_out = config.make_alphabet(), SkipCounts()
        module = RecogniserModule(config, encode_validation(config, data_root, left_out), processes)
        last = last_checkpoint(output)
        go_on = last.exists()
        logger.info(_describe(config, module, device, output))
        if go_on:
            done = epoch_of(last) + 1
            logger.info("going on from %s: %d of %d epochs are done", last, done, config.loop.epochs)
        elif begun:
            logger.info("no checkpoint yet in %s: starting from the beginning", output)
        if start_from is not None and not go_on:
            new = take_weights(module, start_from)
            if processes.first:
                note_start(output, start_from)
            logger.info("starting from the weights of %s; new are: %s", start_from, ", ".join(new) or "none")
        if processes.count > 1 and device == "cpu":
            gather_norms(module.network)
        sources = [build_source(source, data_root, alphabet, left_out, config.image) for source in config.sources]
        trainer = make_trainer(
            config.loop, output, processes, make_callbacks(config.loop, output, left_out), make_loggers(output)
        )
        data = StripData(config, sources, processes)
        try:
            trainer.fit(module, data, ckpt_path=str(last) if go_on else None, weights_only=False)
        except SystemExit as error:
            if isinstance(error.__context__, KeyboardInterrupt):  # Lightning makes the one of the other
                raise error.__context__ from None
            raise


def _describe(config: TrainingConfig, module: RecogniserModule, device: str, run: Path) -> str:
    """Says in a line on what, how long and whereto a network is trained."""
    weights = sum(parameter.numel() for parameter in module.network.parameters())
    precision = choose_precision(config.loop, device).partition("-")[0]
    shown = {"16": "fp16", "32": "fp32"}.get(precision, precision)
    return (
        f"{config.name}: {weights:,} weights, on {device} in {shown}; {config.loop.strips_per_epoch:,} strips an epoch"
        f" × {config.loop.epochs:,} epochs; the run is {run}"
    )
