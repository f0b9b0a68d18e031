"""Configuration of the network."""

from __future__ import annotations

from typing import Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from glyphline.training.config.base import Section

DecoderHeadName = Literal["attention", "flatten", "image-first", "pooled-state"]
HeadName = Literal["ctc", DecoderHeadName]
CellName = Literal["rnn", "gru", "lstm"]
EncoderName = Literal["cnn", "mobilenet_v3_small", "mobilenet_v3_large", "resnet18", "resnet34"]

FRAME_COLUMNS = 4
"""Columns of pixels a frame of any encoder."""


class NetworkConfig(Section):
    """Sizes and kinds of the network.

    Attributes:
        heads: `ctc`, one of `attention`, `flatten`, `image-first` and `pooled-state`, or `ctc` and one of them trained
            together on one encoder.
        encoder: `cnn`, made for strips, or a network of torchvision, whose own sizes then count.
        channels: Channels of the four convolutional blocks of `cnn`.
        residual_blocks: Residual blocks of `cnn` after the third convolutional block, and again after the fourth.
        weigh_rows: Whether a column's features of `cnn` also tell where in the strip's height they stand.
        column_maximum: Whether they are the maximum over the rows; without it, `weigh_rows` alone collapses the height,
            as the flattened columns of CRNN do.
        encoder_cell: Recurrent cell of the encoder.
        encoder_size: Its state size in each direction.
        encoder_layers: Number of its layers; 0 is an encoder of convolutions alone. If not given: 0 where there is an
            attention head, since a recurrent encoder tells it how far the ends are, which misleads it on strips
            longer than any it was trained on; 2 elsewhere.
        bidirectional: Whether its layers read backwards, too.
        frames_per_step: CTC output frames for each encoder frame of four columns.
        ctc_shortcut: Whether a second CTC head stands on the convolutions while training (`loop.shortcut_weight`).
        decoder_cell: Recurrent cell of the step-wise head.
        decoder_size: Its state size.
        decoder_layers: Number of its layers.
        carries_state: Whether the attention head carries its cells' state from symbol to symbol. Without it, as by
            default, no length of a strip is new to it, and nothing of the language is known to it.
        attention_size: Inner size of the attention.
        location_filters: Filters over where the attention head looked before, which keep its place on long strips; 0
            looks at the frames' content alone (Bahdanau).
        attention_reach: Frames from the last place within which it looks next; 0 looks anywhere.
        embedding_size: Size of the step-wise head's symbol embedding, and of Show and Tell's image vector.
        image_every_step: Whether an `image-first` head is shown the image vector at every step (LRCN) or only before
            the first (Show and Tell).
        canvas_width: Width of the `flatten` head's canvas in normalised pixels, a multiple of four; no strip may be
            wider, so `image.max_width` is at most that.
        dropout: Share of features zeroed while training.
        gate_bias: Initial bias of forget and update gates.
    """

    heads: tuple[HeadName, ...] = ("ctc", "attention")
    encoder: EncoderName = "cnn"
    channels: tuple[int, int, int, int] = (32, 64, 128, 192)
    residual_blocks: int = Field(default=0, ge=0)
    weigh_rows: bool = False
    column_maximum: bool = True
    encoder_cell: CellName = "lstm"
    encoder_size: int = Field(default=128, ge=1)
    encoder_layers: int = Field(default=2, ge=0)  # with an attention head: see _choose_layers
    bidirectional: bool = True
    frames_per_step: int = Field(default=2, ge=1, le=4)
    ctc_shortcut: bool = False
    decoder_cell: CellName = "gru"
    decoder_size: int = Field(default=192, ge=1)
    decoder_layers: int = Field(default=1, ge=1)
    carries_state: bool = False
    attention_size: int = Field(default=96, ge=1)
    location_filters: int = Field(default=8, ge=0)
    attention_reach: int = Field(default=16, ge=0)
    embedding_size: int = Field(default=32, ge=1)
    image_every_step: bool = False
    canvas_width: int = Field(default=0, ge=0, multiple_of=FRAME_COLUMNS)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    gate_bias: float = 1.0

    @property
    def decoder_head(self) -> DecoderHeadName | None:
        """The step-wise head, where there is one."""
        for head in self.heads:
            if head != "ctc":
                return head
        return None

    @model_validator(mode="before")
    @classmethod
    def _choose_layers(cls, values: object) -> object:
        if isinstance(values, dict) and "attention" in values.get("heads", cls.model_fields["heads"].default):
            return {"encoder_layers": 0} | values
        return values

    @field_validator("heads")
    @classmethod
    def _check_heads(cls, heads: tuple[HeadName, ...]) -> tuple[HeadName, ...]:
        if not heads:
            raise ValueError(f"name at least one head: {', '.join(get_args(HeadName)[:1] + get_args(DecoderHeadName))}")
        if len(set(heads)) != len(heads):
            raise ValueError("a head is named twice: name each once")
        decoders = [head for head in heads if head != "ctc"]
        if len(decoders) > 1:
            raise ValueError(
                f"{' and '.join(decoders)} are both step-wise heads: keep one of them, alone or beside ctc, "
                "and train the other in a run of its own"
            )
        return heads

    @model_validator(mode="after")
    def _check_fit(self) -> Self:
        head = self.decoder_head
        if head == "flatten" and not self.canvas_width:
            raise ValueError(
                "the flatten head reads a canvas of fixed width: set network.canvas_width to the width of the widest "
                "strip at image.height (a multiple of four), and image.max_width to the same"
            )
        if head != "flatten" and self.canvas_width:
            raise ValueError("canvas_width is of the flatten head alone: leave it out, as other heads read any width")
        if self.image_every_step and head != "image-first":
            raise ValueError('image_every_step is of the image-first head alone: leave it out, or name "image-first"')
        if head == "pooled-state" and not self.encoder_layers:
            raise ValueError(
                "the pooled-state head starts from the encoder's last state: set encoder_layers to at least 1"
            )
        if self.encoder != "cnn" and (self.residual_blocks or self.weigh_rows or not self.column_maximum):
            raise ValueError(
                f'residual_blocks, weigh_rows and column_maximum are of the encoder "cnn", not of {self.encoder}'
            )
        if not self.column_maximum and not self.weigh_rows:
            raise ValueError("nothing collapses the height: set weigh_rows = true, or leave column_maximum out")
        return self
