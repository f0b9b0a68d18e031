"""Batch norms whose statistics are those of all processes' batches together, on a CPU.

torch's own `SyncBatchNorm` wants a GPU; without either, a run of several processes would not be the run of one process
with larger batches.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed, nn


class _Sum(torch.autograd.Function):
    """The sum of all processes' tensors; so the gradient of each is the sum of what all of them get back."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:  # noqa: ANN401  (as torch has it)
        summed = tensor.clone()
        distributed.all_reduce(summed)
        return summed

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:  # noqa: ANN401
        gradient = gradients[0].clone()
        distributed.all_reduce(gradient)
        return gradient


def _sum(tensor: Tensor) -> Tensor:
    summed: Tensor = _Sum.apply(tensor)
    return summed


class GatheredBatchNorm2d(nn.BatchNorm2d):
    """A batch norm over the batches of all processes, with the parameters and buffers of any other."""

    def forward(self, input: Tensor) -> Tensor:
        """Maps `(batch, channels, height, width)` to the same."""
        if not (self.training and distributed.is_initialized()):
            return super().forward(input)
        features = input if input.dtype == torch.float64 else input.float()
        sums = features.sum((0, 2, 3))  # (channels,)
        gathered = _sum(torch.cat((sums, features.new_tensor([features.numel() / features.shape[1]]))))
        count = gathered[-1].detach()
        mean = gathered[:-1] / count
        centred = features - mean[:, None, None]
        variance = _sum(centred.square().sum((0, 2, 3))) / count
        scale = torch.rsqrt(variance + self.eps) * self.weight
        self._follow(mean.detach(), variance.detach() * count / (count - 1))
        output: Tensor = centred * scale[:, None, None] + self.bias[:, None, None]
        return output.to(input.dtype)

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor) -> None:
        """Moves the running statistics towards a batch's."""
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        self.num_batches_tracked += 1
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance, self.momentum)


def gather_norms(module: nn.Module) -> None:
    """Puts gathered batch norms in place of all batch norms below a module; parameters and buffers stay the same."""
    for name, child in module.named_children():
        if type(child) is nn.BatchNorm2d:
            norm = GatheredBatchNorm2d(child.num_features, child.eps, child.momentum)
            norm.weight, norm.bias = child.weight, child.bias
            norm.running_mean, norm.running_var = child.running_mean, child.running_var
            norm.num_batches_tracked = child.num_batches_tracked
            setattr(module, name, norm)
        else:
            gather_norms(child)
