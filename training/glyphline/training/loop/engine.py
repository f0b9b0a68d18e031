"""Where and how a run computes: device, precision, and Lightning's trainer."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytorch_lightning as lightning
import torch
from pytorch_lightning.callbacks import Callback
from pytorch_lightning.loggers import CSVLogger, Logger, TensorBoardLogger
from pytorch_lightning.strategies import DDPStrategy

from glyphline.models.session import available_threads
from glyphline.training.config import LoopConfig
from glyphline.training.errors import TrainingError
from glyphline.training.loop.distributed import Processes

TENSORBOARD_NAME = "tensorboard"
STEPS_NAME = "steps"
"""Folders of the logs by step; each start of a run has a folder of its own in them."""


def has_bf16() -> bool:
    """Tells whether this processor multiplies bf16 numbers in hardware (AVX-512 BF16 or AMX)."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


def choose_device(loop: LoopConfig) -> str:
    """Returns `cpu` or `cuda`.

    Raises:
        TrainingError: If the configuration wants a GPU that is not there.
    """
    there = torch.cuda.is_available()
    if loop.device == "cuda" and not there:
        raise TrainingError('loop.device = "cuda", but torch finds no GPU: leave it out, or install a torch for yours')
    return "cuda" if there and loop.device != "cpu" else "cpu"


def choose_precision(loop: LoopConfig, device: str) -> str:
    """Returns Lightning's name of the precision.

    Raises:
        TrainingError: If it is fp16 on a CPU.
    """
    if loop.precision == "fp16" and device == "cpu":
        raise TrainingError('loop.precision = "fp16" needs a GPU: on a CPU take "bf16", "fp32", or "auto"')
    precision: str = loop.precision
    if precision == "auto" and device == "cuda":
        precision = "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
    elif precision == "auto":
        precision = "bf16" if has_bf16() else "fp32"
    return {"bf16": "bf16-mixed", "fp16": "16-mixed", "fp32": "32-true"}[precision]


def set_threads(processes: Processes) -> None:
    """Gives each process its share of the processor; torch counts physical cores, and not those that it may use.

    `OMP_NUM_THREADS` is left in force for a process alone; for several, torchrun sets it to 1 where nobody has.
    """
    if processes.count == 1 and "OMP_NUM_THREADS" in os.environ:
        return
    torch.set_num_threads(max(1, available_threads() // processes.local_count))


def make_loggers(run: Path) -> list[Logger]:
    """Returns the logs by step, as Lightning keeps them: for TensorBoard, and as CSV."""
    return [TensorBoardLogger(run, TENSORBOARD_NAME), CSVLogger(run, STEPS_NAME)]


def make_trainer(
    loop: LoopConfig,
    folder: Path,
    processes: Processes,
    callbacks: Sequence[Callback] = (),
    loggers: Sequence[Logger] = (),
    **settings: object,
) -> lightning.Trainer:
    """Makes Lightning's trainer.

    Args:
        loop: Device, precision, epochs and clipping.
        folder: Where what belongs nowhere else is written.
        processes: The processes that train.
        callbacks: Callbacks.
        loggers: Logs by step.
        settings: Further settings, or others than these.

    Raises:
        TrainingError: If the device or the precision are not to be had.
    """
    device = choose_device(loop)
    together: dict[str, Any] = {"devices": 1}
    if processes.count > 1:
        together = {
            "devices": processes.local_count,
            "num_nodes": processes.count // processes.local_count,
            # Buffers are the same in all processes without being sent: norms see the statistics of all.
            "strategy": DDPStrategy(
                process_group_backend="nccl" if device == "cuda" else "gloo", broadcast_buffers=False
            ),
            "sync_batchnorm": device == "cuda",  # on a CPU see `norms`
            "use_distributed_sampler": False,
        }
    given: dict[str, Any] = {
        "accelerator": device,
        "precision": choose_precision(loop, device),
        "max_epochs": loop.epochs,
        "gradient_clip_val": loop.clip,
        "gradient_clip_algorithm": "norm",
        "check_val_every_n_epoch": loop.validate_every,
        "num_sanity_val_steps": 0,
        "reload_dataloaders_every_n_epochs": 1,
        "log_every_n_steps": loop.log_every,
        "default_root_dir": folder,
        "logger": list(loggers) or False,
        "callbacks": list(callbacks),
        "enable_model_summary": False,
        "enable_progress_bar": sys.stdout.isatty(),  # the log of epochs is enough for a file
    }
    return lightning.Trainer(**{**given, **together, **settings})
