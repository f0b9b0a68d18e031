"""A whole recogniser: one encoder with a CTC head, a step-wise head, or both trained together.

With both, each head helps the other: CTC's alignment teaches the encoder to read from left to right, which makes an
attention decoder converge early (Kim, Hori and Watanabe 2017, "Joint CTC-Attention based End-to-End Speech
Recognition").
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from glyphline.training.config import NetworkConfig
from glyphline.training.networks.attention import AttentionHead
from glyphline.training.networks.ctc import CTCHead
from glyphline.training.networks.decoder import StepDecoder
from glyphline.training.networks.encoder import ConvolutionalEncoder, StripEncoder
from glyphline.training.networks.vector_heads import FlattenHead, ImageEveryStepHead, ImageFirstHead, PooledStateHead


def make_encoder(config: NetworkConfig, height: int) -> StripEncoder:
    """Returns the encoder that a configuration names, for strips of a height."""
    if config.encoder == "cnn":
        return ConvolutionalEncoder(config, height)
    from glyphline.training.networks.backbones import BackboneEncoder  # noqa: PLC0415  (torchvision takes seconds)

    return BackboneEncoder(config, height)


def make_decoder(config: NetworkConfig, encoder: StripEncoder, symbols: int) -> StepDecoder | None:
    """Returns the step-wise head that a configuration names, for an encoder, or None."""
    name = config.decoder_head
    sizes = (symbols, config.decoder_cell, config.decoder_size, config.decoder_layers, config.embedding_size)
    training = (config.dropout, config.gate_bias)
    if name == "attention":
        return AttentionHead(
            encoder.outputs,
            symbols,
            config.decoder_cell,
            config.decoder_size,
            config.attention_size,
            config.location_filters,
            config.attention_reach,
            config.embedding_size,
            config.dropout,
            config.gate_bias,
            config.decoder_layers,
            config.carries_state,
        )
    if name == "flatten":
        return FlattenHead(encoder.outputs, config.canvas_width // encoder.WIDTH_MULTIPLE, *sizes, *training)
    if name == "image-first":
        kind = ImageEveryStepHead if config.image_every_step else ImageFirstHead
        return kind(encoder.outputs, *sizes, *training)
    if name == "pooled-state":
        return PooledStateHead(encoder.outputs, encoder.backward_outputs, *sizes, *training)
    return None


@dataclass(frozen=True, slots=True)
class HeadOutputs:
    """What the heads give for a batch; None for one that the network lacks or that was not run.

    Attributes:
        ctc: CTC log-probabilities `(batch, frames, symbols)` with valid frames `(batch,)`.
        shortcut: The same of the shortcut, which is only run while training.
        scores: The step-wise head's scores before softmax `(batch, steps, symbols)`.
    """

    ctc: tuple[Tensor, Tensor] | None
    shortcut: tuple[Tensor, Tensor] | None
    scores: Tensor | None


class RecogniserNetwork(nn.Module):
    """Encoder and heads. Each step-wise head is registered under its own name.

    The shortcut is a CTC head on the convolutions' features, beside the recurrent layers: it teaches the convolutions
    to tell symbols apart by themselves, and is left behind when training ends (Retsinas et al. 2022, "Best Practices
    for a Handwritten Text Recognition System").

    Args:
        config: Sizes and kinds.
        symbols: Outputs of each head: the alphabet and one more, blank or end.
        height: Height of strips, in pixels.
    """

    def __init__(self, config: NetworkConfig, symbols: int, height: int) -> None:
        super().__init__()
        self.config = config
        self.symbols = symbols
        self.encoder = make_encoder(config, height)
        self.ctc = CTCHead(self.encoder.outputs, symbols, config.frames_per_step) if "ctc" in config.heads else None
        columns, frames_per_step = self.encoder.column_outputs, config.frames_per_step
        self.shortcut = CTCHead(columns, symbols, frames_per_step, reach=1) if config.ctc_shortcut else None
        decoder = make_decoder(config, self.encoder, symbols)
        if decoder is not None and config.decoder_head is not None:
            self.add_module(config.decoder_head, decoder)

    @property
    def decoder(self) -> StepDecoder | None:
        """The step-wise head, where there is one."""
        if self.config.decoder_head is None:
            return None
        head = self.get_submodule(self.config.decoder_head)
        assert isinstance(head, StepDecoder)
        return head

    def forward(
        self,
        images: Tensor,
        widths: Tensor,
        inputs: Tensor | None = None,
        *,
        sampling: float = 0.0,
        restarts: float = 0.0,
        cut: int = 0,
        encoder_cut: int = 0,
    ) -> HeadOutputs:
        """Runs the encoder and its heads.

        Args:
            images: `(batch, 1, height, width)` in [0, 255].
            widths: Valid columns `(batch,)`.
            inputs: Start symbol and label `(batch, steps)` for the step-wise head; None leaves it out.
            sampling: Share of the label's symbols replaced by the head's own; see `StepDecoder.forward`.
            restarts: Share of the steps before which its cells start anew; see `StepDecoder.forward`.
            cut: Steps after which the step-wise head's gradient is cut; 0 never cuts it.
            encoder_cut: Frames after which the gradient of the encoder's recurrent layers is cut; 0 never cuts it.
        """
        columns, lengths = self.encoder.convolve(images, widths)
        memory = self.encoder.recurrent(columns, lengths, encoder_cut)
        ctc = self.ctc(memory, lengths) if self.ctc is not None else None
        decoder = self.decoder if inputs is not None else None
        scores = None
        if decoder is not None:
            scores = decoder(memory, lengths, inputs, sampling=sampling, restarts=restarts, cut=cut)
        shortcut = self.shortcut(columns, lengths) if self.shortcut is not None and self.training else None
        return HeadOutputs(ctc, shortcut, scores)

    @torch.no_grad()
    def read(self, images: Tensor, widths: Tensor, longest: int) -> dict[str, list[list[int]]]:
        """Reads greedily with every head, without teacher forcing.

        Args:
            images: `(batch, 1, height, width)` in [0, 255].
            widths: Valid columns `(batch,)`.
            longest: Greatest number of symbols the step-wise head may emit.

        Returns:
            For each head, by its name, the symbols of each row.
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
        if self.decoder is not None and self.config.decoder_head is not None:
            readings[self.config.decoder_head] = self.decoder.greedy(memory, lengths, longest)
        return readings
