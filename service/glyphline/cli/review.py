"""`glyphline review`: the rows of a job that are most likely wrong, as a page; and its corrections as a data set."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glyphline.cli.exit_codes import CommandError, ExitCode
from glyphline.cli.group import tell
from glyphline.cli.stopping import stoppable

if TYPE_CHECKING:
    from glyphline.service.jobs.review import Basis, JobOutput, Pairing, Selection, Written

EXAMPLES = """\b
Examples:
  glyphline review texts.jsonl                                the least sure rows, on review.html
  glyphline review texts.jsonl --accuracy 0.999               what must be looked at so that 99.9 % of the rest is right
  glyphline review texts.jsonl --below 0.93                   a threshold that is known, as from evaluate --report
  glyphline review texts.jsonl --against texts-beam.jsonl     and where another model or decoder reads otherwise
  glyphline review texts.jsonl --labels labels.tsv --dataset corrected/

\b
The page is one file and needs no network. Correct a row and press Enter, or press Enter if it is right; "Save labels"
downloads labels.tsv. The last example makes of it a folder of pictures and their corrected texts, which `glyphline
train` takes as a source of kind "real" and `glyphline data init` writes a configuration for.

\b
A row is shown if its text differs from the reference that it has or from what --against has read, if its confidence is
low, or if it has an error. How low follows from the job's own rows with references if there are enough of them: 300 for
--accuracy 0.99, 3,000 for 0.999. Else it is the --limit least sure rows; page and terminal say which.

\b
OUT may be a job that is not finished. Exit codes: 0 done, 3 some pictures could not be had again, 2 an option or OUT is
wrong, 6 a file could not be read or written.
"""

GROUPS = {
    "Page": ("output", "overwrite", "accuracy", "below", "against", "limit"),
    "Data set": ("labels", "dataset"),
}
_COMMAND = "review"
_ACCURACY = 0.99
_LIMIT = 500


def review(
    context: typer.Context,
    *,
    name: Annotated[str, typer.Argument(metavar="OUT", help="Output of `glyphline transcribe`.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.html", help="Page to write.")] = Path(
        "review.html"
    ),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a page that is there.")] = False,
    accuracy: Annotated[
        float,
        typer.Option(metavar="SHARE", help="Share of the rows not shown that should be right; needs references."),
    ] = _ACCURACY,
    below: Annotated[
        float | None,
        typer.Option(metavar="CONFIDENCE", help="Show readings below this confidence, instead of --accuracy."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="OUT2",
            help="Another job's output of the same inputs: show where the texts differ.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Show at most N readings, the least sure.")] = _LIMIT,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="labels.tsv",
            help='The file that "Save labels" of the page gave: write a data set of it instead of a page.',
            show_default=False,
        ),
    ] = None,
    dataset: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="With --labels: the new folder, for the pictures and their corrected texts.",
            show_default=False,
        ),
    ] = None,
    allow_http: Annotated[bool, typer.Option("--allow-http", help="Fetch pictures from web addresses.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON on standard output.")] = False,
) -> None:
    """Writes a page of a job's rows that are most likely wrong, and makes training data of what was corrected there."""
    if (labels is None) != (dataset is None):
        raise CommandError("--labels and --dataset belong together: the labels that a page saved, and the new folder")
    if labels is not None and dataset is not None:
        _refuse_page_options(context)
        _write_dataset(name, labels, dataset, allow_http=allow_http, as_json=as_json)
        return
    if below is not None and _given(context, "accuracy"):
        raise CommandError("--accuracy finds the threshold and --below states it: choose one")
    if not 0 < accuracy < 1:
        raise CommandError(f"--accuracy {accuracy:g}: give a share above 0 and below 1, as 0.99")
    if below is not None and not 0 <= below <= 1:
        raise CommandError(f"--below {below:g}: give a confidence from 0 to 1, as 0.9")
    _check_place(output, overwrite=overwrite)
    with stoppable(lambda: "no page was written"):
        _write_page(name, output, accuracy, below, against, limit, allow_http=allow_http, as_json=as_json)


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _refuse_page_options(context: typer.Context) -> None:
    for parameter in context.command.params:
        if parameter.name in GROUPS["Page"] and _given(context, parameter.name):
            raise CommandError(f"{parameter.opts[0]} is for the page: leave it out with --labels")


def _check_place(output: Path, *, overwrite: bool) -> None:
    """Refuses a place where no page can be, before any row is read."""
    if output.is_dir():
        raise CommandError(f"{output}: is a folder; name a file, as {output / 'review.html'}")
    if output.suffix.lower() not in (".html", ".htm"):
        raise CommandError(f"{output}: a page's name ends in .html")
    if not output.parent.is_dir():
        raise CommandError(f"{output}: the folder {output.parent} does not exist; create it first")
    if os.path.lexists(output) and not overwrite:
        raise CommandError(f"{output}: exists already; choose another name with --output, or pass --overwrite")


def _write_page(
    name: str,
    output: Path,
    accuracy: float,
    below: float | None,
    against: str | None,
    limit: int,
    *,
    allow_http: bool,
    as_json: bool,
) -> None:
    from glyphline.service.jobs.disk import Disk
    from glyphline.service.jobs.review import Basis, Pairing, Review, find_basis, open_output, render_page, select_rows
    from glyphline.service.jobs.review.strips import fetch_strip, shown_strip
    from glyphline.service.jobs.rows import RowError

    job = open_output(name)
    basis = Basis(below) if below is not None else find_basis(job, accuracy)
    pairing = Pairing(job, None if against is None else open_output(against))
    selection = select_rows(pairing, basis.threshold, limit)
    if not selection.rows:
        raise CommandError(f"{name}: holds no row")
    if against is not None and not pairing.matched:
        raise CommandError(f"{against}: has no row with an id of {name}; give a job of the same inputs")
    strips = [
        shown_strip(fetch_strip(job.located(each.row), job.limits, allow_http=allow_http), job.limits)
        for each in selection.chosen
    ]
    lost = {
        each.row["id"]: strip.message
        for each, strip in zip(selection.chosen, strips, strict=True)
        if isinstance(strip, RowError) and each.reason != "error"
    }
    notes = _notes(job, basis, selection, pairing, against)
    page = render_page(Review(name, notes, selection.chosen, strips), shlex.quote)
    Disk().write_whole(output, page.encode())
    if as_json:
        print(json.dumps(_summary(output, job, basis, selection, pairing, lost), ensure_ascii=False))
    else:
        for note in notes:
            print(note, file=sys.stderr)
        print(f"{output} is the page to open in a browser", file=sys.stderr)
    _tell_lost(lost)


def _notes(job: JobOutput, basis: Basis, selection: Selection, pairing: Pairing, against: str | None) -> list[str]:
    """Says in sentences what the page shows."""
    from glyphline.service.jobs.wording import counted, there_are

    shown, found = selection.shown, selection.found
    doubtful = found["confidence"]
    left_out = sum((found - shown).values())
    chosen = len(selection.chosen)
    notes = [
        f"{chosen:,} of {counted(selection.rows, 'row')} {'is' if 1 in (chosen, selection.rows) else 'are'} shown"
        + ("." if job.finished else "; the job is not finished."),
        basis.sentence(shown["confidence"])
        + (f" {there_are(doubtful).capitalize()}." if basis.threshold is not None else ""),
    ]
    if against is not None:
        alone = f" Rows that are not in it: {pairing.alone:,}." if pairing.alone else ""
        notes.append(f"Readings that differ from those of {against}: {found['disagreement']:,}.{alone}")
    if found["reference"]:
        notes.append(f"Readings that differ from the reference that they have: {found['reference']:,}.")
    if found["error"]:
        notes.append(f"Rows with an error: {found['error']:,}.")
    if left_out and (basis.threshold is not None or left_out > doubtful - shown["confidence"]):
        notes.append(f"Such rows that are not shown: {left_out:,}; --limit shows more readings.")
    return notes


def _summary(
    output: Path, job: JobOutput, basis: Basis, selection: Selection, pairing: Pairing, lost: Mapping[str, str]
) -> dict[str, Any]:
    from glyphline.service.jobs.review.selection import REASONS

    threshold = basis.threshold
    chosen_by = "confidence" if basis.accuracy is None else "share" if threshold is None else "references"
    return {
        "output": str(output),
        "rows": selection.rows,
        "finished": job.finished,
        "shown": {reason: selection.shown[reason] for reason in REASONS},
        "found": {reason: selection.found[reason] for reason in REASONS},
        "chosen_by": chosen_by,
        "threshold": threshold if threshold is not None and threshold <= 1 else None,
        "accuracy": basis.accuracy,
        "references": basis.references,
        "references_needed": basis.needed,
        "without_counterpart": pairing.alone,
        "without_picture": len(lost),
    }


def _write_dataset(name: str, labels: Path, dataset: Path, *, allow_http: bool, as_json: bool) -> None:
    from glyphline.service.jobs.review import open_output, write_dataset

    with stoppable(lambda: f"{dataset} is not whole: remove it"):
        written = write_dataset(open_output(name), labels, dataset, allow_http=allow_http)
    if as_json:
        counts = {"pictures": written.pictures, "changed": written.changed, "without_picture": len(written.missing)}
        print(json.dumps({"output": str(dataset), **counts}, ensure_ascii=False))
    else:
        print(_told(written, dataset), file=sys.stderr)
        print(f"to train with them: glyphline data init {shlex.quote(str(dataset))} > mine.toml", file=sys.stderr)
    _tell_lost(written.missing)


def _told(written: Written, dataset: Path) -> str:
    if written.pictures == 1:
        return f"1 picture{', corrected,' if written.changed else ''} is in {dataset}"
    return f"{written.pictures:,} pictures, {written.changed:,} of them corrected, are in {dataset}"


def _tell_lost(lost: Mapping[str, str]) -> None:
    """Names pictures that could not be had again.

    Raises:
        typer.Exit: If there are any.
    """
    from glyphline.service.jobs.wording import counted

    if not lost:
        return
    named: Iterable[tuple[str, str]] = list(lost.items())[:3]
    reasons = "; ".join(f"{identity}: {reason}" for identity, reason in named)
    more = f"; and {len(lost) - 3:,} more" if len(lost) > 3 else ""
    tell(f"{counted(len(lost), 'picture')} could not be had again: {reasons}{more}", _COMMAND)
    raise typer.Exit(ExitCode.IMAGES)
