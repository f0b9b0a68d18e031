"""Configuration of the training loop."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from glyphline.training.config.base import Section

ScheduleName = Literal["plateau-cosine", "cosine", "one-cycle"]
PrecisionName = Literal["auto", "bf16", "fp16", "fp32"]


class LoopConfig(Section):
    """How long and how the network is trained.

    Attributes:
        epochs: Number of epochs; the learning rate's schedule spans them all.
        strips_per_epoch: Strips drawn for an epoch, between two checkpoints; all processes of a run together.
        batch_columns: Columns of pixels in a batch, over all of its strips; short strips make large batches. Each
            process has batches of this size.
        learning_rate: Peak learning rate of AdamW; `glyphline train --find-rate` suggests one.
        schedule: How the rate moves. `plateau-cosine`: up over `warm_up`, level, down a cosine over `decay`. `cosine`:
            up over `warm_up`, then down a cosine all the way. `one-cycle`: up a cosine from 1/25 over `warm_up` (0.3 is
            usual), then down a cosine to almost nothing (Smith and Topin 2018, "Super-Convergence").
        warm_up: Share of the run over which the rate rises.
        decay: Share of the run, at its end, over which the rate of `plateau-cosine` falls to a hundredth.
        weight_decay: Weight decay of matrices; norms and biases have none.
        clip: Greatest norm of the gradient, over all weights together.
        ctc_weight: Weight of the CTC loss when both heads are trained, in [0, 1]; the step-wise head has the rest.
        shortcut_weight: Weight of the CTC shortcut's loss, where the network has one; it is added to the others'.
        label_smoothing: Label smoothing of the step-wise head.
        input_masking: Share of the step-wise head's input symbols replaced by random ones, against exposure bias.
        sampling: Share of its input symbols replaced, in the end, by what the head itself would have written
            (scheduled sampling); 0 is teacher forcing throughout.
        sampling_ramp: Shares of the run between which that share rises from 0 in a straight line.
        restarts: Share of its steps before which the attention head's cells start anew, so that it learns to keep its
            place by what it sees and not by counting, and reads strips longer than any that it was trained on.
        cut_steps: Symbols after which the step-wise head's state is carried on without its gradient (truncated
            back-propagation through time); 0 never cuts it.
        cut_frames: Frames of four columns after which the same is done in the encoder's recurrent layers. For very long
            strips: it bounds how far back a gradient reaches.
        average_decay: Decay of the running average of the weights, which is what is validated and exported.
        patience: Validations without a better error rate before the run stops; 0 never stops early.
        validate_every: Epochs between validations.
        workers: Processes that make strips, for each process that trains.
        device: `cuda` or `cpu`; `auto` takes the GPU where there is one.
        precision: Of convolutions and recurrences; sums and losses are always in fp32. `auto` is `bf16` where the
            processor multiplies it, `fp16` on GPUs that do not, else `fp32`. `fp16` needs a GPU.
        channels_last: Whether pictures lie in memory with their channels last, which convolutions are faster on.
        log_every: Batches between two rows of the logs by step.
    """

    epochs: int = Field(default=20, ge=1)
    strips_per_epoch: int = Field(default=51_200, ge=64)
    batch_columns: int = Field(default=12_288, ge=256)
    learning_rate: float = Field(default=1e-3, gt=0)
    schedule: ScheduleName = "plateau-cosine"
    warm_up: float = Field(default=0.03, ge=0, lt=1)
    decay: float = Field(default=0.4, ge=0, le=1)
    weight_decay: float = Field(default=1e-2, ge=0)
    clip: float = Field(default=2.0, gt=0)
    ctc_weight: float = Field(default=0.5, ge=0, le=1)
    shortcut_weight: float = Field(default=0.1, gt=0)
    label_smoothing: float = Field(default=0.02, ge=0, lt=1)
    input_masking: float = Field(default=0.05, ge=0, lt=1)
    sampling: float = Field(default=0.0, ge=0, le=1)
    sampling_ramp: tuple[float, float] = (0.0, 0.5)
    restarts: float = Field(default=0.0, ge=0, lt=1)
    cut_steps: int = Field(default=0, ge=0)
    cut_frames: int = Field(default=0, ge=0)
    average_decay: float = Field(default=0.999, ge=0, lt=1)
    patience: int = Field(default=0, ge=0)
    validate_every: int = Field(default=2, ge=1)
    workers: int = Field(default=1, ge=0)
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: PrecisionName = "auto"
    channels_last: bool = True
    log_every: int = Field(default=20, ge=1)

    @model_validator(mode="after")
    def _check_ramp(self) -> Self:
        begin, end = self.sampling_ramp
        if not 0 <= begin <= end <= 1:
            raise ValueError(f"sampling_ramp = [{begin}, {end}]: two shares of the run, the first not above the second")
        return self
