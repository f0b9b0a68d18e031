"""What `glyphline transcribe` does with its options: chooses engine and output, runs the job, and tells of it."""

from __future__ import annotations

import errno
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import typer

from glyphline.cli.access import ServerAccess
from glyphline.cli.engines import Opened, open_engine
from glyphline.cli.exit_codes import CommandError, ExitCode
from glyphline.cli.group import tell
from glyphline.cli.guides import GuideArguments
from glyphline.cli.progress import ProgressKind, open_reporter
from glyphline.cli.stopping import stoppable
from glyphline.models.decoding import DecodingOptions
from glyphline.models.errors import GlyphlineError
from glyphline.models.image import ImageLimits
from glyphline.models.manifest import Precision
from glyphline.models.session import Device, Provider
from glyphline.service.jobs import CHUNK_ITEMS, Inputs, Journal, Layout, RowFormat, StreamOutput, Tally, run, summary
from glyphline.service.jobs.beginning import Start
from glyphline.service.jobs.sinks import Format, check_parquet, choose_format
from glyphline.service.jobs.sources.inputs import unlisted
from glyphline.service.jobs.wording import counted

__all__ = ["Reading", "Writing", "transcribe_all"]

_COMMAND = "transcribe"
_STANDARD_STREAM = "-"


@dataclass(frozen=True, slots=True)
class Reading:
    """How pictures are read.

    Attributes:
        options: How texts are decoded.
        guides: Lexicon and language model, as they were given.
        limits: Largest picture.
        model: Name or folder of the model; None for the default.
        version: Its version, with a server also a label; None for the latest.
        repository: Folder of models; None for those that come with Glyphline.
        device: Where the network runs.
        allow_cpu_fallback: Whether the CPU will do if the device is not there.
        provider: What runs the network.
        precision: Which variant of it.
        workers: Processes; None for the usual number.
        engine: What reads, unless servers do.
        ray_address: Of the cluster; None for the one at hand.
        servers: Addresses of servers; empty to read here.
        timeout: Seconds without an answer after which servers count as gone.
        access: Certificates and token for them.
    """

    options: DecodingOptions
    guides: GuideArguments
    limits: ImageLimits
    model: str | None
    version: int | str | None
    repository: Path | None
    device: Device
    allow_cpu_fallback: bool
    provider: Provider
    precision: Precision
    workers: int | None
    engine: Literal["local", "ray"]
    ray_address: str | None
    servers: tuple[str, ...]
    timeout: float
    access: ServerAccess


@dataclass(frozen=True, slots=True)
class Writing:
    """Where rows go, and what is told of the job.

    Attributes:
        output: File, folder or `-`.
        format: How rows are written; None for what the output's name says.
        start: Whether to begin, to go on or to begin again.
        any_order: Whether rows may come in any order.
        references: File of true texts, of which at least one has to be that of an image.
        dry_run: Whether nothing is to be read.
        progress: How progress is shown.
        quiet: Whether nothing is shown.
        as_json: Whether the summary is printed as JSON.
        metrics_port: Port of metrics; None for none.
        metrics_textfile: File of metrics; None for none.
        metrics_push: Pushgateway for metrics; None for none.
    """

    output: str | None
    format: Format | None
    start: Start
    any_order: bool
    references: Path | None
    dry_run: bool
    progress: ProgressKind
    quiet: bool
    as_json: bool
    metrics_port: int | None
    metrics_textfile: Path | None
    metrics_push: str | None


def transcribe_all(inputs: Inputs, reading: Reading, writing: Writing) -> None:
    """Runs a job, or only looks at what it would read.

    Raises:
        CommandError: If it cannot be run as asked, or was stopped.
        typer.Exit: With the code for pictures that could not be read.
    """
    layout = _layout(writing)
    if layout is not None and layout.format == "xml":
        inputs.check_pages()
    if writing.references is not None:
        inputs.check_references(writing.references)
    if writing.dry_run:
        _tell_plan(inputs, layout, writing)
        return
    with ExitStack() as stack:
        opened = stack.enter_context(open_engine(reading))
        in_order = not writing.any_order or (layout is not None and layout.format == "xml")
        output: Journal | StreamOutput = StreamOutput(sys.stdout.buffer)
        if layout is not None:
            output = Journal(layout, _settings(inputs, reading, opened, layout, in_order), writing.start)
        tally = _run(inputs, opened, output, writing, in_order=in_order, options=reading.options)
    _tell_summary(tally, opened, writing)
    if writing.references is not None and not tally.referenced:
        raise CommandError(f"all rows are written, but {unlisted('none of the images', writing.references)}")
    if tally.failed:
        raise typer.Exit(ExitCode.IMAGES)


def _layout(writing: Writing) -> Layout | None:
    if writing.output is None or writing.output == _STANDARD_STREAM:
        if writing.format not in (None, "jsonl"):
            raise CommandError(f"--format {writing.format} needs a file or folder: the standard output takes jsonl")
        if writing.start == "resume":
            raise CommandError("--resume needs a file or folder: what went to the standard output is not kept")
        return None
    chosen, folder = choose_format(writing.output, writing.format)
    if chosen == "parquet":
        check_parquet()
    return Layout.of(writing.output, chosen, folder=folder)


def _run(
    inputs: Inputs,
    opened: Opened,
    output: Journal | StreamOutput,
    writing: Writing,
    *,
    in_order: bool,
    options: DecodingOptions,
) -> Tally:
    rows = RowFormat(opened.engine.model, options.max_alternatives > 1, options.token_details)
    with stoppable(lambda: _advice(output)), _kept_told(output), output:
        if isinstance(output, Journal) and output.finished:
            _check_still(inputs, output.tally.images, writing)
            tell(f"{writing.output} is complete already", _COMMAND)
            return output.tally
        if isinstance(output, Journal) and output.kept:
            tell(f"goes on after {counted(output.kept, 'row')}", _COMMAND)
        reporter = open_reporter(
            quiet=writing.quiet,
            count=inputs.count if inputs.repeatable else None,
            kind=writing.progress,
            done=output.tally.images,
        )
        with _metrics(writing) as measure, reporter, opened.engine:
            told = writing.references is None

            def watch(tally: Tally) -> None:
                nonlocal told
                if not told and not tally.referenced:
                    tell(unlisted("no image so far", writing.references), _COMMAND)
                told = True
                reporter.update(tally.images, tally.failed, tally.cer)
                measure(tally)

            return run(inputs.chunks(CHUNK_ITEMS), opened.engine, output, rows, in_order=in_order, watch=watch)


def _check_still(inputs: Inputs, rows: int, writing: Writing) -> None:
    """Refuses to call a job complete whose inputs have become more or fewer since; standard input tells only once."""
    if not inputs.repeatable:
        return
    images = sum(len(chunk.items) for chunk in inputs.chunks(CHUNK_ITEMS))
    if images != rows:
        raise CommandError(
            f"{writing.output} is complete with {counted(rows, 'row')}, and the inputs name {counted(images, 'image')}"
            " now: give another --output, or --overwrite to read all of them anew"
        )


def _advice(output: Journal | StreamOutput) -> str:
    if isinstance(output, StreamOutput):
        return "the rows so far are whole"
    if not output.kept:
        return "no row was written"
    return f"{counted(output.kept, 'row')} {'is' if output.kept == 1 else 'are'} kept, and --resume goes on"


@contextmanager
def _kept_told(output: Journal | StreamOutput) -> Iterator[None]:
    """Says with an error of the whole job that nothing is lost by it."""
    try:
        yield
    except (GlyphlineError, OSError) as error:
        if isinstance(error, OSError) and error.errno == errno.EPIPE and isinstance(output, StreamOutput):
            raise
        if isinstance(error, OSError):
            place = error.filename or (output.layout.output if isinstance(output, Journal) else "standard output")
            message = f"{place}: {error.strerror or error}"
            raise CommandError(f"{message}; {_advice(output)}", ExitCode.SYSTEM) from error
        if isinstance(output, Journal) and output.kept:
            tell(_advice(output), _COMMAND)
        raise


@contextmanager
def _metrics(writing: Writing) -> Iterator[Callable[[Tally], None]]:
    port, textfile, gateway = writing.metrics_port, writing.metrics_textfile, writing.metrics_push
    if port is None and textfile is None and gateway is None:
        yield lambda _: None
        return
    from glyphline.service.jobs.job_metrics import JobMetrics

    with JobMetrics("127.0.0.1", port, textfile, gateway, writing.output or "") as metrics:
        if metrics.port is not None and not writing.quiet:
            tell(f"metrics at http://127.0.0.1:{metrics.port}/metrics", _COMMAND)
        yield metrics.update


def _settings(inputs: Inputs, reading: Reading, opened: Opened, layout: Layout, in_order: bool) -> dict[str, Any]:
    """Names all that the rows depend on; what only changes how fast they come is not among it."""
    options, guides, model = reading.options, reading.guides, opened.engine.model
    here = {"device": reading.device, "provider": reading.provider, "precision": reading.precision}
    return {
        **inputs.describe(),
        "engine": "server"
        if reading.servers
        else "local",  # a cluster reads as this machine does: a job may move there
        "model": model.name,
        "version": model.version,
        "sha256": model.sha256,
        "decoder": model.decoder,
        "alternatives": options.max_alternatives,
        "tokens": options.token_details,
        "allowed": options.allowed_characters,
        "lexicon": _content(guides.lexicon),
        "several_words": options.several_words,
        "language_model": _content(guides.language_model),
        "language_model_weight": options.language_model_weight,
        "length_bonus": options.length_bonus,
        "max_bytes": reading.limits.max_bytes,
        "max_pixels": reading.limits.max_pixels,
        **({} if reading.servers else here),
        "format": layout.format,
        "in_order": in_order,
        "rows_at_a_time": CHUNK_ITEMS,
    }


def _content(name: str | None) -> str | None:
    """Stands for a file's content; what only a server knows is its name."""
    if name is None or not Path(name).is_file():
        return name
    return hashlib.sha256(Path(name).read_bytes()).hexdigest()[:16]


def _tell_plan(inputs: Inputs, layout: Layout | None, writing: Writing) -> None:
    """Goes through all inputs without opening a picture, so that what is wrong with them is found now."""
    images = referenced = 0
    first: str | None = None
    for chunk in inputs.chunks(CHUNK_ITEMS):
        images += len(chunk.items)
        referenced += sum(item.reference is not None for item in chunk.items)
        first = first or chunk.items[0].id
    if not images:
        raise CommandError("no input: the folders and lists name no image")
    plan = {"images": images, "references": referenced, "first": first}
    plan |= {"output": writing.output, "format": "jsonl" if layout is None else layout.format}
    if writing.as_json:
        print(json.dumps(plan))
    else:
        known = f", {referenced:,} of them with references" if referenced else ""
        print(f"{counted(images, 'image')}{known}, the first of them {first}", file=sys.stderr)
        print("nothing was read or written", file=sys.stderr)


def _tell_summary(tally: Tally, opened: Opened, writing: Writing) -> None:
    model = opened.engine.model
    if writing.as_json:
        head = {"output": writing.output, "model": model.name, "version": model.version}
        print(json.dumps({**head, **summary.as_json(tally)}))
    elif not writing.quiet:
        for line in summary.as_text(tally):
            print(line, file=sys.stderr)
        if writing.output != _STANDARD_STREAM:
            print(f"rows are in {writing.output}", file=sys.stderr)
