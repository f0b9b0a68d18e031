"""Configuration of the network."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from glyphline.training.config.base import Section


class NetworkConfig(Section):
    """Sizes and kinds of the network.

    Attributes:
        heads: `ctc`, `attention`, or both trained together on one encoder.
        channels: Channels of the four convolutional blocks.
        residual_blocks: Residual blocks after the third convolutional block, and again after the fourth.
        weigh_rows: Whether a column's features also tell where in the strip's height they stand.
        encoder_cell: Recurrent cell of the encoder.
        encoder_size: Its state size in each direction.
        encoder_layers: Number of its layers.
        frames_per_step: CTC output frames for each encoder frame of four columns.
        decoder_cell: Recurrent cell of the attention decoder.
        decoder_size: Its state size.
        attention_size: Inner size of the attention.
        embedding_size: Size of the decoder's symbol embedding.
        dropout: Share of features zeroed while training.
        gate_bias: Initial bias of forget and update gates.
    """

    heads: tuple[Literal["ctc", "attention"], ...] = ("ctc", "attention")
    channels: tuple[int, int, int, int] = (32, 64, 128, 192)
    residual_blocks: int = Field(default=0, ge=0)
    weigh_rows: bool = False
    encoder_cell: Literal["rnn", "gru", "lstm"] = "lstm"
    encoder_size: int = Field(default=128, ge=1)
    encoder_layers: int = Field(default=2, ge=1)
    frames_per_step: int = Field(default=2, ge=1, le=4)
    decoder_cell: Literal["gru", "lstm"] = "gru"
    decoder_size: int = Field(default=192, ge=1)
    attention_size: int = Field(default=96, ge=1)
    embedding_size: int = Field(default=32, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    gate_bias: float = 1.0
