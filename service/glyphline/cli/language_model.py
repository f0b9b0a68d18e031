"""`glyphline language-model`: makes a character language model of texts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from glyphline.cli.exit_codes import CommandError

STANDARD_STREAM = "-"

EXAMPLES = """\b
Examples:
  glyphline language-model streets.txt --output streets.arpa
  glyphline language-model letters/*.txt --order 5 --minimum-count 2 --output letters.arpa.gz
  cut -f 2 labels.tsv | glyphline language-model - --test held-out.txt --output labels.arpa

\b
Then:
  glyphline recognize sign.png --model words --language-model streets.arpa
  glyphline serve --language-model streets=streets.arpa

\b
A file holds one text a line, in UTF-8: words for strips of words, lines for strips of lines, written as the strips
write them (capitals, accents, punctuation), for what is rare here will be read rarely. Some thousand words are enough
to help; a text that occurs often should stand there as often. Never use the texts of what you will measure on. --test
tells how well the model foretells other texts: the fewer bits a character, the better.

\b
The model is written as an ARPA file, Witten-Bell smoothed. Those of other tools (KenLM, SRILM) work too, if each of
their tokens is one character, with <space> or ▁ for the space.
"""


def language_model(
    *,
    files: Annotated[list[str], typer.Argument(metavar="TEXT", help="Files of one text a line; - is standard input.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT.arpa", help="The file to write; .gz packs it.")
    ],
    order: Annotated[
        int, typer.Option(metavar="N", min=1, max=10, help="Foretell a character from the N-1 before it.")
    ] = 6,
    minimum_count: Annotated[
        int, typer.Option(metavar="N", min=1, help="Leave out sequences of 3 or more that occur less often.")
    ] = 1,
    decimals: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=2,
            max=7,
            help="Decimals of each logarithm: 2 make a packed file half as large.  [default: 7 digits]",
            show_default=False,
        ),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Other texts to measure the model on, one a line.", show_default=False),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the output if it exists.")] = False,
) -> None:
    """Makes a character language model, for --language-model of recognize, transcribe and serve."""
    from glyphline.models.decoding.language_model import CharacterModel
    from glyphline.training.language_model import bits_per_character, count_and_smooth, write_arpa

    if output.exists() and not overwrite:
        raise CommandError(f"{output} exists: --overwrite replaces it")
    if files.count(STANDARD_STREAM) > 1:
        raise CommandError("- can be given once only")
    tests = [] if test is None else [line for line in (" ".join(line.split()) for line in _lines(str(test))) if line]
    ngrams = count_and_smooth((line for file in files for line in _lines(file)), order, minimum_count)
    output.parent.mkdir(parents=True, exist_ok=True)
    write_arpa(ngrams, output, decimals)
    counts = " + ".join(f"{count:,}" for count in ngrams.counts)
    print(f"{output}: {counts} n-grams of {ngrams.texts:,} texts, {len(ngrams.tokens) - 3} characters")
    if tests:
        model = CharacterModel.read(output)
        scores = [model.log_probability(text) for text in tests]
        bits = bits_per_character(scores, sum(len(text) + 1 for text in tests))
        print(f"{test}: {bits:.3f} bits a character, of {len(tests):,} texts")


def _lines(file: str) -> Iterator[str]:
    """Yields the lines of a file.

    Raises:
        CommandError: If it is no text file in UTF-8.
    """
    try:
        content = sys.stdin.buffer.read() if file == STANDARD_STREAM else Path(file).read_bytes()
        yield from content.decode("utf-8-sig").split("\n")
    except FileNotFoundError as error:
        raise CommandError(f"{file}: no such file") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{file}: not a text file in UTF-8: {error.reason}") from error
