"""The encoder: convolutions collapse a strip's height, recurrent layers read along its width.

Shi, Bai and Yao 2015, "An End-to-End Trainable Neural Network for Image-based Sequence Recognition" (CRNN), with the
height collapsed by a column maximum (Retsinas et al. 2022, "Best Practices for a Handwritten Text Recognition System").
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from glyphline.training.config import NetworkConfig
from glyphline.training.networks.masking import halved, valid_mask
from glyphline.training.networks.recurrent import RecurrentLayers


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


class StripEncoder(nn.Module, ABC):
    """Reads strips of one height and any width into one feature vector a frame of four columns.

    What turns pixels into columns is a subclass's; dropout and recurrent layers on them are common to all.

    """

    WIDTH_MULTIPLE = 4
    """Columns a frame."""

    column_outputs: int
    dropout: nn.Dropout
    recurrent: RecurrentLayers

    def add_layers(self, columns: int, config: NetworkConfig) -> None:
        """Adds what stands on columns of size `columns`; subclasses call it last."""
        self.column_outputs = columns
        self.dropout = nn.Dropout(config.dropout)
        self.recurrent = RecurrentLayers(
            config.encoder_cell,
            columns,
            config.encoder_size,
            config.encoder_layers,
            config.dropout,
            config.gate_bias,
            bidirectional=config.bidirectional,
        )

    @property
    def outputs(self) -> int:
        """Size of the features."""
        return self.recurrent.outputs

    @property
    def backward_outputs(self) -> int:
        """How many of the features, the last ones, come from layers that read backwards."""
        return self.recurrent.backward_outputs

    @abstractmethod
    def columns(self, pixels: Tensor, widths: Tensor) -> tuple[Tensor, Tensor]:
        """Collapses the height.

        Args:
            pixels: `(batch, 1, height, width)` in [0, 1], zero beyond each strip's width, width a multiple of four.
            widths: Valid columns of each strip `(batch,)`.

        Returns:
            Columns `(batch, features, frames)`, zero beyond the valid frames, and valid frames `(batch,)`.
        """

    def convolve(self, images: Tensor, widths: Tensor) -> tuple[Tensor, Tensor]:
        """Runs all that stands below the recurrent layers.

        Args:
            images: Normalised strips `(batch, 1, height, width)`, uint8 or float in [0, 255], width a multiple of four.
            widths: Valid columns of each strip `(batch,)`.

        Returns:
            Features `(batch, frames, columns)`, zero beyond the valid frames, and valid frames `(batch,)`.
        """
        pixels = images.to(torch.float32) * (1 / 255)
        pixels = pixels * valid_mask(widths, images.shape[3])[:, None, None, :]
        columns, lengths = self.columns(pixels, widths)  # (batch, columns, frames)
        return self.dropout(columns.transpose(1, 2)), lengths

    def forward(self, images: Tensor, widths: Tensor, cut: int = 0) -> tuple[Tensor, Tensor]:
        """Encodes a batch.

        Args:
            images: Normalised strips `(batch, 1, height, width)`, uint8 or float in [0, 255], width a multiple of four.
            widths: Valid columns of each strip `(batch,)`.
            cut: Frames after which the recurrent layers' gradient is cut; 0 never cuts it.

        Returns:
            Features `(batch, frames, outputs)` and valid frames `(batch,)`; features beyond them are zero.
        """
        features, lengths = self.convolve(images, widths)
        return self.recurrent(features, lengths, cut), lengths


class ConvolutionalEncoder(StripEncoder):
    """Six convolutions in four blocks, made for strips.

    A column's features are the maximum over its rows, which does not care where in its strip a line of text stands;
    with `weigh_rows`, a weighted sum over the rows, which does, is added. Its weights start at zero. Without
    `column_maximum` there is only that sum: the columns are flattened and projected.

    Args:
        config: Sizes and kinds.
        height: Height of strips, in pixels.
    """

    HEIGHT_DIVISOR = 8
    """Rows of pixels a row of the last block's output."""

    def __init__(self, config: NetworkConfig, height: int) -> None:
        super().__init__()
        first, second, third, fourth = config.channels
        rows = height // self.HEIGHT_DIVISOR if config.weigh_rows else 0
        self.blocks = nn.ModuleList(
            [
                ConvolutionalBlock(1, first, 1, (2, 2)),
                ConvolutionalBlock(first, second, 1, (2, 2)),
                ConvolutionalBlock(second, third, 2, (2, 1)),
                ConvolutionalBlock(third, fourth, 2, None),
            ]
        )
        self.residuals = nn.ModuleList(
            nn.ModuleList(ResidualBlock(width) for _ in range(config.residual_blocks)) for width in (third, fourth)
        )
        self.rows = nn.Conv2d(fourth, fourth, (rows, 1), bias=False) if rows else None
        self.takes_maximum = config.column_maximum
        if self.rows is not None and self.takes_maximum:
            nn.init.zeros_(self.rows.weight)
        self.add_layers(fourth, config)

    def columns(self, pixels: Tensor, widths: Tensor) -> tuple[Tensor, Tensor]:
        """Maps `(batch, 1, height, width)` and widths to `(batch, channels, frames)` and valid frames."""
        features, lengths = pixels, widths
        for index, block in enumerate(self.blocks):
            features, lengths = block(features, lengths)
            if index >= 2:
                mask = valid_mask(lengths, features.shape[3])[:, None, None, :]
                residuals = self.residuals[index - 2]
                assert isinstance(residuals, nn.ModuleList)
                for residual in residuals:
                    features = residual(features, mask)
        if self.rows is None:
            return features.amax(dim=2), lengths  # (batch, channels, frames): the strongest answer of each column
        weighed = self.rows(features).squeeze(2)
        return (features.amax(dim=2) + weighed if self.takes_maximum else weighed), lengths
