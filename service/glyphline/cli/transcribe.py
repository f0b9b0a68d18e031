"""`glyphline transcribe`: reads any number of images on this machine and writes a row of JSON for each."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from glyphline.cli.exit_codes import CommandError, ExitCode
from glyphline.cli.group import tell
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
    AllowedOption,
    AlternativesOption,
    BeamWidthOption,
    DecoderOption,
    DeviceOption,
    FallbackOption,
    MaxBytesOption,
    MaxPixelsOption,
    ModelOption,
    PrecisionName,
    PrecisionOption,
    ProviderName,
    ProviderOption,
    RepositoryOption,
    TokensOption,
    VersionOption,
    decoding_options,
    image_limits,
)
from glyphline.cli.progress import Reporter, open_reporter
from glyphline.cli.selection import find_bundle

if TYPE_CHECKING:
    from glyphline.models.bundle import Bundle, Precision
    from glyphline.models.decoding import DecodingOptions
    from glyphline.models.image import ImageLimits
    from glyphline.models.session import Device, Provider
    from glyphline.service.jobs import Job, JsonLinesWriter, StreamWriter, Summary

STANDARD_STREAM = "-"

EXAMPLES = """\b
Examples:
  glyphline transcribe scans/ --output texts.jsonl
  glyphline transcribe 'scans/**/*.tif' extra.png --output texts.jsonl --workers 8
  glyphline transcribe scans/ --output texts.jsonl --references scans/labels.tsv --json
  glyphline transcribe scans/ --output texts.jsonl --lexicon streets.txt
  glyphline transcribe scans/ --output texts.jsonl --language-model letters.arpa --length-bonus 0.5
  find scans -name '*.png' | glyphline transcribe --files-from - --output -

\b
A row, in the order of the input:
  {"source": "scans/a.png", "text": "1204.50", "confidence": 0.98, "truncated": false, "error": null,
   "model": "digits", "version": 1}
An image that cannot be read has "text": null and "error": {"code": "undecodable_image", "message": "…"}; the job goes
on, and its exit code is 3. "text": "" means that there is no writing on the image.

\b
Folders are searched to any depth for bmp, gif, jpg, pbm, pgm, png, pnm, ppm, tif and webp files, hidden files and links
to folders left out; files that are named or matched by a pattern are read whatever their name. Rows are written to
OUT.jsonl.partial, which is renamed when it is complete; a stopped job leaves the partial file and no OUT.jsonl.
"""


def transcribe(
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="OUT.jsonl", help="The file to write, or - for standard output.")
    ],
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATH", help="Images, folders, or quoted patterns.", show_default=False),
    ] = None,
    model: ModelOption = None,
    version: VersionOption = None,
    repository: RepositoryOption = None,
    files_from: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="Read the images that this file lists, one path a line; - is standard input."
        ),
    ] = None,
    references: Annotated[
        Path | None,
        typer.Option(metavar="labels.tsv", help="True texts (name, tab, text): adds error rates to the summary."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Processes.  [default: one per usable CPU core]")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the output if it exists.")] = False,
    decoder: DecoderOption = None,
    beam_width: BeamWidthOption = None,
    alternatives: AlternativesOption = 1,
    allowed: AllowedOption = None,
    lexicon: LexiconOption = None,
    several_words: SeveralWordsOption = False,
    language_model: LanguageModelOption = None,
    language_model_weight: LanguageModelWeightOption = None,
    length_bonus: LengthBonusOption = None,
    tokens: TokensOption = False,
    device: DeviceOption = "cpu",
    allow_cpu_fallback: FallbackOption = False,
    provider: ProviderOption = ProviderName.ONNXRUNTIME,
    precision: PrecisionOption = PrecisionName.FP32,
    max_pixels: MaxPixelsOption = None,
    max_bytes: MaxBytesOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON on standard output.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show neither progress nor summary.")] = False,
) -> None:
    """Reads images with all cores and writes one JSON object a line."""
    if as_json and output == STANDARD_STREAM:
        raise CommandError("--json and --output - both want the standard output: write the rows to a file")
    sources = _Sources(tuple(paths or ()), files_from)
    sources.check()
    writer = _open_writer(output, overwrite)
    bundle = find_bundle(model, version, repository)
    guides = GuideArguments(lexicon, several_words, language_model, language_model_weight, length_bonus)
    options = guides.add_to(decoding_options(decoder, beam_width, alternatives, allowed, tokens))
    options.validate()
    tell_left_out(options, bundle.manifest, "transcribe")
    job = _plan(
        bundle,
        options,
        references,
        workers,
        device=device,
        allow_cpu_fallback=allow_cpu_fallback,
        provider=provider.value,
        precision=precision.value,
        limits=image_limits(max_bytes, max_pixels),
    )
    reporter = open_reporter(quiet=quiet, count=sources.count if sources.countable else None)
    with _termination_raised(), writer, reporter:
        summary = _run(job, sources, writer, reporter)
    if as_json:
        print(json.dumps({"output": output, "model": job.model, "version": job.version, **summary.as_json()}))
    elif not quiet:
        _print_summary(summary, output)
    if references is not None and not summary.error_rate.n:
        tell(f"none of the images is listed in {references}; its names are relative to its folder", "transcribe")
    if summary.failed:
        raise typer.Exit(ExitCode.IMAGES)


@dataclass(frozen=True, slots=True)
class _Sources:
    """The images of a job: what was named, then what a list names."""

    paths: tuple[str, ...]
    files_from: str | None

    def check(self) -> None:
        """Raises an error now for a path that the job would stumble over later."""
        from glyphline.service.jobs.inputs import check_inputs

        if self.paths or self.files_from is None:
            check_inputs(self.paths)
        if self.files_from not in (None, STANDARD_STREAM) and not Path(str(self.files_from)).is_file():
            raise CommandError(f"{self.files_from}: no such file")

    @property
    def countable(self) -> bool:
        """Whether the images can be gone through twice."""
        return self.files_from != STANDARD_STREAM

    def count(self) -> int:
        """Goes through all images."""
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[str]:
        from glyphline.service.jobs import find_images, paths_from_list

        yield from find_images(self.paths)
        if self.files_from == STANDARD_STREAM:
            yield from paths_from_list(sys.stdin.buffer)
        elif self.files_from is not None:
            with open(self.files_from, "rb") as lines:
                yield from paths_from_list(lines)


def _open_writer(output: str, overwrite: bool) -> JsonLinesWriter | StreamWriter:
    from glyphline.service.jobs import JsonLinesWriter, StreamWriter

    if output == STANDARD_STREAM:
        return StreamWriter(sys.stdout)
    return JsonLinesWriter(Path(output), overwrite=overwrite)


def _plan(
    bundle: Bundle,
    options: DecodingOptions,
    references: Path | None,
    workers: int | None,
    *,
    device: Device,
    allow_cpu_fallback: bool,
    provider: Provider,
    precision: Precision,
    limits: ImageLimits,
) -> Job:
    """Checks all that can be checked before the first process starts."""
    from glyphline.models.alphabet import Alphabet
    from glyphline.models.session import available_threads
    from glyphline.service.jobs import Job, WorkerSettings, load_references

    manifest = bundle.manifest
    options.validate(Alphabet(manifest.alphabet))
    return Job(
        settings=WorkerSettings(
            bundle.path, device, allow_cpu_fallback, options, limits, provider=provider, precision=precision
        ),
        model=manifest.name,
        version=manifest.version,
        workers=workers or (available_threads() if device == "cpu" else 1),
        references={} if references is None else load_references(references),
    )


def _run(job: Job, sources: Iterable[str], writer: JsonLinesWriter | StreamWriter, reporter: Reporter) -> Summary:
    from glyphline.service.jobs import Summary
    from glyphline.service.jobs import transcribe as read_all

    options = job.settings.options
    summary = Summary()
    with closing(read_all(sources, job)) as rows:  # closing: the workers end before the output does
        for row in rows:
            writer.write(row.as_json(alternatives=options.max_alternatives > 1, tokens=options.token_details))
            summary.add(row)
            reporter.update(summary.images, summary.failed)
    if not summary.images:
        raise CommandError("no input: the folders and lists name no image")
    return summary


def _print_summary(summary: Summary, output: str) -> None:
    for line in summary.as_text():
        print(line, file=sys.stderr)
    if output != STANDARD_STREAM:
        print(f"rows are in {output}", file=sys.stderr)


@contextmanager
def _termination_raised() -> Iterator[None]:
    """Makes SIGTERM end the job as Ctrl-C does, with its workers stopped and its partial file closed."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise SystemExit(ExitCode.TERMINATED)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
