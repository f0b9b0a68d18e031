"""The application: which commands there are. Each imports what it needs only when it runs, so `--help` is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from glyphline.cli import (
    data,
    evaluate,
    export,
    guide,
    health,
    language_model,
    models,
    playground,
    quantise,
    recognize,
    review,
    serve,
    study,
    token,
    train,
    transcribe,
)
from glyphline.cli.exit_codes import ExitCode, table
from glyphline.cli.group import CommandGroup
from glyphline.cli.grouped_help import PlainCommand, grouped
from glyphline.cli.stopping import leave_at_once

_HELP = """Reads strips of pixels as text: handwritten, printed, seven-segment and meter digits and more.

\b
  glyphline recognize cheque.png                      read one picture, here and now
  glyphline recognize cheque.png --show               and draw what was read over it
  glyphline transcribe scans/ --output texts.jsonl    read a folder with all cores
  glyphline review texts.jsonl                        correct what is most likely wrong, on a page
  glyphline playground                                draw digits, drop a picture, see how it is read
  glyphline serve                                     serve over gRPC, with Prometheus metrics
  glyphline recognize cheque.png --server localhost:50051
  glyphline data init, validate; train, export, evaluate     make a model of your own

`glyphline COMMAND --help` explains a command and shows examples.
"""

app = typer.Typer(
    name="glyphline",
    cls=CommandGroup,
    help=_HELP,
    epilog=f"\b\nExit codes:\n{table()}",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)

_SHORT_HELP = {
    recognize: "Read pictures, here or on a server.",
    transcribe: "Read folders of pictures with all cores.",
    review: "Correct a job's doubtful rows on a page.",
    playground: "Try models by hand, on a page.",
    serve: "Serve models over gRPC, with metrics.",
    health: "Ask whether a server can be used.",
    models: "List models, or show one's card.",
    evaluate: "Measure a model on labelled data.",
    train: "Train a model.",
    export: "Make a bundle of a trained model.",
    quantise: "Add a faster int8 variant to a bundle.",
    language_model: "Make a language model of texts, to read with.",
    guide: "Give a bundle a language model of its own.",
    token: "Make a token for callers of a server.",
    study: "Measure why the defaults are what they are.",
}
for _module, _short_help in _SHORT_HELP.items():
    _name = _module.__name__.rpartition(".")[2]  # glyphline.cli.serve holds the function serve
    app.command(
        _name.replace("_", "-"),
        cls=grouped(_module.GROUPS) if hasattr(_module, "GROUPS") else PlainCommand,
        short_help=_short_help,
        epilog=_module.EXAMPLES,
    )(getattr(_module, _name))
app.add_typer(data.app, short_help="Check, show, render and convert labelled strips.")


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"glyphline {version('glyphline')}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command line and exits with its code."""
    try:
        app(prog_name="glyphline")
    except SystemExit as end:
        if end.code in (ExitCode.INTERRUPTED, ExitCode.TERMINATED):
            leave_at_once(int(end.code))
        raise
