from __future__ import annotations

import pytest
import torch

from glyphline.training.config import LoopConfig
from glyphline.training.errors import TrainingError
from glyphline.training.loop import engine
from glyphline.training.loop.engine import choose_device, choose_precision


@pytest.mark.parametrize(
    ("precision", "device", "bf16", "expected"),
    [
        ("auto", "cpu", True, "bf16-mixed"),
        ("auto", "cpu", False, "32-true"),
        ("auto", "cuda", True, "bf16-mixed"),
        ("auto", "cuda", False, "16-mixed"),
        ("bf16", "cpu", False, "bf16-mixed"),
        ("fp32", "cuda", True, "32-true"),
        ("fp16", "cuda", True, "16-mixed"),
    ],
)
def test_precision_follows_the_processor_unless_it_is_named(
    precision: str, device: str, bf16: bool, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "has_bf16", lambda: bf16)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: bf16)
    assert choose_precision(LoopConfig.model_validate({"precision": precision}), device) == expected


def test_what_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TrainingError, match=r"fp16.*GPU"):
        choose_precision(LoopConfig(precision="fp16"), "cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device(LoopConfig()) == "cpu"
    with pytest.raises(TrainingError, match="no GPU"):
        choose_device(LoopConfig(device="cuda"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device(LoopConfig()) == "cuda"
    assert choose_device(LoopConfig(device="cpu")) == "cpu"
