"""Encoders on networks of torchvision, changed so that strips of any width give what they give alone.

A backbone made for square photographs is wrong for strips in two ways, and both are put right on its traced graph:

- It halves the width five times. From the third time on only the height is halved (as CRNN's pooling does), so that a
  frame is four columns of pixels, whatever the network.
- It lets padding in: batch norms lift it above zero, and squeeze-and-excitation takes means over it. So every
  convolution and pooling step that looks sideways gets its input masked, and means are taken over the valid columns.

With that a strip's features are exact: the same alone and in any batch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import torchvision
from torch import Tensor, fx, nn

from glyphline.training.config import NetworkConfig
from glyphline.training.networks.encoder import StripEncoder
from glyphline.training.networks.masking import halved, valid_mask

HALVINGS = 2
"""How often the width is halved: four columns a frame."""

BACKBONES: dict[str, Callable[..., nn.Module]] = {
    "mobilenet_v3_small": torchvision.models.mobilenet_v3_small,
    "mobilenet_v3_large": torchvision.models.mobilenet_v3_large,
    "resnet18": torchvision.models.resnet18,
    "resnet34": torchvision.models.resnet34,
}
"""What makes each network; all end in a module `avgpool`, whose input is the last that has a width."""


def column_mask(lengths: Tensor, features: Tensor) -> Tensor:
    """Returns which columns of `features` `(batch, channels, height, width)` are valid, `(batch, 1, 1, width)`."""
    return valid_mask(lengths, features.shape[3])[:, None, None, :]


def masked_mean(features: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
    """Returns the mean over the valid columns of `(batch, channels, height, width)`, `(batch, channels, 1, 1)`."""
    count = lengths[:, None, None, None] * features.shape[2]
    return (features * mask).sum(dim=(2, 3), keepdim=True) / count


def along_width(size: int | tuple[int, ...]) -> int:
    """Returns the part of a kernel size or stride that is along the width."""
    return size if isinstance(size, int) else size[-1]


def fit_to_strips(network: nn.Module) -> fx.GraphModule:
    """Rewrites a backbone: from pixels and widths to masked features and valid columns.

    Args:
        network: The network; its later strides are changed in place.

    Returns:
        A module from `(batch, 1, height, width)` and `(batch,)` to `(batch, channels, rows, frames)` and `(batch,)`.
    """
    traced = fx.symbolic_trace(network)
    modules = dict(traced.named_modules())
    graph = fx.Graph()
    pixels, widths = graph.placeholder("pixels"), graph.placeholder("widths")
    lengths = [widths]  # by how often the width was halved
    for _ in range(HALVINGS):
        lengths.append(graph.call_function(halved, (lengths[-1],)))
    copies: dict[fx.Node, fx.Node] = {}
    depth: dict[fx.Node, int] = {}  # how often a node's width was halved
    masks: dict[int, fx.Node] = {}

    def mask(node: fx.Node) -> fx.Node:
        """The mask that fits a node's output; one serves all of a width."""
        if depth[node] not in masks:
            masks[depth[node]] = graph.call_function(column_mask, (lengths[depth[node]], copies[node]))
        return masks[depth[node]]

    for node in traced.graph.nodes:
        if node.op == "placeholder":
            copies[node], depth[node] = pixels, 0
            continue
        source = node.all_input_nodes[0]
        depth[node] = max(depth[parent] for parent in node.all_input_nodes)
        module = modules[str(node.target)] if node.op == "call_module" else None
        if node.target == "avgpool":
            masked = graph.call_function(operator.mul, (copies[source], mask(source)))
            graph.output((masked, lengths[depth[source]]))
            break
        if isinstance(module, nn.AdaptiveAvgPool2d):
            inputs = (copies[source], mask(source), lengths[depth[source]])
            copies[node] = graph.call_function(masked_mean, inputs)
        elif isinstance(module, nn.Conv2d | nn.MaxPool2d):
            if along_width(module.stride) == 2 and depth[node] == HALVINGS:
                module.stride = (2, 1)
            elif along_width(module.stride) == 2:
                depth[node] += 1
            given = copies[source]
            if along_width(module.kernel_size) > 1:  # maxima are taken of values ≥ 0: a masked zero never wins over ink
                given = graph.call_function(operator.mul, (given, mask(source)))
            copies[node] = graph.call_module(str(node.target), (given,))
        else:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    return fx.GraphModule(traced, graph)


class BackboneEncoder(StripEncoder):
    """An encoder on a network of torchvision, with weights of its own from the start.

    Args:
        config: Sizes and kinds; `encoder` names the network.
        height: Height of strips, in pixels.
    """

    def __init__(self, config: NetworkConfig, height: int) -> None:
        super().__init__()
        network = BACKBONES[config.encoder](weights=None)
        name, first = next((name, module) for name, module in network.named_modules() if isinstance(module, nn.Conv2d))
        sizes = _pair(first.kernel_size), _pair(first.stride), _pair(first.padding)
        grey = nn.Conv2d(1, first.out_channels, *sizes, bias=False)
        network.set_submodule(name, grey)
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.momentum = 0.1  # some are slower, which is right for a week of training and wrong for an hour
        channels = [module.num_features for module in network.modules() if isinstance(module, nn.BatchNorm2d)][-1]
        self.backbone = fit_to_strips(network)
        self.add_layers(channels, config)

    def columns(self, pixels: Tensor, widths: Tensor) -> tuple[Tensor, Tensor]:
        """Maps `(batch, 1, height, width)` and widths to `(batch, channels, frames)` and valid frames."""
        features, lengths = self.backbone(pixels, widths)  # (batch, channels, rows, frames)
        return features.amax(dim=2), lengths


def _pair(size: int | str | tuple[int, ...]) -> tuple[int, int]:
    assert isinstance(size, tuple)
    return size[0], size[1]
