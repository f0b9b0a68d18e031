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

from glyphline.training.config import read_config
from glyphline.training.datasets.build import build_source
from glyphline.training.datasets.samples import SkipCounts
from glyphline.training.loop.callbacks import make_callbacks
from glyphline.training.loop.distributed import first_before_others, joined, started_processes
from glyphline.training.loop.engine import choose_device, make_loggers, make_trainer, set_threads
from glyphline.training.loop.folder import last_checkpoint, note_start, open_run, take_weights
from glyphline.training.loop.module import RecogniserModule
from glyphline.training.loop.norms import gather_norms
from glyphline.training.loop.stream import StripData
from glyphline.training.loop.validation import encode_validation

logger = logging.getLogger(__name__)


def train(
    config_path: Path,
    data_root: Path,
    output: Path,
    resume: bool = True,
    start_from: Path | None = None,
    seed: int | None = None,
) -> None:
    """Trains a recogniser; under `torchrun`, together with the other processes.

    Args:
        config_path: TOML configuration.
        data_root: Folder below which the configuration's paths lie.
        output: Folder of the run; made where it does not exist.
        resume: Go on from the run's last checkpoint where there is one.
        start_from: Folder of another run whose weights a new run starts from; see `take_weights`.
        seed: Takes the place of the configuration's.

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
            config = open_run(config_path, data_root, output, resume=not fresh, seed=seed)
        set_threads(processes)
        torch.manual_seed(config.seed)
        alphabet, left_out = config.make_alphabet(), SkipCounts()
        module = RecogniserModule(config, encode_validation(config, data_root, left_out), processes)
        last = last_checkpoint(output)
        go_on = last.exists()
        if go_on:
            logger.info("going on from %s", last)
        elif start_from is not None:
            new = take_weights(module, start_from)
            if processes.first:
                note_start(output, start_from)
            logger.info("starting from the weights of %s; new are: %s", start_from, ", ".join(new) or "none")
        if processes.count > 1 and device == "cpu":
            gather_norms(module.network)
        sources = [build_source(source, data_root, alphabet, left_out) for source in config.sources]
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
