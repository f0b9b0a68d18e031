"""`glyphline data …`: checks, shows, renders and converts labelled strips; one file for each command."""

from __future__ import annotations

import typer

from glyphline.cli.data import convert, init, preview, render, stats, texts, validate
from glyphline.cli.grouped_help import PlainCommand

__all__ = ["app"]

_HELP = """Checks, describes, shows, renders and converts labelled strips.

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

app = typer.Typer(name="data", help=_HELP, no_args_is_help=True, rich_markup_mode=None)

_SHORT_HELP = {
    validate: "Find what is wrong with data sets.",
    stats: "Count strips, lengths, widths and characters.",
    preview: "Draw a sheet of strips as the network sees them.",
    texts: "Write what strips say, for a language model.",
    render: "Draw strips of text with fonts.",
    convert: "Write a data set in another format.",
    init: "Write a first configuration from your data.",
}
for _module, _short_help in _SHORT_HELP.items():
    _name = _module.__name__.rpartition(".")[2]
    app.command(_name, cls=PlainCommand, short_help=_short_help, epilog=_module.EXAMPLES)(getattr(_module, _name))
