"""Rounded for a bundle, a network reads as before, and its weights are what fp16 can hold."""

from __future__ import annotations

import copy

import pytest
import torch

from glyphline.training.config import NetworkConfig
from glyphline.training.networks.recogniser import RecogniserNetwork
from glyphline.training.networks.rounding import round_weights

SIZES = {
    "channels": (4, 8, 8, 12),
    "residual_blocks": 1,
    "weigh_rows": True,
    "encoder_size": 6,
    "decoder_size": 8,
    "attention_size": 5,
}


@pytest.fixture
def network() -> RecogniserNetwork:
    """Has norms that do something."""
    torch.manual_seed(1)
    network = RecogniserNetwork(NetworkConfig.model_validate(SIZES | {"encoder_layers": 1}), 7, 16).eval()
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            assert module.running_mean is not None
            assert module.running_var is not None
            module.running_mean.normal_(0, 0.3)
            module.running_var.uniform_(0.5, 2)
            torch.nn.init.normal_(module.weight)
            torch.nn.init.normal_(module.bias)
    return network


@torch.no_grad()
def test_a_rounded_network_reads_as_before(network: RecogniserNetwork) -> None:
    images, widths = torch.randint(0, 256, (2, 1, 16, 64), dtype=torch.uint8), torch.tensor([64, 33])
    rounded = copy.deepcopy(network)
    round_weights(rounded)
    before, after = (each.encoder(images, widths)[0] for each in (network, rounded))
    assert not torch.equal(before, after)
    torch.testing.assert_close(before, after, rtol=0, atol=5e-3)


def test_weights_of_convolutions_recurrences_and_the_ctc_head_are_what_fp16_can_hold(
    network: RecogniserNetwork,
) -> None:
    round_weights(network)
    assert network.ctc is not None
    weights = [
        weight
        for part in (network.encoder, network.ctc)
        for module in part.modules()
        if isinstance(module, torch.nn.Conv2d | torch.nn.RNNBase | torch.nn.Linear)
        for name, weight in module.named_parameters(recurse=False)
        if name.startswith("weight")
    ]
    assert len(weights) > 10
    assert all(torch.equal(weight, weight.half().float()) for weight in weights)
