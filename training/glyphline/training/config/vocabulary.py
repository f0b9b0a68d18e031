"""Configuration of a vocabulary that is learnt from labels."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from glyphline.training.config.base import Section

VocabularyKind = Literal["characters", "subwords", "words"]


class VocabularyConfig(Section):
    """What symbols are learnt from the labels of a run's real strips, in place of an alphabet.

    Attributes:
        kind: `characters`, `subwords` (byte-pair encoding within words) or `words` (with the space before them).
        size: Greatest number of symbols; 0 takes all characters or words. Subwords need it.
    """

    kind: VocabularyKind
    size: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        if self.kind == "subwords" and not self.size:
            raise ValueError("subwords need a size: a few hundred symbols for a few thousand labels")
        return self
