"""The encoder: convolutions collapse a strip's height, recurrent layers read along its width.

Shi, Bai and Yao 2015, "An End-to-End Trainable Neural Network for Image-based Sequence Recognition" (CRNN), with the
height collapsed by a column maximum (Retsinas et al. 2022, "Best Practices for a Handwritten Text Recognition System").
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from glyphline.training.networks.masking import halved, valid_mask
from glyphline.training.networks.recurrent import BidirectionalLayers, Cell


class ConvolutionalBlock(nn.Module):
    """Convolutions 3×3 with batch normalisation and ReLU, masked after each, then an optional pooling step."""

    def __init__(self, inputs: int, outputs: int, convolutions: int, pooling: tuple[int, int] | None) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(
            nn.Conv2d(inputs if index == 0 else outputs, outputs, 3, padding=1, bias=False)
            for index in range(convolutions)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for _ in range(convolutions))
        self.pool = nn.MaxPool2d(pooling) if pooling else None
        self.halves_width = pooling is not None and pooling[1] == 2

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Maps `(batch, inputs, height, width)` and lengths to the same of `outputs` channels, pooled."""
        mask = valid_mask(lengths, features.shape[3])[:, None, None, :]
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            features = torch.relu(norm(convolution(features))) * mask
        if self.pool is not None:
            features = self.pool(features)  # all values are ≥ 0, so a masked zero never wins over ink
            if self.halves_width:
                lengths = halved(lengths)
        return features, lengths


class ResidualBlock(nn.Module):
    """Two masked convolutions whose answer is added to their input (He et al. 2016, "Deep Residual Learning").

    The second norm starts at zero, so that a new block changes nothing: a trained network may be deepened.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)
        nn.init.zeros_(self.second_norm.weight)

    def forward(self, features: Tensor, mask: Tensor) -> Tensor:
        """Maps `(batch, channels, height, width)` to the same, zero where `mask` `(batch, 1, 1, width)` is."""
        inner = torch.relu(self.first_norm(self.first(features))) * mask
        return torch.relu(features + self.second_norm(self.second(inner))) * mask


class Encoder(nn.Module):
    """Reads strips of one height and any width into one feature vector a frame of four columns.

    A column's features are the maximum over its rows, which does not care where in its strip a line of text stands;
    with `rows`, a weighted sum over the rows, which does, is added. Its weights start at zero.

    Args:
        channels: Channels of the four blocks.
        residual_blocks: Residual blocks after the third block, and again after the fourth.
        rows: Rows of the last block's output that have weights, `height / 8`; 0 takes the maximum alone.
        cell: Kind of recurrent cell.
        size: State size of each direction.
        layers: Number of recurrent layers.
        dropout: Share of features zeroed while training.
        gate_bias: Initial bias of the gates that keep the state.
    """

    WIDTH_MULTIPLE = 4
    """Columns a frame."""

    HEIGHT_DIVISOR = 8
    """Rows of pixels a row of the last block's output."""

    def __init__(
        self,
        channels: tuple[int, int, int, int],
        cell: Cell,
        size: int,
        layers: int,
        dropout: float = 0.1,
        gate_bias: float = 1.0,
        residual_blocks: int = 0,
        rows: int = 0,
    ) -> None:
        super().__init__()
        first, second, third, fourth = channels
        self.blocks = nn.ModuleList(
            [
                ConvolutionalBlock(1, first, 1, (2, 2)),
                ConvolutionalBlock(first, second, 1, (2, 2)),
                ConvolutionalBlock(second, third, 2, (2, 1)),
                ConvolutionalBlock(third, fourth, 2, None),
            ]
        )
        self.residuals = nn.ModuleList(
            nn.ModuleList(ResidualBlock(width) for _ in range(residual_blocks)) for width in (third, fourth)
        )
        self.rows = nn.Conv2d(fourth, fourth, (rows, 1), bias=False) if rows else None
        if self.rows is not None:
            nn.init.zeros_(self.rows.weight)
        self.dropout = nn.Dropout(dropout)
        self.recurrent = BidirectionalLayers(cell, fourth, size, layers, dropout, gate_bias)
        self.outputs = self.recurrent.outputs

    def forward(self, images: Tensor, widths: Tensor) -> tuple[Tensor, Tensor]:
        """Encodes a batch.

        Args:
            images: Normalised strips `(batch, 1, height, width)`, uint8 or float in [0, 255], width a multiple of four.
            widths: Valid columns of each strip `(batch,)`.

        Returns:
            Features `(batch, frames, outputs)` and valid frames `(batch,)`; features beyond them are zero.
        """
        features = images.to(torch.float32) * (1 / 255)
        features = features * valid_mask(widths, images.shape[3])[:, None, None, :]
        lengths = widths
        for index, block in enumerate(self.blocks):
            features, lengths = block(features, lengths)
            if index >= 2:
                mask = valid_mask(lengths, features.shape[3])[:, None, None, :]
                for residual in self.residuals[index - 2]:
                    features = residual(features, mask)
        columns = features.amax(dim=2)  # (batch, channels, frames): the strongest answer of each column
        if self.rows is not None:
            columns = columns + self.rows(features).squeeze(2)
        return self.recurrent(self.dropout(columns.transpose(1, 2)), lengths), lengths
