"""The options for a lexicon and a language model, which several commands share."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glyphline.cli.exit_codes import CommandError
from glyphline.cli.group import tell

if TYPE_CHECKING:
    from glyphline.models.decoding import DecodingOptions
    from glyphline.models.manifest import Manifest

LexiconOption = Annotated[
    str | None,
    typer.Option("--lexicon", metavar="FILE", help="Read only words of this list, one a line.", show_default=False),
]
SeveralWordsOption = Annotated[
    bool,
    typer.Option(
        "--several-words", help="With --lexicon: a text may be several of its words, with single spaces between."
    ),
]
LanguageModelOption = Annotated[
    str | None,
    typer.Option(
        "--language-model",
        metavar="FILE",
        help="Prefer texts that this ARPA file of characters finds likely (`glyphline language-model` makes one).",
        show_default=False,
    ),
]
LanguageModelWeightOption = Annotated[
    float | None,
    typer.Option(
        "--language-model-weight",
        metavar="X",
        help="What the language model counts for, beside the image's 1.  [default: 0.3]",
        show_default=False,
    ),
]
LengthBonusOption = Annotated[
    float | None,
    typer.Option(
        "--length-bonus",
        metavar="X",
        help="What a character adds to the score: more for longer texts, where a language model makes them too short."
        "  [default: 0]",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class GuideArguments:
    """What was given on the command line.

    Attributes:
        lexicon: A file; with a server, a file or the name of a lexicon that it holds.
        several_words: Whether a text may be several words of it.
        language_model: A file; with a server, the name of a language model that it holds.
        weight: Of the language model; None for the default.
        bonus: For each character; None for the default.
    """

    lexicon: str | None = None
    several_words: bool = False
    language_model: str | None = None
    weight: float | None = None
    bonus: float | None = None

    def add_to(self, options: DecodingOptions, *, server: bool = False) -> DecodingOptions:
        """Reads the files and puts what they hold into decoding options.

        Args:
            options: All other options.
            server: Whether a server reads the images.

        Raises:
            CommandError: If an option needs another that was not given, or a file cannot be sent.
            OptionsError: If a file cannot be read.
        """
        from glyphline.models.decoding import CharacterModel, Lexicon

        if self.weight is not None and self.language_model is None:
            raise CommandError("--language-model-weight needs --language-model")
        if self.several_words and self.lexicon is None:
            raise CommandError("--several-words needs --lexicon")
        if self.bonus is not None and self.lexicon is None and self.language_model is None:
            raise CommandError("--length-bonus needs --lexicon or --language-model")
        lexicon: Lexicon | str | None = self.lexicon
        if self.lexicon is not None and (not server or _is_file(self.lexicon)):
            lexicon = Lexicon.read(self.lexicon)
        model: CharacterModel | str | None = self.language_model
        if self.language_model is not None and server and _is_file(self.language_model):
            raise CommandError(
                f"--language-model {model}: a file cannot be sent; start the server with --language-model NAME={model},"
                " and give the NAME here"
            )
        if self.language_model is not None and not server:
            model = CharacterModel.read(self.language_model)
        return dataclasses.replace(
            options,
            lexicon=lexicon,
            several_words=self.several_words,
            language_model=model,
            language_model_weight=options.language_model_weight if self.weight is None else self.weight,
            length_bonus=options.length_bonus if self.bonus is None else self.bonus,
        )


def tell_left_out(options: DecodingOptions, manifest: Manifest, command: str) -> None:
    """Says which words of a lexicon a model can't write."""
    from glyphline.models.alphabet import Alphabet
    from glyphline.models.decoding import Lexicon

    if isinstance(options.lexicon, Lexicon):
        lexicon = options.lexicon.parts() if options.several_words else options.lexicon
        warning = lexicon.bind(Alphabet(manifest.alphabet)).warning()
        if warning is not None:
            tell(warning, command)


def _is_file(name: str) -> bool:
    return os.sep in name or Path(name).is_file()
