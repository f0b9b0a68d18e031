"""Configuration of how strips of text look."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from pydantic import Field, model_validator

from glyphline.training.config.base import Section
from glyphline.training.effects.look import Look


class EffectsConfig(Section):
    """What befalls strips of text; see `glyphline.training.effects.Look`. What is not given is the style's."""

    clean: float | None = Field(default=None, ge=0, le=1)
    least_size: float | None = Field(default=None, gt=0)
    most_size: float | None = Field(default=None, gt=0)
    low_resolution: float | None = Field(default=None, ge=0, le=1)
    enlarged: float | None = Field(default=None, ge=0, le=1)
    spacing: float | None = Field(default=None, ge=0, le=1)
    squeeze: float | None = Field(default=None, ge=0)
    small_caps: float | None = Field(default=None, ge=0, le=1)
    uneven: float | None = Field(default=None, ge=0, le=1)
    curved: float | None = Field(default=None, ge=0, le=1)
    perspective: float | None = Field(default=None, ge=0)
    weight: float | None = Field(default=None, ge=0, le=1)
    outline: float | None = Field(default=None, ge=0, le=1)
    shadow: float | None = Field(default=None, ge=0, le=1)
    relief: float | None = Field(default=None, ge=0, le=1)
    fill: float | None = Field(default=None, ge=0, le=1)
    texture: float | None = Field(default=None, ge=0, le=1)
    gradient: float | None = Field(default=None, ge=0, le=1)
    clutter: float | None = Field(default=None, ge=0, le=1)
    faint: float | None = Field(default=None, ge=0, le=1)
    least_contrast: float | None = Field(default=None, ge=0, le=1)
    dark: float | None = Field(default=None, ge=0, le=1)
    motion: float | None = Field(default=None, ge=0, le=1)
    blur: float | None = Field(default=None, ge=0, le=1)
    far_out: float | None = Field(default=None, ge=0, le=1)
    noise: float | None = Field(default=None, ge=0, le=1)
    jpeg: float | None = Field(default=None, ge=0, le=1)
    matrix: float | None = Field(default=None, ge=0, le=1)
    thermal: float | None = Field(default=None, ge=0, le=1)
    rough: float | None = Field(default=None, ge=0, le=1)
    two_tone: float | None = Field(default=None, ge=0, le=1)
    pressure: float | None = Field(default=None, ge=0, le=1)
    bleed: float | None = Field(default=None, ge=0, le=1)
    neighbours: float | None = Field(default=None, ge=0, le=1)
    cropped: float | None = Field(default=None, ge=0, le=1)

    def apply(self, style: Look) -> Look:
        """Returns a style with what is given here in its place."""
        return replace(style, **self.model_dump(exclude_none=True))

    @model_validator(mode="after")
    def _sizes_are_in_order(self) -> Self:
        if self.least_size is not None and self.most_size is not None and self.least_size > self.most_size:
            raise ValueError(f"least_size = {self.least_size} is above most_size = {self.most_size}")
        return self
