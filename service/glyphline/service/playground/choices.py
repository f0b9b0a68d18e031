"""What a person chooses on the page, and the decoding options it comes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glyphline.models.decoding import DecodingOptions
from glyphline.models.manifest import DecoderDefaults

__all__ = [
    "AUTOMATIC",
    "BEAM",
    "DECODERS",
    "GREEDY",
    "Choices",
    "Model",
    "describe_search",
    "model_for",
]

AUTOMATIC, GREEDY, BEAM = "Automatic", "Greedy", "Beam search"
DECODERS = (AUTOMATIC, GREEDY, BEAM)
_BEAM_WIDTH = 10


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can be chosen.

    Attributes:
        name: Its name.
        version: Its version.
        task: What it reads.
        decoder: How it searches if nothing else is asked.
    """

    name: str
    version: int
    task: str
    decoder: DecoderDefaults

    @property
    def label(self) -> str:
        """What it is called on the page."""
        return f"{self.name} {self.version}"


def model_for(task: str | None, chosen: Model, models: Sequence[Model]) -> Model:
    """Returns what should read a picture: the model that is chosen, unless only others are made for its task."""
    fitting = [model for model in models if model.task == task]
    return fitting[0] if fitting and chosen not in fitting else chosen


@dataclass(frozen=True, slots=True)
class Choices:
    """What stands in the fields of the page.

    Attributes:
        decoder: One of `DECODERS`.
        beam_width: Texts that the beam search keeps.
        alternatives: Most texts to show.
        allowed: The only characters to read; empty for all.
    """

    decoder: str = AUTOMATIC
    beam_width: int = _BEAM_WIDTH
    alternatives: int = 3
    allowed: str = ""

    def options(self, defaults: DecoderDefaults) -> DecodingOptions:
        """Returns the options, with the details of characters.

        Automatic is the model's own search, and its own language model, if that gives as many alternatives as are
        asked for; else it is a beam search that does. The greedy search follows one text only, whatever is asked.

        Args:
            defaults: The model's own search.

        Raises:
            OptionsError: If a choice cannot be honoured by any model.
        """
        searches = self.decoder == BEAM
        width = self.beam_width
        if self.decoder == AUTOMATIC:
            own_width = defaults.beam_width if defaults.name == "beam" else 1
            searches = self.alternatives > own_width
            width = max(_BEAM_WIDTH, self.alternatives)
        named = "beam" if searches else "greedy" if self.decoder == GREEDY else None
        options = DecodingOptions(
            decoder=named,  # type: ignore[arg-type]  # mypy takes it for any str
            beam_width=width if searches else _BEAM_WIDTH,
            max_alternatives=1 if self.decoder == GREEDY else self.alternatives,
            allowed_characters=self.allowed or None,
            token_details=True,
        )
        options.validate()
        return options


def describe_search(options: DecodingOptions, defaults: DecoderDefaults) -> str:
    """Says how options have a model search."""
    width = options.width(defaults)
    if width == 1:
        return "greedy"
    guided = " with its language model" if options.leaves_guide_to(defaults) else ""
    return f"beam search of {width}{guided}"
