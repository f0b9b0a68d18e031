"""Configuration of the training loop."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from glyphline.training.config.base import Section


class LoopConfig(Section):
    """How long and how the network is trained.

    Attributes:
        epochs: Number of epochs; the learning rate's schedule spans them all.
        strips_per_epoch: Strips drawn for an epoch, between two checkpoints.
        batch_columns: Columns of pixels in a batch, over all of its strips; short strips make large batches.
        learning_rate: Peak learning rate of AdamW.
        warm_up: Share of the run over which the rate rises.
        decay: Share of the run, at its end, over which the rate falls to a hundredth.
        weight_decay: Weight decay of matrices; norms and biases have none.
        clip: Greatest norm of the gradient.
        ctc_weight: Weight of the CTC loss when both heads are trained, in [0, 1]; the attention head has the rest.
        label_smoothing: Label smoothing of the attention head.
        input_masking: Share of the decoder's input symbols replaced by random ones, against exposure bias.
        average_decay: Decay of the running average of the weights, which is what is validated and exported.
        patience: Validations without a better error rate before the run stops; 0 never stops early.
        validate_every: Epochs between validations.
        workers: Processes that make strips.
        precision: `bf16` where the processor has it, else `fp32`; `auto` decides.
    """

    epochs: int = Field(default=20, ge=1)
    strips_per_epoch: int = Field(default=51_200, ge=64)
    batch_columns: int = Field(default=12_288, ge=256)
    learning_rate: float = Field(default=1e-3, gt=0)
    warm_up: float = Field(default=0.03, ge=0, lt=1)
    decay: float = Field(default=0.4, ge=0, le=1)
    weight_decay: float = Field(default=1e-2, ge=0)
    clip: float = Field(default=2.0, gt=0)
    ctc_weight: float = Field(default=0.5, ge=0, le=1)
    label_smoothing: float = Field(default=0.02, ge=0, lt=1)
    input_masking: float = Field(default=0.05, ge=0, lt=1)
    average_decay: float = Field(default=0.999, ge=0, lt=1)
    patience: int = Field(default=0, ge=0)
    validate_every: int = Field(default=2, ge=1)
    workers: int = Field(default=1, ge=0)
    precision: Literal["auto", "bf16", "fp32"] = "auto"
