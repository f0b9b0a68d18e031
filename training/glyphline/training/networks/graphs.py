"""The graphs of a bundle as modules: exactly the inputs and outputs that the heads of `glyphline.models` run."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from glyphline.training.networks.ctc import CTCHead
from glyphline.training.networks.decoder import StepDecoder
from glyphline.training.networks.encoder import StripEncoder
from glyphline.training.networks.masking import valid_mask
from glyphline.training.networks.onnx_recurrent import replace_recurrent


def exporting(encoder: StripEncoder) -> StripEncoder:
    """Returns a copy of an encoder whose recurrent layers export as ONNX operators."""
    encoder = copy.deepcopy(encoder).eval()
    replace_recurrent(encoder.recurrent)
    return encoder


class CTCGraph(nn.Module):
    """`network.onnx`: images and widths to log-probabilities and frame counts."""

    def __init__(self, encoder: StripEncoder, head: CTCHead) -> None:
        super().__init__()
        self.encoder = exporting(encoder)
        self.head = head

    def forward(self, images: Tensor, widths: Tensor) -> tuple[Tensor, Tensor]:
        """Maps `(batch, 1, height, width)` uint8 and `(batch,)` to `(batch, frames, symbols)` and `(batch,)`."""
        log_probabilities, lengths = self.head(*self.encoder(images, widths))
        return log_probabilities, lengths


class EncoderGraph(nn.Module):
    """`encoder.onnx`: images and widths to what the decoder starts with.

    A head that looks at frames is given memory, keys, frame counts and its initial state; any other, frame counts and
    its initial state.
    """

    def __init__(self, encoder: StripEncoder, head: StepDecoder) -> None:
        super().__init__()
        self.encoder = exporting(encoder)
        self.head = head

    def forward(self, images: Tensor, widths: Tensor) -> tuple[Tensor, ...]:
        """Maps `(batch, 1, height, width)` uint8 and `(batch,)` to the decoder's inputs."""
        memory, lengths = self.encoder(images, widths)
        keys, state = self.head.begin(memory, lengths)
        frames = (lengths,) if keys is None else (memory, keys, lengths)
        return (*frames, *(tensor + 0 for tensor in state))  # no two outputs may be one tensor


class FrameStepGraph(nn.Module):
    """`decoder_step.onnx` of a head that looks at frames: one symbol a row; rows are independent."""

    def __init__(self, head: StepDecoder) -> None:
        super().__init__()
        self.head = head

    def forward(
        self, symbols: Tensor, memory: Tensor, keys: Tensor, lengths: Tensor, state: list[Tensor]
    ) -> tuple[Tensor, ...]:
        """Maps last symbols `(rows,)`, what the encoder gave and the state to what one step gives."""
        mask = valid_mask(lengths, memory.shape[1])
        scores, attention, following = self.head.step(symbols, memory, keys, mask, state)
        assert attention is not None
        return (torch.log_softmax(scores, dim=-1), attention, *(tensor + 0 for tensor in following))


class VectorStepGraph(nn.Module):
    """`decoder_step.onnx` of a head that does not look at frames: its state is all that it has of the strip."""

    def __init__(self, head: StepDecoder) -> None:
        super().__init__()
        self.head = head

    def forward(self, symbols: Tensor, state: list[Tensor]) -> tuple[Tensor, ...]:
        """Maps last symbols `(rows,)` and the state to log-probabilities `(rows, symbols)` and the next state."""
        scores, _, following = self.head.step(symbols, None, None, None, state)
        return (torch.log_softmax(scores, dim=-1), *(tensor + 0 for tensor in following))
