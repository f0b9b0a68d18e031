"""`glyphline transcribe`: reads any number of pictures and writes a row for each, none lost and none twice."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glyphline.cli.access import (
    ServerAccess,
    TlsCaOption,
    TlsCertificateOption,
    TlsKeyOption,
    TlsNameOption,
    TlsOption,
    TokenFileOption,
    check_target,
)
from glyphline.cli.asking import refuse_given, version_number
from glyphline.cli.exit_codes import CommandError
from glyphline.cli.guides import (
    GuideArguments,
    LanguageModelOption,
    LanguageModelWeightOption,
    LengthBonusOption,
    LexiconOption,
    SeveralWordsOption,
)
from glyphline.cli.options import (
    AllowedOption,
    AlternativesOption,
    AskedModelOption,
    AskedVersionOption,
    BeamWidthOption,
    DecoderOption,
    DeviceOption,
    FallbackOption,
    MaxBytesOption,
    MaxPixelsOption,
    PrecisionName,
    PrecisionOption,
    ProviderName,
    ProviderOption,
    RepositoryOption,
    TokensOption,
    decoding_options,
    image_limits,
)
from glyphline.cli.progress import ProgressKind

if TYPE_CHECKING:
    from glyphline.service.jobs import Inputs

STANDARD_STREAM = "-"


class FormatName(StrEnum):
    """How rows are written."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    XML = "xml"


class EngineName(StrEnum):
    """What reads, unless servers do."""

    LOCAL = "local"
    RAY = "ray"


EXAMPLES = """\b
Examples:
  glyphline transcribe scans/ --output texts.jsonl
  glyphline transcribe scans/ --output texts.jsonl --resume          go on with a job that was stopped
  glyphline transcribe 'scans/**/*.tif' extra.png --output texts.csv --workers 8
  glyphline transcribe list.csv --output texts.jsonl --json          columns path, id, text, x, y, w, h
  glyphline transcribe shards/*.tar --output texts/ --format parquet
  glyphline transcribe 'pages/*.xml' --output filled/ --format xml   PAGE and ALTO, texts filled in
  glyphline transcribe s3://bucket/scans/ --output texts.jsonl
  glyphline transcribe scans/ --output texts.jsonl --server localhost:50051,localhost:50052
  glyphline transcribe /shared/scans/ --output texts.jsonl --engine ray --ray-address head:6379
  find scans -name '*.png' | glyphline transcribe --files-from - --output -

\b
A row, in the order of the input:
  {"id": "scans/a.png", "source": "scans/a.png", "text": "1204.50", "confidence": 0.98, "truncated": false,
   "error": null, "model": "digits", "version": 1, "sha256": "…", "decoder": "greedy"}
A picture that cannot be read has "text": null and "error": {"code": "undecodable_image", "message": "…"}; the job goes
on, and its exit code is 3. "text": "" means that there is no writing on the picture.

\b
Folders are searched to any depth for bmp, gif, jpg, pbm, pgm, png, pnm, ppm, tif and webp files, hidden files, links
to folders and what `recognize --show` writes (.reading.png) left out. Files are what their endings say: csv, tsv, jsonl
and parquet are lists (or hold the pictures), tar and zip archives, xml PAGE or ALTO, which folders are not searched
for; any other is a picture.

\b
OUT is written as --format or else its ending says; an ending that is not known needs --format.
OUT takes its name when it is complete. Until then all is in OUT.job (or OUT/_job): a job that was stopped, killed or
out of disk goes on with --resume and ends with the rows that it would have had; other settings are refused.

\b
Exit codes: 0 all read, 3 some pictures were not, 2 an option or input is wrong or no picture is in --references, 4 the
model is missing or damaged, 5 no server or no Ray cluster answers, 6 disk, storage or memory ran out, 130 Ctrl-C,
143 SIGTERM. After 5, 6, 130 and 143, --resume goes on.
"""

GROUPS = {
    "Input": ("paths", "files_from", "references", "limit", "sample", "allow_http", "max_pixels", "max_bytes"),
    "Output": ("output", "format_name", "tokens", "alternatives", "any_order", "resume", "overwrite"),
    "Model": ("model", "version", "repository", "device", "allow_cpu_fallback", "provider", "precision", "workers"),
    "Ray": ("engine", "ray_address"),
    "Server": ("server", "timeout", "tls", "tls_ca", "tls_name", "tls_certificate", "tls_key", "token_file"),
    "Decoding": (
        "decoder",
        "beam_width",
        "allowed",
        "lexicon",
        "several_words",
        "language_model",
        "language_model_weight",
        "length_bonus",
    ),
    "Watching": ("dry_run", "progress", "quiet", "as_json", "metrics_port", "metrics_textfile", "metrics_push"),
}


def transcribe(
    context: typer.Context,
    *,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="File (.jsonl, .csv, .parquet) or folder to write, or - for standard output.  [required]",
            show_default=False,
        ),
    ] = None,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH", help="Pictures, folders, lists, archives, quoted patterns, URIs.", show_default=False
        ),
    ] = None,
    files_from: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="Read the pictures that this file lists, one path a line; - is standard input."
        ),
    ] = None,
    references: Annotated[
        Path | None,
        typer.Option(metavar="labels.tsv", help="True texts (name, tab, text): adds error rates to the summary."),
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Read the first N pictures.")] = None,
    sample: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Read a share of them, as 0.01; always the same ones, chosen by id."),
    ] = None,
    allow_http: Annotated[bool, typer.Option("--allow-http", help="Read web addresses, also those in lists.")] = False,
    max_pixels: MaxPixelsOption = None,
    max_bytes: MaxBytesOption = None,
    format_name: Annotated[
        FormatName | None,
        typer.Option("--format", help="How rows are written.  [default: by the ending of OUT, else jsonl]"),
    ] = None,
    tokens: TokensOption = False,
    alternatives: AlternativesOption = 1,
    any_order: Annotated[
        bool,
        typer.Option("--any-order", help="Write rows as they are done: none waits for a slow one before it."),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the job if it has begun, else begin.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Begin again, and replace what there is.")] = False,
    model: AskedModelOption = None,
    version: AskedVersionOption = None,
    repository: RepositoryOption = None,
    device: DeviceOption = "cpu",
    allow_cpu_fallback: FallbackOption = False,
    provider: ProviderOption = ProviderName.ONNXRUNTIME,
    precision: PrecisionOption = PrecisionName.FP32,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Processes.  [default: one per usable CPU core, of the cluster with --engine ray; at most 4 on a GPU]",
        ),
    ] = None,
    engine: Annotated[
        EngineName, typer.Option(help="What reads: the cores of this machine, or the workers of a Ray cluster.")
    ] = EngineName.LOCAL,
    ray_address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Head of the cluster, or ray://HOST:PORT from outside.  [default: RAY_ADDRESS, else this machine's]",
            show_default=False,
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT,…", help="Ask these servers instead of reading here.", show_default=False),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="With --server: stop when none has answered for so long.")
    ] = 60.0,
    tls: TlsOption = False,
    tls_ca: TlsCaOption = None,
    tls_name: TlsNameOption = None,
    tls_certificate: TlsCertificateOption = None,
    tls_key: TlsKeyOption = None,
    token_file: TokenFileOption = None,
    decoder: DecoderOption = None,
    beam_width: BeamWidthOption = None,
    allowed: AllowedOption = None,
    lexicon: LexiconOption = None,
    several_words: SeveralWordsOption = False,
    language_model: LanguageModelOption = None,
    language_model_weight: LanguageModelWeightOption = None,
    length_bonus: LengthBonusOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Look at all inputs, tell what would be read, and read nothing.")
    ] = False,
    progress: Annotated[
        ProgressKind, typer.Option(help="How to show progress; auto is a bar on a terminal and lines elsewhere.")
    ] = ProgressKind.AUTO,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show neither progress nor summary.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON on standard output.")] = False,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=65_535,
            help="Serve Prometheus metrics on 127.0.0.1 while the job runs; 0: any port.",
        ),
    ] = None,
    metrics_textfile: Annotated[
        Path | None,
        typer.Option(metavar="FILE.prom", help="Write metrics for the node exporter, every 15 s and at the end."),
    ] = None,
    metrics_push: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Push metrics to this Pushgateway, every 15 s and at the end."),
    ] = None,
) -> None:
    """Reads pictures with all cores and writes a row for each; a job that was stopped goes on where it was."""
    from glyphline.cli.transcribing import Reading, Writing, transcribe_all

    if output is None and not dry_run:
        raise typer.BadParameter("give the file or folder to write, or - for standard output", param_hint="--output")
    if as_json and output == STANDARD_STREAM:
        raise CommandError("--json and --output - both want the standard output: write the rows to a file")
    if metrics_textfile is not None and metrics_textfile.suffix != ".prom":
        raise CommandError(f"--metrics-textfile {metrics_textfile}: the node exporter reads files that end in .prom")
    if resume and overwrite:
        raise CommandError("--resume goes on with what there is, --overwrite throws it away: choose one")
    if sample is not None and not 0 < sample < 1:
        raise CommandError(f"--sample {sample:g}: give a share between 0 and 1, as 0.01")
    servers = tuple(each.strip() for each in (server or "").split(",") if each.strip())
    if server is not None and not servers:
        raise CommandError("--server names none: give HOST:PORT, or several with commas between")
    for target in servers:
        check_target(target)
    if not 0 < timeout < float("inf"):
        raise CommandError(f"--timeout {timeout:g}: give seconds, more than 0")
    refuse_given(context, asking=server is not None)
    if engine is EngineName.RAY and server is not None:
        raise CommandError("--engine ray and --server both say what reads: choose one")
    if engine is not EngineName.RAY and ray_address is not None:
        raise CommandError("--ray-address needs --engine ray")
    guides = GuideArguments(lexicon, several_words, language_model, language_model_weight, length_bonus)
    options = guides.add_to(
        decoding_options(decoder, beam_width, alternatives, allowed, tokens), server=server is not None
    )
    options.validate()
    transcribe_all(
        _inputs(paths, files_from, references, allow_http=allow_http, limit=limit, sample=sample),
        Reading(
            options=options,
            guides=guides,
            limits=image_limits(max_bytes, max_pixels),
            model=model,
            version=version if server is not None else version_number(version),
            repository=repository,
            device=device,
            allow_cpu_fallback=allow_cpu_fallback,
            provider=provider.value,
            precision=precision.value,
            workers=workers,
            engine=engine.value,
            ray_address=ray_address,
            servers=servers,
            timeout=timeout,
            access=ServerAccess(tls, tls_ca, tls_certificate, tls_key, token_file, tls_name),
        ),
        Writing(
            output=output,
            format=None if format_name is None else format_name.value,
            start="resume" if resume else "overwrite" if overwrite else "new",
            any_order=any_order,
            references=references,
            dry_run=dry_run,
            progress=progress,
            quiet=quiet,
            as_json=as_json,
            metrics_port=metrics_port,
            metrics_textfile=metrics_textfile,
            metrics_push=metrics_push,
        ),
    )


def _inputs(
    paths: list[str] | None,
    files_from: str | None,
    references: Path | None,
    *,
    allow_http: bool,
    limit: int | None,
    sample: float | None,
) -> Inputs:
    """Checks all inputs that can be checked before any of them is read."""
    from glyphline.service.jobs import Inputs, load_references

    inputs = Inputs(
        tuple(paths or ()),
        files_from,
        {} if references is None else load_references(references),
        allow_http=allow_http,
        limit=limit,
        sample=sample,
    )
    inputs.check()
    return inputs
