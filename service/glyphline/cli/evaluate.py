"""`glyphline evaluate`: measures a model on data sets whose texts are known."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glyphline.cli.exit_codes import CommandError
from glyphline.cli.group import command_as_given
from glyphline.cli.guides import (
    GuideArguments,
    LanguageModelOption,
    LanguageModelWeightOption,
    LengthBonusOption,
    LexiconOption,
    SeveralWordsOption,
    tell_left_out,
)
from glyphline.cli.options import (
    BeamWidthOption,
    DataRootOption,
    DecoderOption,
    PrecisionName,
    PrecisionOption,
    ProviderName,
    ProviderOption,
    RepositoryOption,
    decoding_options,
)
from glyphline.cli.selection import find_bundle
from glyphline.cli.stopping import stoppable
from glyphline.cli.training_room import training_room

if TYPE_CHECKING:
    from glyphline.training.report.figures import Figures

EXAMPLES = """\b
Examples:
  glyphline evaluate tests/data/strips
  glyphline evaluate mnist-1-8 mnist-9-16 registers meters blank --data-root data/
  glyphline evaluate scans/ --model models/digits/2 --decoder beam --report report/
  glyphline evaluate scans/ --model digits --model digits-ctc --report report/
  glyphline evaluate mine.toml:held_out --model models/mine/1 --report report/
  glyphline evaluate scans/ --model words --lexicon streets.txt

\b
A data set is a folder or file of strips in any format that training reads (docs/training.md), CONFIG.toml:SET for a
validation set of a configuration, or a name of glyphline/training/configs/evaluation.toml; the pictures of the last two
are below --data-root. Exact is the share of images read without any error; CER is all edits over all true characters;
ranges are 95 % intervals. "Straight through" is the share of images whose confidence is so high that all of them
together are 99.9 % exact. Prints a table on a terminal, elsewhere the same columns with tabs, headings first.

\b
--report writes report.html, one file to look at in a browser: confusions, accuracy by length and width, whether the
confidence can be believed and which threshold to set, and the worst mistakes as pictures; and report.json with the
same figures. Of several models it also says how sure their difference is.
"""


def evaluate(
    context: typer.Context,
    *,
    data_sets: Annotated[list[str], typer.Argument(metavar="DATASET", help="Data sets.", show_default=False)],
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME|FOLDER",
            help="Name of a model, or the folder of a bundle; again for a second one to compare.  [default: digits]",
        ),
    ] = None,
    versions: Annotated[
        list[int] | None,
        typer.Option(
            "--model-version",
            metavar="N",
            help="Version of the model; of several models, once for each in their order.  [default: the latest]",
        ),
    ] = None,
    repository: RepositoryOption = None,
    data_root: DataRootOption = Path("data"),
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Read at most N images of each set.", show_default=False)
    ] = None,
    decoder: DecoderOption = None,
    beam_width: BeamWidthOption = None,
    lexicon: LexiconOption = None,
    several_words: SeveralWordsOption = False,
    language_model: LanguageModelOption = None,
    language_model_weight: LanguageModelWeightOption = None,
    length_bonus: LengthBonusOption = None,
    provider: ProviderOption = ProviderName.ONNXRUNTIME,
    precision: PrecisionOption = PrecisionName.FP32,
    report: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write report.html and report.json here.", show_default=False),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Write the figures into the bundle's manifest and model card.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a model and data set.")] = False,
) -> None:
    """Measures models: exact share and character error rate, with their uncertainty."""
    if record and precision is not PrecisionName.FP32:
        raise CommandError("--record is for fp32: the figures of a bundle are those of its usual networks")
    guides = GuideArguments(lexicon, several_words, language_model, language_model_weight, length_bonus)
    options = guides.add_to(decoding_options(decoder, beam_width))
    options.validate()
    if record and options.guided:
        raise CommandError("--record is for a bundle by itself: leave --lexicon and --language-model out")
    bundles = [find_bundle(model, version, repository) for model, version in _pair(models, versions)]
    for bundle in bundles:
        tell_left_out(options, bundle.manifest, "evaluate")
    folders = [str(bundle.path) for bundle in bundles]
    with stoppable(lambda: "no report was written, and no model card changed"), training_room():
        from glyphline.training.evaluate import evaluate_command

        results = evaluate_command(
            folders,
            data_sets,
            data_root,
            options,
            limit,
            report,
            record,
            provider.value,
            precision.value,
            command_as_given(context),
        )
    if report is not None:
        print(f"{report / 'report.html'} is the page to look at", file=sys.stderr)
    if as_json:
        for result in results:
            print(json.dumps(asdict(result), ensure_ascii=False))
    elif sys.stdout.isatty():
        _print_table(results)
    else:
        for line in (_HEADINGS, *map(_columns, results)):
            print("\t".join(line))


def _pair(models: list[str] | None, versions: list[int] | None) -> list[tuple[str | None, int | None]]:
    """Gives each model its version.

    Raises:
        CommandError: If there are versions, but not one for each.
    """
    names: list[str | None] = [*models] if models else [None]
    if versions and len(versions) != len(names):
        raise CommandError(
            f"{len(names)} models and {len(versions)} versions: give --model-version for each or for none"
        )
    return [(name, versions[place] if versions else None) for place, name in enumerate(names)]


_HEADINGS = (
    "Data set",
    "Model",
    "Images",
    "Exact",
    "CER",
    "Inserted / deleted / substituted",
    "Straight through",
    "Images/s",
)


def _columns(result: Figures) -> tuple[str, ...]:
    (low, high), (cer_low, cer_high) = result.exact_interval, result.cer_interval
    return (
        result.data_set,
        result.model,
        f"{result.images:,}",
        f"{result.exact:.2%} ({low:.2%} to {high:.2%})",
        f"{result.cer:.2%} ({cer_low:.2%} to {cer_high:.2%})",
        f"{result.insertions} / {result.deletions} / {result.substitutions}",
        f"{result.coverage:.1%}",
        f"{result.images / result.seconds:,.0f}" if result.seconds else "",
    )


def _print_table(results: list[Figures]) -> None:
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    first, *others = _HEADINGS
    table = Table(Column(first, overflow="fold"), *others)
    for result in results:
        table.add_row(*(Text(value) for value in _columns(result)))
    console = Console()
    console.print(table)
    for result in results:
        lengths = ", ".join(f"{each.label}: {each.exact:.1%} of {each.images:,}" for each in result.by_length)
        console.print(Text(f"{result.model} on {result.data_set}, exact by length of the text: {lengths}"))
