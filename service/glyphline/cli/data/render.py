"""`glyphline data render`: draws strips of text with fonts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from glyphline.cli.data.options import Quiet, TargetName, check_exists, show_progress
from glyphline.cli.exit_codes import CommandError
from glyphline.cli.options import DataRootOption
from glyphline.cli.training_room import training_room

EXAMPLES = """\b
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
    check_exists(*fonts, words)
    with training_room():
        from glyphline.training.datasets.commands import render as rendering

        lines, left_out = ((), 0) if words is None else rendering.read_lines(words, alphabet or "")
        if left_out:
            print(f"{left_out:,} of {left_out + len(lines):,} texts have other characters: left out", file=sys.stderr)
        texts = rendering.Texts(lines, per_strip, alphabet or "", longest)
        with show_progress(quiet, count, "Drawing") as progress:
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
    check_exists(config)
    with training_room():
        from glyphline.training.config import read_config
        from glyphline.training.datasets.commands.render import render_sources

        with show_progress(quiet, count, "Drawing") as progress:
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
