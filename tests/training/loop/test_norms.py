from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import distributed, nn

from glyphline.training.loop.distributed import EvenSteps, Processes, gather_from_processes, started_processes
from glyphline.training.loop.norms import GatheredBatchNorm2d, gather_norms


@pytest.fixture
def one_process(tmp_path: Path) -> Iterator[None]:
    """A process group of this process alone: what is gathered is what it has."""
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def test_gathered_norms_compute_what_batch_norms_do(one_process: None) -> None:
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Sequential(nn.BatchNorm2d(3)))
    for parameter in plain.parameters():
        nn.init.normal_(parameter)
    gathered = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Sequential(nn.BatchNorm2d(3)))
    gathered.load_state_dict(plain.state_dict())
    gather_norms(gathered.double())
    plain.double()
    assert sum(isinstance(module, GatheredBatchNorm2d) for module in gathered.modules()) == 2
    assert list(gathered.state_dict()) == list(plain.state_dict())
    for _ in range(3):
        images = torch.randn(4, 2, 6, 8, dtype=torch.float64) * 3 + 5
        weights = torch.randn(4, 3, 4, 6, dtype=torch.float64)
        outputs = []
        for network in (plain, gathered):
            network.zero_grad()
            output = network(images)
            (output * weights).sum().backward()
            outputs.append(output)
        torch.testing.assert_close(outputs[1], outputs[0])
    for (name, one), other in zip(plain.named_parameters(), gathered.parameters(), strict=True):
        torch.testing.assert_close(other.grad, one.grad, msg=name)
    for (name, old), new in zip(plain.named_buffers(), gathered.buffers(), strict=True):
        torch.testing.assert_close(new, old, msg=name)
    torch.testing.assert_close(gathered.eval()(images), plain.eval()(images))


def test_a_process_without_others_gathers_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    assert gather_from_processes({"a": 1}) == [{"a": 1}]
    assert list(EvenSteps([1, 2, 3], torch.device("cpu"))) == [1, 2, 3]
    for name in ("WORLD_SIZE", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    assert started_processes() == Processes()
    for name, value in {"WORLD_SIZE": "4", "RANK": "3", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "x"}.items():
        monkeypatch.setenv(name, value)
    assert started_processes() == Processes(3, 4, 2)
    assert not started_processes().first
