from __future__ import annotations

import pytest
import torch
from torch import Tensor

from glyphline.training.config import LoopConfig, NetworkConfig
from glyphline.training.loop.losses import decoder_inputs, head_losses, total_loss
from glyphline.training.networks.recogniser import RecogniserNetwork

SIZES = {
    "channels": (4, 4, 8, 8),
    "encoder_size": 6,
    "encoder_layers": 1,
    "decoder_size": 8,
    "attention_size": 6,
    "dropout": 0.0,
}


def make_batch() -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(3)
    return {
        "images": torch.randint(0, 256, (3, 1, 16, 64), dtype=torch.uint8, generator=random),
        "widths": torch.tensor([64, 48, 60]),
        "labels": torch.tensor([[1, 2, 3, 4], [4, 0, 0, 0], [0, 0, 0, 0]]),
        "label_lengths": torch.tensor([4, 1, 0]),
    }


def make_network(*heads: str, shortcut: bool = False) -> RecogniserNetwork:
    torch.manual_seed(1)
    config = NetworkConfig.model_validate(SIZES | {"heads": heads, "ctc_shortcut": shortcut})
    return RecogniserNetwork(config, 5, 16)


def test_inputs_are_the_start_and_the_label() -> None:
    labels = torch.tensor([[1, 2], [3, 0]])
    assert decoder_inputs(labels, 5, 0.0).tolist() == [[5, 1, 2], [5, 3, 0]]


def test_masking_replaces_a_share_of_the_symbols_by_others() -> None:
    torch.manual_seed(0)
    labels = torch.full((100, 50), 7)
    inputs = decoder_inputs(labels, 11, 0.3)
    assert (inputs[:, 0] == 11).all()
    changed = inputs[:, 1:] != 7
    assert float(changed.float().mean()) == pytest.approx(0.3 * 9 / 10, abs=0.02)
    assert inputs[:, 1:].min() >= 1
    assert inputs[:, 1:].max() <= 10


def test_each_head_has_a_loss_and_the_sum_is_weighted() -> None:
    loop = LoopConfig(input_masking=0.0, ctc_weight=0.25)
    losses = head_losses(make_network("ctc", "attention"), make_batch(), loop)
    assert set(losses) == {"ctc", "attention"}
    total = total_loss(losses, loop)
    assert total.item() == pytest.approx(0.25 * losses["ctc"].item() + 0.75 * losses["attention"].item())
    for head in ("ctc", "attention", "image-first"):
        losses = head_losses(make_network(head), make_batch(), loop)
        assert total_loss(losses, loop).item() == losses[head].item()


def test_a_shortcut_comes_on_top_and_teaches_the_convolutions_alone() -> None:
    loop = LoopConfig(input_masking=0.0, shortcut_weight=0.2)
    network = make_network("ctc", shortcut=True)
    losses = head_losses(network, make_batch(), loop)
    assert set(losses) == {"ctc", "shortcut"}
    total = total_loss(losses, loop).item()
    assert total == pytest.approx(losses["ctc"].item() + 0.2 * losses["shortcut"].item())
    losses["shortcut"].backward()  # type: ignore[no-untyped-call]  # as torch has it
    taught = {name.split(".")[0] for name, each in network.named_parameters() if each.grad is not None}
    assert taught == {"encoder", "shortcut"}
    assert all(each.grad is None for each in network.encoder.recurrent.parameters())
    assert set(head_losses(network.eval(), make_batch(), loop)) == {"ctc"}, "it is left behind when training ends"


def test_cuts_change_gradients_and_no_loss() -> None:
    gradients = []
    values = []
    for settings in ({}, {"cut_steps": 2}, {"cut_frames": 4}):
        network = make_network("ctc", "attention")
        losses = head_losses(network, make_batch(), LoopConfig.model_validate({"input_masking": 0.0} | settings))
        loss = total_loss(losses, LoopConfig())
        loss.backward()  # type: ignore[no-untyped-call]  # as torch has it
        values.append(loss.item())
        parameters = [p for p in network.parameters() if p.grad is not None]
        gradients.append(torch.cat([p.grad.flatten() for p in parameters if p.grad is not None]))
    assert values[1] == pytest.approx(values[0], rel=1e-5)
    assert values[2] == pytest.approx(values[0], rel=1e-5)
    for cut in gradients[1:]:
        assert not torch.allclose(gradients[0], cut, rtol=1e-3)


def test_sampling_changes_what_the_head_is_given() -> None:
    network = make_network("attention").eval()
    loop = LoopConfig(input_masking=0.0)
    losses = [head_losses(network, make_batch(), loop, sampling)["attention"].item() for sampling in (0.0, 1.0)]
    assert losses[0] != losses[1]
