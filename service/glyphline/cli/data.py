"""`glyphline data …`: checks, shows, renders and converts labelled strips, and writes a first configuration."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glyphline.cli.data_output import print_stats, print_validation
from glyphline.cli.exit_codes import CommandError, ExitCode
from glyphline.cli.group import tell
from glyphline.cli.grouped_help import PlainCommand
from glyphline.cli.options import DataRootOption
from glyphline.cli.progress import open_reporter
from glyphline.cli.training_room import training_room

if TYPE_CHECKING:
    from collections.abc import Callable

    from glyphline.training.datasets.commands.inputs import Inputs

HELP = """Checks, describes, shows, renders and converts labelled strips.

\b
  glyphline data init strips/ > strips.toml        write a first configuration from your data
  glyphline data validate strips.toml              what is wrong with it, all of it
  glyphline data preview strips.toml               what the network will see
  glyphline data stats strips/                     how many, how long, which characters
  glyphline data render fonts-only/ --fonts fonts/ --words words.txt
  glyphline data convert pages/ strips.lmdb --to lmdb

\b
A data set is a folder of pictures with labels.tsv (name, tab, text), labels.csv, labels.jsonl or metadata.jsonl;
pictures with their text beside each (x.png, x.gt.txt); LMDB in the layout of the deep-text-recognition-benchmark; pages
with PAGE or ALTO XML; WebDataset tar shards; or Parquet with a column of images. Which it is, is recognised.
"""

app = typer.Typer(name="data", help=HELP, no_args_is_help=True, rich_markup_mode=None)


class FormatName(StrEnum):
    """Formats of data sets."""

    AUTO = "auto"
    TSV = "tsv"
    CSV = "csv"
    JSONL = "jsonl"
    SIDECAR = "sidecar"
    LMDB = "lmdb"
    PAGE = "page"
    ALTO = "alto"
    WEBDATASET = "webdataset"
    PARQUET = "parquet"


class TargetName(StrEnum):
    """Formats that are written."""

    FOLDER = "folder"
    LMDB = "lmdb"
    WEBDATASET = "webdataset"
    PARQUET = "parquet"


class CutName(StrEnum):
    """How lines are cut from pages."""

    POLYGON = "polygon"
    BOX = "box"


FormatOption = Annotated[
    FormatName, typer.Option("--format", help="Format of the data sets; auto recognises it.", show_choices=True)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="CONFIG",
        help="Configuration that says what may be read and how strips are normalised, for data sets given by path.",
        show_default=False,
    ),
]
AlphabetOption = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="All characters that may be read, as '0123456789-'.", show_default=False),
]


def _exists(*paths: Path | None) -> None:
    for path in paths:
        if path is not None and not path.exists():
            raise CommandError(f"{path}: no such file or folder")


@contextmanager
def _progress(quiet: bool, total: int | None, verb: str) -> Iterator[Callable[[int, int], None]]:
    with open_reporter(quiet=quiet, count=None if total is None else lambda: total, verb=verb) as reporter:
        yield reporter.update


def _count(inputs: Inputs) -> int:
    return sum(len(part.images) for part in inputs.parts)


_VALIDATE_EXAMPLES = """\b
Examples:
  glyphline data validate strips/
  glyphline data validate mine.toml --data-root data/
  glyphline data validate train/ test/ --config mine.toml --json > findings.json
  glyphline data validate pages/ --alphabet "abcdefghijklmnopqrstuvwxyz "

\b
A configuration stands for its real sources and its validation sets; sources that draw their strips are tried once.
Several data sets are taken for splits: no picture may be in two of them. Errors: data sets, fonts or word lists that
are missing, pictures that cannot be read, characters outside the alphabet, one picture with two texts or in two splits.
Warnings: empty labels, outer spaces, hidden characters, repeated pictures, strips too wide, labels too long for CTC on
their strip. The exit code is 1 if there are errors, else 0.
"""


@app.command("validate", cls=PlainCommand, short_help="Find what is wrong with data sets.", epilog=_VALIDATE_EXAMPLES)
def validate(
    *,
    paths: Annotated[
        list[Path], typer.Argument(metavar="DATASET|CONFIG", help="Data sets or configurations.", show_default=False)
    ],
    config: ConfigOption = None,
    alphabet: AlphabetOption = None,
    data_root: DataRootOption = Path("data"),
    format_name: FormatOption = FormatName.AUTO,
    show: Annotated[int, typer.Option(metavar="N", min=0, help="Findings of each kind that are printed.")] = 5,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Looks at every label and every pixel, and lists all that is wrong, with files and lines."""
    _exists(*paths, config)
    with training_room():
        from glyphline.training.datasets.commands.inputs import open_inputs
        from glyphline.training.datasets.commands.validate import validate as look

        inputs = open_inputs(
            paths,
            data_root=data_root,
            format=format_name.value,
            alphabet=alphabet,
            config=config,
            missing="keep",
            drawn=True,
        )
        with _progress(quiet, _count(inputs), "Checking") as progress:
            result = look(inputs, progress)
    if as_json:
        values = asdict(result) | {"counts": result.counts(), "errors": result.errors}
        print(json.dumps(values | {"warnings": len(result.findings) - result.errors}, ensure_ascii=False))
    else:
        print_validation(result, show, inputs.alphabet is not None)
    if result.errors:
        raise typer.Exit(ExitCode.FINDINGS)


_STATS_EXAMPLES = """\b
Examples:
  glyphline data stats strips/
  glyphline data stats train/ test/ --plot stats.png
  glyphline data stats mine.toml --data-root data/ --json
"""


@app.command(
    "stats", cls=PlainCommand, short_help="Count strips, lengths, widths and characters.", epilog=_STATS_EXAMPLES
)
def stats(
    *,
    paths: Annotated[
        list[Path], typer.Argument(metavar="DATASET|CONFIG", help="Data sets or configurations.", show_default=False)
    ],
    config: ConfigOption = None,
    data_root: DataRootOption = Path("data"),
    format_name: FormatOption = FormatName.AUTO,
    plot: Annotated[
        Path | None, typer.Option(metavar="PNG", help="Draw the distributions here.", show_default=False)
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Counts strips and characters, and tells how long texts and how wide pictures are."""
    _exists(*paths, config)
    with training_room():
        from glyphline.training.datasets.commands.inputs import open_inputs, readable
        from glyphline.training.datasets.commands.stats import draw_stats, measure

        inputs = readable(open_inputs(paths, data_root=data_root, format=format_name.value, config=config))
        with _progress(quiet, _count(inputs), "Measuring") as progress:
            results = measure(inputs, progress)
        if plot is not None:
            draw_stats(results, inputs.image.height, plot)
    if as_json:
        print(json.dumps([result.summary() for result in results], ensure_ascii=False))
    else:
        for result in results:
            print_stats(result)


_PREVIEW_EXAMPLES = """\b
Examples:
  glyphline data preview mine.toml --data-root data/ --output preview.png
  glyphline data preview strips/ --count 20 --variants 6

\b
Strips are shown as the network sees them: ink bright on dark, whatever it was on the picture, and all of one height. A
sheet that is there already is replaced.
"""


@app.command(
    "preview", cls=PlainCommand, short_help="Draw a sheet of strips as the network sees them.", epilog=_PREVIEW_EXAMPLES
)
def preview(
    *,
    path: Annotated[
        Path, typer.Argument(metavar="DATASET|CONFIG", help="A data set or a configuration.", show_default=False)
    ],
    output: Annotated[Path, typer.Option(metavar="PNG", help="The sheet.")] = Path("preview.png"),
    count: Annotated[int, typer.Option(metavar="N", min=1, help="Strips of each source, or of the data set.")] = 12,
    variants: Annotated[int, typer.Option(metavar="N", min=0, help="Variants of each strip of a data set.")] = 4,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The same seed shows the same strips.")] = 1,
    data_root: DataRootOption = Path("data"),
    format_name: FormatOption = FormatName.AUTO,
) -> None:
    """Draws strips as training has them: of each source of a configuration, or of a data set with its variants."""
    _exists(path)
    with training_room():
        from glyphline.training.datasets.commands.preview import preview as draw

        sheet = draw(path, data_root=data_root, format=format_name.value, count=count, variants=variants, seed=seed)
        output.parent.mkdir(parents=True, exist_ok=True)
        if output.exists():
            tell(f"replaced {output}", "data preview")
        sheet.save(output, "PNG")
    print(output)


_TEXTS_EXAMPLES = """\b
Examples:
  glyphline data texts words.toml --data-root data/ --count 800000 --output texts.txt
  glyphline language-model texts.txt --order 5 --minimum-count 6 --output words.arpa.gz

\b
Drawn are the texts of rendered and composed sources (without babble and strings of characters, which are no language)
and the labels that real sources train on, each source by its weight, one text a line.
"""


@app.command(
    "texts", cls=PlainCommand, short_help="Write what strips say, for a language model.", epilog=_TEXTS_EXAMPLES
)
def texts(
    *,
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A configuration.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file; a new one.")],
    sources: Annotated[
        list[int] | None,
        typer.Option("--source", metavar="N", min=1, help="This source alone, counted from 1.", show_default=False),
    ] = None,
    count: Annotated[int, typer.Option(metavar="N", min=1, help="Number of texts.")] = 100_000,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The same seed draws the same texts.")] = 1,
    data_root: DataRootOption = Path("data"),
    quiet: Quiet = False,
) -> None:
    """Draws texts as the sources of a configuration do, without drawing their strips."""
    _exists(config)
    if output.exists():
        raise CommandError(f"{output} exists: name a new file")
    with training_room():
        from glyphline.training.config import read_config
        from glyphline.training.datasets.commands.texts import draw_texts

        drawn = draw_texts(read_config(config), data_root, count, seed, sources or ())
        output.parent.mkdir(parents=True, exist_ok=True)
        partial = output.with_name(f"{output.name}.partial")
        with _progress(quiet, count, "Drawing") as progress, partial.open("w", encoding="utf-8", newline="\n") as file:
            for number, text in enumerate(drawn, 1):
                file.write(f"{text}\n")
                if number % 1000 == 0 or number == count:
                    progress(number, 0)
        partial.replace(output)
    print(f"{output}: {count:,} texts")


_RENDER_EXAMPLES = """\b
Examples:
  glyphline data render strips/ --fonts fonts/ --words words.txt --count 20000
  glyphline data render strips/ --fonts fonts/ --words words.txt --per-strip 3 --alphabet "abcdefghijklmnopqrstuvwxyz "
  glyphline data render codes/ --fonts OCRB.ttf --alphabet "0123456789ABCDEF-" --longest 12
  glyphline data render strips.lmdb --to lmdb --fonts fonts/ --words lines.txt --clean
  glyphline data render shards/ --to webdataset --config words.toml --data-root data/ --count 500000

\b
With --config strips are written as the sources of that configuration draw them, each by its weight, once and for all:
training then reads them. --source takes some of them.
A font that lacks a character of the text is refused by name, as it would draw boxes; with --skip-missing each font
writes what it can. Texts are in logical order; scripts that join or turn their letters are shaped. Train on what was
rendered with `kind = "real"`, together with real strips.
"""


@app.command("render", cls=PlainCommand, short_help="Draw strips of text with fonts.", epilog=_RENDER_EXAMPLES)
def render(
    *,
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="The data set; a new folder.", show_default=False)],
    fonts: Annotated[
        list[Path] | None, typer.Option(metavar="FONT|DIR", help="Fonts, or folders of them.", show_default=False)
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="CONFIG", help="Draw as the sources of this configuration do.", show_default=False),
    ] = None,
    sources: Annotated[
        list[int] | None,
        typer.Option(
            "--source", metavar="N", min=1, help="Of --config, this source, counted from 1.", show_default=False
        ),
    ] = None,
    data_root: DataRootOption = Path("data"),
    words: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Words or texts, one a line, UTF-8.", show_default=False)
    ] = None,
    per_strip: Annotated[int, typer.Option(metavar="N", min=1, help="From 1 to N words a strip.")] = 1,
    alphabet: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Leave out texts with other characters; without --words, string these together at random.",
            show_default=False,
        ),
    ] = None,
    longest: Annotated[int, typer.Option(metavar="N", min=1, help="Greatest number of characters.")] = 32,
    count: Annotated[int, typer.Option(metavar="N", min=1, help="Number of strips.")] = 1000,
    target: Annotated[TargetName, typer.Option("--to", help="Format of the data set.")] = TargetName.FOLDER,
    clean: Annotated[bool, typer.Option("--clean", help="Dark on light, straight, without wear.")] = False,
    skip_missing: Annotated[
        bool, typer.Option("--skip-missing", help="Let a font that lacks characters write what it can.")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The same seed draws the same strips.")] = 1,
    quiet: Quiet = False,
) -> None:
    """Draws strips of text, of any alphabet that the fonts have, bent and worn as pictures are."""
    if config is not None:
        if fonts or words is not None or alphabet:
            raise CommandError("--config says what is drawn: leave --fonts, --words and --alphabet out")
        _render_config(output, config, data_root, sources or [], count, target, seed, quiet=quiet)
        return
    if not fonts:
        raise CommandError("give --fonts, or --config to draw as a configuration does")
    if words is None and not alphabet:
        raise CommandError("give --words FILE, or --alphabet TEXT to string characters together")
    _exists(*fonts, words)
    with training_room():
        from glyphline.training.datasets.commands import render as rendering

        lines, left_out = ((), 0) if words is None else rendering.read_lines(words, alphabet or "")
        if left_out:
            print(f"{left_out:,} of {left_out + len(lines):,} texts have other characters: left out", file=sys.stderr)
        texts = rendering.Texts(lines, per_strip, alphabet or "", longest)
        with _progress(quiet, count, "Drawing") as progress:
            done = rendering.render(
                output,
                rendering.find_all_fonts(fonts),
                texts,
                count=count,
                target=target.value,
                wear=rendering.CLEAN if clean else None,
                skip_missing=skip_missing,
                seed=seed,
                progress=progress,
            )
    if done.skips:
        print(f"fonts that can write none of it: {done.skips}", file=sys.stderr)
    print(f"{output}: {done.written:,} strips in {sum(map(bool, done.fonts.values()))} fonts")


def _render_config(
    output: Path,
    config: Path,
    data_root: Path,
    sources: list[int],
    count: int,
    target: TargetName,
    seed: int,
    *,
    quiet: bool,
) -> None:
    """Writes strips as a configuration's sources draw them."""
    _exists(config)
    with training_room():
        from glyphline.training.config import read_config
        from glyphline.training.datasets.commands.render import render_sources

        with _progress(quiet, count, "Drawing") as progress:
            done = render_sources(
                output,
                read_config(config),
                data_root,
                sources=sources,
                count=count,
                target=target.value,
                seed=seed,
                progress=progress,
            )
    print(f"{output}: {done.written:,} strips{f'; {done.skips}' if done.skips else ''}")
    for name, number in done.fonts.items():
        print(f"  {name}: {number:,}")


_CONVERT_EXAMPLES = """\b
Examples:
  glyphline data convert pages/ lines/                        lines of PAGE or ALTO pages, cut out
  glyphline data convert strips/ strips.lmdb --to lmdb
  glyphline data convert train.lmdb shards/ --to webdataset --shard-size 5000
"""


@app.command("convert", cls=PlainCommand, short_help="Write a data set in another format.", epilog=_CONVERT_EXAMPLES)
def convert(
    *,
    source: Annotated[Path, typer.Argument(metavar="DATASET", help="A data set of any format.", show_default=False)],
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="The new one; a new folder.", show_default=False)],
    target: Annotated[TargetName, typer.Option("--to", help="Format of the new one.")] = TargetName.FOLDER,
    format_name: FormatOption = FormatName.AUTO,
    cut: Annotated[
        CutName, typer.Option(help="Cut lines from pages by their polygon or by the box around it.")
    ] = CutName.POLYGON,
    shard_size: Annotated[int, typer.Option(metavar="N", min=1, help="Samples in a shard of webdataset.")] = 1000,
    skip_damaged: Annotated[
        bool, typer.Option("--skip-damaged", help="Leave out what cannot be read, instead of stopping.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Writes a data set in another format; the bytes of its pictures stay as they are."""
    _exists(source)
    with training_room():
        from glyphline.training.datasets.commands.convert import convert as write

        with _progress(quiet, None, "Converting") as progress:
            done = write(
                source,
                output,
                target.value,
                format=format_name.value,
                cut=cut.value,
                shard_size=shard_size,
                skip_damaged=skip_damaged,
                progress=progress,
            )
    print(f"{output}: {done.written:,} strips{f'; {done.skips}' if done.skips else ''}")


_INIT_EXAMPLES = """\b
Examples:
  glyphline data init data/strips > strips.toml
  glyphline data init data/strips --group "^([^_]+)_" --name letters > letters.toml

\b
The configuration has your labels' characters, room for your widest strips, and one strip in ten held out by a hash of
its name. --group keeps what belongs together on one side: strips of one writer, page or device; without it the figures
flatter where strips resemble each other. It holds out about a tenth of the groups, which may be more or fewer of the
strips; how many it came to stands at the top. Save it as NAME.toml, NAME being the data set's or that of --name: so the
commands call it that it lists.
"""


@app.command("init", cls=PlainCommand, short_help="Write a first configuration from your data.", epilog=_INIT_EXAMPLES)
def init(
    *,
    path: Annotated[Path, typer.Argument(metavar="DATASET", help="A data set.", show_default=False)],
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the recogniser.  [default: the folder's]")] = "",
    group: Annotated[
        str,
        typer.Option(
            metavar="REGEX",
            help="What of a name tells the writer, page or device; these are held out whole.",
            show_default=False,
        ),
    ] = "",
    height: Annotated[int, typer.Option(metavar="N", min=8, help="Height that strips are brought to.")] = 40,
    epochs: Annotated[int, typer.Option(metavar="N", min=1, help="Length of the training.")] = 30,
    data_root: DataRootOption = Path("data"),
    format_name: FormatOption = FormatName.AUTO,
    quiet: Quiet = False,
) -> None:
    """Writes a configuration for a data set to standard output: enough to train with, and to change."""
    _exists(path)
    try:
        re.compile(group)
    except (re.error, OverflowError, RecursionError) as error:
        raise CommandError(
            f'--group {group!r}: no regular expression: {error}; an example is "^([^_]+)_", all before the first _'
        ) from error
    with training_room():
        from glyphline.training.datasets.commands.start import write_first_config

        with _progress(quiet, None, "Measuring") as progress:
            text = write_first_config(
                path,
                data_root=data_root,
                name=name,
                format=format_name.value,
                group=group,
                height=height,
                epochs=epochs,
                progress=progress,
            )
    print(text, end="")
