"""The lexicons and language models that a server holds by name, so that they need not travel with requests."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from glyphline.models.alphabet import Alphabet
from glyphline.models.decoding import CharacterModel, DecodingOptions, Lexicon
from glyphline.models.errors import OptionsError
from glyphline.service.errors import SettingError, UnknownGuideError

__all__ = ["Guides", "load_guides"]

_SHOWN = 100  # characters of a caller's name that a message repeats


@dataclass(frozen=True, slots=True, eq=False)
class Guides:
    """Lexicons and language models by name.

    Attributes:
        lexicons: The lexicons.
        language_models: The language models.
    """

    lexicons: Mapping[str, Lexicon] = field(default_factory=dict)
    language_models: Mapping[str, CharacterModel] = field(default_factory=dict)

    def fill(self, options: DecodingOptions) -> DecodingOptions:
        """Puts what is named in the place of its name.

        Raises:
            UnknownGuideError: If nothing has the name; the message lists the names there are.
        """
        if isinstance(options.lexicon, str):
            lexicon = self.lexicons.get(options.lexicon)
            if lexicon is None:
                raise _unknown("lexicon", options.lexicon, self.lexicons)
            options = dataclasses.replace(options, lexicon=lexicon)
        if isinstance(options.language_model, str):
            model = self.language_models.get(options.language_model)
            if model is None:
                raise _unknown("language model", options.language_model, self.language_models)
            options = dataclasses.replace(options, language_model=model)
        return options

    def bind(self, alphabet: Alphabet) -> None:
        """Makes ready for an alphabet what suits it, so that no request has to wait for it."""
        for lexicon in self.lexicons.values():
            if lexicon.fits(alphabet):
                lexicon.bind(alphabet)
        for model in self.language_models.values():
            if model.fits(alphabet):
                model.bind(alphabet)


def load_guides(lexicons: Mapping[str, Path], language_models: Mapping[str, Path]) -> Guides:
    """Reads the files of lexicons and language models.

    Args:
        lexicons: Files of one word a line, by the name that requests give.
        language_models: ARPA files.

    Raises:
        SettingError: If one cannot be read; the message says which and why.
    """
    try:
        return Guides(
            {name: Lexicon.read(path) for name, path in lexicons.items()},
            {name: CharacterModel.read(path) for name, path in language_models.items()},
        )
    except OptionsError as error:
        raise SettingError(f"{error.field.replace('_', ' ')} {error.message}") from error


def _unknown(kind: str, name: str, there: Mapping[str, object]) -> UnknownGuideError:
    listed = f"it has {', '.join(sorted(there))}" if there else "it has none"
    return UnknownGuideError(kind, name[:_SHOWN], f"this server has no {kind} {name[:_SHOWN]!r}; {listed}")
