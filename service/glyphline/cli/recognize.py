"""`glyphline recognize`: reads a few pictures, in this process or by asking a server."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator
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
)
from glyphline.cli.asking import refuse_given, version_number
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
from glyphline.cli.readers import Answer, read_pictures

if TYPE_CHECKING:
    from glyphline.models.image import ImageLimits

EXAMPLES = """\b
Examples:
  glyphline recognize cheque.png
  glyphline recognize meters/*.jpg --allowed 0123456789 --json
  glyphline recognize cheque.png --show               writes cheque.reading.png
  glyphline recognize cheque.png --alternatives 3     needs no --decoder beam: it is implied
  glyphline recognize street.png --model words --lexicon streets.txt
  glyphline recognize letter.png --model words --language-model letters.arpa
  glyphline recognize cheque.png --server localhost:50051
  glyphline recognize cheque.png --server host:50051 --tls-ca ca.pem --token-file counter.token
  scan | glyphline recognize -

\b
Prints a table on a terminal, and elsewhere a line for each picture that could be read: file, tab, text (and further
tabs and texts with --alternatives). A tab or a line end in a file's name is written %09 or %0A, as in labels.tsv.
Pictures that could not be read are named on standard error; the others are read all the same, and the exit code is 3.

\b
--lexicon and --language-model mean the beam search. With --server, --lexicon is a file, whose words are sent (at most
5000), or the name of a lexicon that the server has loaded, and --language-model the name of such a model.
"""


def recognize(
    context: typer.Context,
    *,
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="Pictures; - reads one from standard input.", show_default=False)
    ],
    model: AskedModelOption = None,
    version: AskedVersionOption = None,
    repository: RepositoryOption = None,
    server: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Ask this server instead of reading here.", show_default=False),
    ] = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="With --server: how long it may take.")] = 30.0,
    tls: TlsOption = False,
    tls_ca: TlsCaOption = None,
    tls_name: TlsNameOption = None,
    tls_certificate: TlsCertificateOption = None,
    tls_key: TlsKeyOption = None,
    token_file: TokenFileOption = None,
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
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
    show: Annotated[
        bool,
        typer.Option(
            "--show",
            help="Draw the reading over each picture, into <name>.reading.png beside it (`transcribe` passes over it).",
        ),
    ] = False,
    show_output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="With --show: the folder for the drawings.", show_default=False)
    ] = None,
    device: DeviceOption = "cpu",
    allow_cpu_fallback: FallbackOption = False,
    provider: ProviderOption = ProviderName.ONNXRUNTIME,
    precision: PrecisionOption = PrecisionName.FP32,
    max_pixels: MaxPixelsOption = None,
    max_bytes: MaxBytesOption = None,
) -> None:
    """Reads pictures and prints their texts."""
    if files.count("-") > 1:
        raise CommandError("- can be given once only: standard input holds one picture")
    if tokens and not as_json:
        raise CommandError("--tokens needs --json: lines and tables have no room for characters; --show draws them")
    if not 0 < timeout < math.inf:
        raise CommandError(f"--timeout {timeout:g}: give the seconds that the server may take, more than 0")
    refuse_given(context, asking=server is not None)
    show = show or show_output is not None
    guides = GuideArguments(lexicon, several_words, language_model, language_model_weight, length_bonus)
    options = decoding_options(decoder, beam_width, alternatives, allowed, tokens or show)
    options = guides.add_to(options, server=server is not None)
    options.validate()
    limits = image_limits(max_bytes, max_pixels)
    if server is not None:
        from glyphline.cli.remote import server_reader

        access = ServerAccess(tls, tls_ca, tls_certificate, tls_key, token_file, tls_name)
        opened = server_reader(server, model, version, options, timeout, access)
    else:
        from glyphline.cli.local import local_reader
        from glyphline.cli.selection import find_bundle

        bundle = find_bundle(model, version_number(version), repository)
        tell_left_out(options, bundle.manifest, "recognize")
        opened = local_reader(
            bundle,
            options,
            limits,
            device=device,
            allow_cpu_fallback=allow_cpu_fallback,
            provider=provider.value,
            precision=precision.value,
        )
    with opened as reader:
        answers = read_pictures(files, reader, limits)
        if show:
            answers = _drawn(answers, show_output, limits)
        failed = _print(answers, as_json=as_json, alternatives=alternatives > 1, tokens=tokens)
    if failed:
        raise typer.Exit(ExitCode.IMAGES)


def _print(answers: Iterable[Answer], *, as_json: bool, alternatives: bool, tokens: bool) -> int:
    """Prints answers as they come, or a table of them all on a terminal; returns how many have an error."""
    from glyphline.service.jobs import RowError
    from glyphline.service.jobs.rows import one_cell

    if not as_json and sys.stdout.isatty():
        from glyphline.cli.tables import print_readings

        return print_readings([answer.row for answer in answers], alternatives=alternatives)
    failed = 0
    for answer in answers:
        row = answer.row
        values = row.as_json(alternatives=alternatives, tokens=tokens)
        if as_json:
            print(json.dumps(values, ensure_ascii=False), flush=True)
        elif not isinstance(row.outcome, RowError):
            texts = [each.text for each in row.outcome.alternatives] if alternatives else [row.outcome.text]
            print("\t".join(map(one_cell, [values["source"], *texts])), flush=True)
        if isinstance(row.outcome, RowError):
            failed += 1
            tell(f"{one_cell(values['source'])}: {row.outcome.message}", "recognize")
    return failed


def _drawn(answers: Iterable[Answer], folder: Path | None, limits: ImageLimits) -> Iterator[Answer]:
    """Passes answers on and draws each on the way."""
    from glyphline.cli.pictures import PictureFolder
    from glyphline.models.image import read_image
    from glyphline.service.drawing import draw_reading
    from glyphline.service.jobs import RowError

    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    names = PictureFolder(folder)
    for answer in answers:
        content, row = answer.picture.content, answer.row
        if isinstance(content, bytes) and not isinstance(row.outcome, RowError):
            path = names.path_for(row.source)
            drawing = draw_reading(read_image(content, limits), row.outcome, f"{row.model} {row.version}")
            drawing.save(path)
            tell(f"drew {path}", "recognize")
        yield answer
