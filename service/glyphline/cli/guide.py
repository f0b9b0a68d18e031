"""`glyphline guide`: gives a bundle a language model of its own, if it reads better with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from glyphline.cli.exit_codes import CommandError
from glyphline.cli.options import DataRootOption
from glyphline.cli.stopping import stoppable
from glyphline.cli.training_room import training_room

EXAMPLES = """\b
Examples:
  glyphline data texts words.toml --data-root data/ --count 800000 --output texts.txt
  glyphline language-model texts.txt --order 5 --minimum-count 6 --decimals 2 --output words.arpa.gz
  glyphline guide models/words/2 words.arpa.gz --data-root data/

\b
Reads labelled strips with and without the language model; the bundle changes only if the character error rate falls.
From then on whoever leaves the decoder to the bundle reads with it, here and on servers; `--decoder greedy` and
`--decoder beam` do without, and are faster. Figures recorded before are dropped: `glyphline evaluate … --record` again.
"""


def guide(
    *,
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="Folder of a bundle, with its manifest.json.")],
    language_model: Annotated[
        Path, typer.Argument(metavar="MODEL.arpa", help="The language model; it may be packed by gzip.")
    ],
    data_sets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATASET",
            help="Strips to measure on.  [default: the validation sets of the run]",
            show_default=False,
        ),
    ] = None,
    data_root: DataRootOption = Path("data"),
    weight: Annotated[
        float, typer.Option(metavar="X", min=0.0, max=10.0, help="What the model counts for, beside the image's 1.")
    ] = 0.3,
    length_bonus: Annotated[
        float,
        typer.Option(
            metavar="X",
            min=-10.0,
            max=10.0,
            help="What a character adds to the score: language models make texts too short.",
        ),
    ] = 0.6,
    beam_width: Annotated[int, typer.Option(metavar="N", min=2, max=256, help="Texts that the search keeps.")] = 10,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Read at most N strips.")] = 4000,
) -> None:
    """Gives a bundle a language model that guides its search. Refused if it reads no better with it."""
    if not (bundle / "manifest.json").is_file():
        raise CommandError(f"{bundle}: no bundle here; it is a folder <name>/<version> with a manifest.json")
    if not language_model.is_file():
        raise CommandError(f"{language_model}: no such file; `glyphline language-model` makes one")
    with stoppable(lambda: "the bundle is as it was"), training_room():
        from glyphline.training.guide import guide as take_up

        result = take_up(
            bundle,
            language_model,
            data_sets or [],
            data_root,
            weight=weight,
            length_bonus=length_bonus,
            beam_width=beam_width,
            most=limit,
        )
    print(
        f"{bundle}: with the language model the character error rate is {result.cer:.3%} on {result.images:,} strips, "
        f"without {result.cer_without:.3%}"
    )
