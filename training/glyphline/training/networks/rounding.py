"""What makes a trained network's weights exactly what a bundle keeps of them: norms folded, weights rounded to fp16."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

from glyphline.training.networks.encoder import ConvolutionalBlock, ResidualBlock
from glyphline.training.networks.recogniser import RecogniserNetwork


def round_weights(network: RecogniserNetwork) -> None:
    """Rounds the weights that are most of a bundle to fp16: those of convolutions, recurrent layers and the CTC head.

    Norms are folded into their convolutions before, as the exporter would do afterwards. Biases stay as they are, and
    so do the convolutions of torchvision's networks, whose norms are folded by the exporter alone.

    Args:
        network: The network, which reads as before but for the rounding; it is for export, not for further training.
    """
    with torch.no_grad():
        for convolution, norm in _normed(network):
            _fold(convolution, norm)
            _round(convolution.weight)
        for layer in network.modules():
            if isinstance(layer, nn.RNNBase):
                for name, weights in layer.named_parameters(recurse=False):
                    if name.startswith("weight"):
                        _round(weights)
        if network.ctc is not None:
            _round(network.ctc.project.weight)


def _normed(network: nn.Module) -> Iterator[tuple[nn.Conv2d, nn.BatchNorm2d]]:
    """Yields every convolution of ours with the norm after it."""
    for block in network.modules():
        if isinstance(block, ConvolutionalBlock):
            yield from zip(block.convolutions, block.norms, strict=True)
        elif isinstance(block, ResidualBlock):
            yield block.first, block.first_norm
            yield block.second, block.second_norm


def _fold(convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> None:
    """Lets a convolution do what its norm does, and the norm nothing."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    convolution.weight, convolution.bias = fuse_conv_bn_weights(
        convolution.weight,
        convolution.bias,
        norm.running_mean,
        norm.running_var,
        norm.eps,
        norm.weight,
        norm.bias,
    )
    norm.eps = 0.0
    norm.running_mean.zero_()
    norm.running_var.fill_(1.0)
    norm.weight.fill_(1.0)
    norm.bias.zero_()


def _round(weights: torch.Tensor) -> None:
    weights.copy_(weights.half().float())
