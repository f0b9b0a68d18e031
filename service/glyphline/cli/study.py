"""`glyphline study`: small measurements that show why the defaults are what they are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glyphline.cli.training_room import training_room

if TYPE_CHECKING:
    from rich.progress import Progress

    from glyphline.training.studies import Outcome, Study, StudyOptions, Table

EXAMPLES = """\b
Examples:
  glyphline study forget-gate                     how long an untrained LSTM remembers
  glyphline study memory --seeds 10               which networks learn to remember a sign
  glyphline study gate-trace --animate            gates of a trained LSTM, as a picture and as a film
  glyphline study heads --data-root data/         what each head reads, by length; an hour or two
  glyphline study length --data-root data/        what keeps attention in its place on longer strips; the same
  glyphline study words --data-root data/         what the parts of the recipe for words are worth; the same
  glyphline study all --output studies/           all of them; some minutes each
  glyphline study all --quick                     all on tiny sizes, to see that they run

\b
Studies: forget-gate, gradient, memory, jacobian, copy, gate-trace, heads, length, words. docs/studies.md explains what
each shows and what it measured. Each prints its tables (on a terminal; elsewhere the same as Markdown) and writes them
to NAME.md, its picture to NAME.png and all figures to NAME.json. The same options give the same figures, but for words,
which gives all the same CPU time. The last three keep what they train in trials/ of the output folder: stopped and run
again, they go on from there.
"""


def study(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME|all", help="A study, or all of them.", show_default=False)],
    output: Annotated[Path, typer.Option(metavar="DIR", help="Folder for tables, pictures and figures.")] = Path(
        "studies"
    ),
    seeds: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Networks of each kind to measure.  [default: the study's own, 3 to 20]"),
    ] = None,
    data_root: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            envvar="GLYPHLINE_DATA_ROOT",
            help="Folder that holds mnist/, for the studies of heads and length, and fonts/, words/ and real lines, "
            "for that of words; all leaves them out unless it is given.  [default: data]",
            show_default=False,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sizes: a trial of seconds; its figures mean nothing.")
    ] = False,
    animate: Annotated[
        bool, typer.Option("--animate", help="Write NAME.gif, too, where a study can be animated.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a study instead of tables.")] = False,
) -> None:
    """Measures something small about recurrent networks, and shows it as a table and a picture."""
    with training_room():
        from glyphline.training.studies import StudyOptions, find_study, study_names

        options = StudyOptions(seeds, quick, data_root or Path("data"))
        studies = [find_study(each) for each in (study_names() if name == "all" else (name,))]
        if name == "all" and data_root is None:
            studies = [each for each in studies if not each.needs_data]
    for each in studies:
        with training_room():
            outcome = _run(each, options, output, animate)
        if as_json:
            print(outcome.to_json(), flush=True)
        else:
            _print_tables(outcome.tables)
        print(f"{outcome.files[1]} is the picture ({outcome.seconds:,.0f} s)", file=sys.stderr, flush=True)


def _run(study: Study[Any], options: StudyOptions, output: Path, animate: bool) -> Outcome:
    from glyphline.training.studies import run_study

    with _open_progress() as progress:
        task = progress.add_task(study.name, total=None)

        def tell(done: int, steps: int) -> None:
            progress.update(task, completed=done, total=steps)

        return run_study(study, options, tell, output, animate=animate)


def _open_progress() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )


def _print_tables(tables: tuple[Table, ...]) -> None:
    if not sys.stdout.isatty():
        print("\n\n".join(table.to_markdown() for table in tables), end="\n\n", flush=True)
        return
    from rich.console import Console
    from rich.table import Column
    from rich.table import Table as Shown
    from rich.text import Text

    console = Console()
    for table in tables:
        first, *others = table.headings
        shown = Shown(Column(first), *(Column(heading, justify="right") for heading in others), title=Text(table.title))
        for row in table.rows:
            shown.add_row(*map(Text, row))
        console.print(shown)
