"""Several processes that train one network together, as `torchrun` starts them.

Each process draws its own share of an epoch's strips. A step is that of one batch which holds the batches of all:
losses are weighted by the symbols that each has (see `RecogniserModule.training_step`), batch norms see the statistics
of all (see `norms`), and every process takes the same number of steps.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed

Item = TypeVar("Item")


@dataclass(frozen=True)
class Processes:
    """The processes of a run, and which of them this is.

    Attributes:
        rank: Number of this process, from 0.
        count: Number of processes.
        local_count: Number of them on this machine.
    """

    rank: int = 0
    count: int = 1
    local_count: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files and logs."""
        return self.rank == 0


def started_processes() -> Processes:
    """Returns what `torchrun` says; without it, this process is the only one."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1 or "TORCHELASTIC_RUN_ID" not in os.environ:
        return Processes()
    return Processes(int(os.environ["RANK"]), count, int(os.environ.get("LOCAL_WORLD_SIZE", count)))


@contextmanager
def joined(processes: Processes, device: str) -> Iterator[None]:
    """Connects the processes; within another such block it does nothing.

    Args:
        processes: The processes.
        device: `cpu` connects them by gloo, `cuda` by NCCL.
    """
    if processes.count == 1 or distributed.is_initialized():
        yield
        return
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("nccl" if device == "cuda" else "gloo")
    try:
        yield
    finally:
        distributed.destroy_process_group()


@contextmanager
def first_before_others(processes: Processes) -> Iterator[None]:
    """Runs a block in the first process, and only when that is through in all others: for what writes files."""
    if processes.count > 1 and not processes.first:
        distributed.barrier()
    yield
    if processes.count > 1 and processes.first:
        distributed.barrier()  # not where the block failed: the others end with this process


def sum_over_processes(tensor: Tensor) -> Tensor:
    """Returns the sum of all processes' tensors, without a gradient."""
    if distributed.is_initialized():
        tensor = tensor.clone()
        distributed.all_reduce(tensor)
    return tensor


def gather_from_processes(item: Item) -> list[Item]:
    """Returns the items of all processes, in order of their ranks."""
    if not distributed.is_initialized():
        return [item]
    items: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(items, item)
    return items


@dataclass(frozen=True)
class EvenSteps(Iterable[Item]):
    """Batches that end in all processes at the same step: as soon as one process has no more.

    Pools of strips give more or fewer batches, as strips are wide or narrow. What the others still have, a few batches
    at the end of an epoch, is left out.

    Attributes:
        batches: This process's batches.
        device: Where the processes' answers are compared.
    """

    batches: Iterable[Item]
    device: torch.device

    def __iter__(self) -> Iterator[Item]:
        """Yields batches while all processes have one."""
        batches = iter(self.batches)
        while True:
            batch = next(batches, None)
            exhausted = torch.tensor([int(batch is None)], device=self.device)
            if int(sum_over_processes(exhausted)) or batch is None:
                return
            yield batch
