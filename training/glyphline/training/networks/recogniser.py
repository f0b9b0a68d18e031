"""A whole recogniser: one encoder with a CTC head, an attention head, or both trained together.

With both, each head helps the other: CTC's alignment teaches the encoder to read from left to right, which makes the
attention decoder converge early (Kim, Hori and Watanabe 2017, "Joint CTC-Attention based End-to-End Speech
Recognition").
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from glyphline.training.config import NetworkConfig
from glyphline.training.networks.attention import AttentionHead
from glyphline.training.networks.ctc import CTCHead
from glyphline.training.networks.encoder import Encoder


class RecogniserNetwork(nn.Module):
    """Encoder and heads.

    Args:
        config: Sizes and kinds.
        symbols: Outputs of each head: the alphabet and one more, blank or end.
        height: Height of strips, in pixels.
    """

    def __init__(self, config: NetworkConfig, symbols: int, height: int) -> None:
        super().__init__()
        self.config = config
        self.symbols = symbols
        self.encoder = Encoder(
            config.channels,
            config.encoder_cell,
            config.encoder_size,
            config.encoder_layers,
            config.dropout,
            config.gate_bias,
            config.residual_blocks,
            height // Encoder.HEIGHT_DIVISOR if config.weigh_rows else 0,
        )
        self.ctc = CTCHead(self.encoder.outputs, symbols, config.frames_per_step) if "ctc" in config.heads else None
        self.attention = (
            AttentionHead(
                self.encoder.outputs,
                symbols,
                config.decoder_cell,
                config.decoder_size,
                config.attention_size,
                config.embedding_size,
                config.dropout,
                config.gate_bias,
            )
            if "attention" in config.heads
            else None
        )

    def forward(
        self, images: Tensor, widths: Tensor, inputs: Tensor | None = None
    ) -> tuple[tuple[Tensor, Tensor] | None, Tensor | None]:
        """Runs the encoder and both heads.

        Args:
            images: `(batch, 1, height, width)` in [0, 255].
            widths: Valid columns `(batch,)`.
            inputs: Start symbol and label `(batch, steps)` for the attention head; None leaves it out.

        Returns:
            CTC log-probabilities with frame counts (or None), and attention scores (or None).
        """
        memory, lengths = self.encoder(images, widths)
        ctc = self.ctc(memory, lengths) if self.ctc is not None else None
        scores = self.attention(memory, lengths, inputs) if self.attention is not None and inputs is not None else None
        return ctc, scores

    @torch.no_grad()
    def read(self, images: Tensor, widths: Tensor, longest: int) -> dict[str, list[list[int]]]:
        """Reads greedily with every head, without teacher forcing.

        Args:
            images: `(batch, 1, height, width)` in [0, 255].
            widths: Valid columns `(batch,)`.
            longest: Greatest number of symbols the attention head may emit.

        Returns:
            For each head, the symbols of each row.
        """
        memory, lengths = self.encoder(images, widths)
        readings: dict[str, list[list[int]]] = {}
        if self.ctc is not None:
            log_probabilities, frames = self.ctc(memory, lengths)
            best = log_probabilities.argmax(dim=-1)
            readings["ctc"] = []
            for row, length in zip(best, frames.tolist(), strict=True):
                merged = torch.unique_consecutive(row[:length]).tolist()
                readings["ctc"].append([symbol for symbol in merged if symbol != 0])
        if self.attention is not None:
            readings["attention"] = self.attention.greedy(memory, lengths, longest)
        return readings
