"""Two processes, as torchrun starts them, on a CPU: one network, one log, and a kill that costs nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from glyphline.training.config import read_config
from glyphline.training.loop import run as run_module
from glyphline.training.loop import train
from glyphline.training.loop.module import RecogniserModule
from glyphline.training.loop.stream import SKIPS, StripData, StripStream
from glyphline.training.metrics_log import MetricsLog

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

EPOCHS = 3


class JoinedStream(StripStream):
    """The batches that two processes take at one step, as one batch."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        shares = [StripStream(self.config, self.sources, self.epoch, rank, 2) for rank in range(2)]
        for parts in zip(*shares, strict=False):
            longest = max(part["labels"].shape[1] for part in parts)
            for part in parts:
                assert part["images"].shape[3] == 64, "one padded width: norms see padding, too"
                part["labels"] = torch.nn.functional.pad(part["labels"], (0, longest - part["labels"].shape[1]))
            joined = {name: torch.cat([part[name] for part in parts]) for name in parts[0] if name != SKIPS}
            parts[0][SKIPS].merge(parts[1][SKIPS])
            yield joined | {SKIPS: parts[0][SKIPS]}


class JoinedData(StripData):
    """Data of one process that trains on what two would."""

    def train_dataloader(self) -> JoinedStream:
        assert self.trainer is not None
        return JoinedStream(self.config, self.sources, self.trainer.current_epoch)


def write_config(path: Path, template: Path) -> None:
    """Writes a configuration in which no number depends on what else is in a process: no dropout, no masking."""
    text = template.read_text()
    text = text.replace("height = 16", "height = 16\nmax_width = 64")  # all strips in batches of width 64
    text = text.replace("[network]", "[network]\ndropout = 0.0")
    text = text.replace("[loop]", "[loop]\ninput_masking = 0.0")
    start = text.index("[[sources]]")
    sources = '[[sources]]\nkind = "real"\npath = "strips"\n\n'
    validation = '[validation.strips]\nkind = "folder"\npath = "strips"\nonly = "strip[0-9]{1,3}[.]"\n'
    path.write_text(text[:start] + sources + validation)


def free_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def start_by_hand(command: list[str], environment: dict[str, str]) -> list[subprocess.Popen[str]]:
    """Starts two processes as torchrun would, so that both can be killed."""
    common = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": free_port(),
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "GROUP_RANK": "0",
        "TORCHELASTIC_RUN_ID": "none",
    }
    return [
        subprocess.Popen(
            [sys.executable, *command],
            env=environment | common | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        for rank in range(2)
    ]


def weights(run: Path) -> dict[str, Tensor]:
    checkpoint = torch.load(run / "checkpoints" / "last.ckpt", weights_only=False)
    assert checkpoint["epoch"] == EPOCHS - 1
    state: dict[str, Tensor] = checkpoint["state_dict"]
    return state


def initial_weights(config: Path) -> dict[str, Tensor]:
    settings = read_config(config)
    torch.manual_seed(settings.seed)
    return RecogniserModule(settings).state_dict()


def distance_between(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """Euclidean distance of all weights of the network that is trained."""
    names = [name for name in one if name.startswith("network.") and "running" not in name and "num_" not in name]
    return float(torch.cat([(one[name] - other[name]).double().flatten() for name in names]).norm())


def test_two_processes_killed_and_resumed_end_where_one_process_with_their_batches_does(
    data_root: Path, tmp_path: Path, make_config: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, run = tmp_path / "two.toml", tmp_path / "two"
    write_config(config, make_config(tmp_path, epochs=EPOCHS))
    command = ["-m", "glyphline", "train", str(config), "--data-root", str(data_root), "--output", str(run)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}

    both = start_by_hand(command, environment)
    log = both[0].stderr
    assert log is not None
    try:
        seen = []
        for line in log:
            seen.append(line)
            if line.startswith("epoch 1, "):
                break
        else:
            pytest.fail("".join(seen))
    finally:
        for process in both:
            process.send_signal(signal.SIGKILL)
            process.wait()
        log.close()
    assert {row["epoch"] for row in MetricsLog(run / "metrics.csv").rows()} <= {0, 1}
    assert (run / "checkpoints" / "last.ckpt").exists()

    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [sys.executable, *launcher, *command], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

    monkeypatch.setattr(run_module, "StripData", JoinedData)
    train(config, data_root, tmp_path / "one")

    rows = [MetricsLog(tmp_path / name / "metrics.csv").rows() for name in ("two", "one")]
    for name in ("strips", "skipped", "learning_rate"):
        assert [row[name] for row in rows[0]] == [row[name] for row in rows[1]]
    for name in ("train_ctc", "train_attention", "train_loss"):
        assert [row[name] for row in rows[0]] == pytest.approx([row[name] for row in rows[1]], rel=0.01)
    begin, one, two = initial_weights(config), weights(tmp_path / "one"), weights(run)
    assert list(two) == list(one)
    assert one["strips_seen"] == two["strips_seen"]
    # Sums in another order differ in their last bits, and at a kink (ReLU, maximum) a last bit decides where a gradient
    # goes; Adam makes steps of one size of small gradients. In double precision the gradients agree to 1e-12. Without
    # common norms, or with losses that are not weighted, a quarter of the way lies between the two.
    assert distance_between(one, two) < 0.05 * distance_between(one, begin)
    assert distance_between(one, begin) > 0.1
