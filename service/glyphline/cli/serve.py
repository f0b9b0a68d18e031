"""`glyphline serve`: a gRPC server with Prometheus metrics."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glyphline.cli.exit_codes import CommandError
from glyphline.cli.options import PrecisionName, ProviderName

if TYPE_CHECKING:
    from pydantic import ValidationError

    from glyphline.service.server import Server
    from glyphline.service.settings import ServerSettings

EXAMPLES = """\b
Examples:
  glyphline serve
  glyphline serve --host 0.0.0.0 --port 8500 --metrics-port 9100 --workers 4
  glyphline serve --model-repository models/ --models digits,digits-ctc:1
  glyphline serve --lexicon streets=streets.txt --language-model letters=letters.arpa
  glyphline serve --host 0.0.0.0 --tls-certificate server.pem --tls-key server.key --tokens tokens.txt
  GLYPHLINE_MAX_QUEUE=4096 glyphline serve --device cuda

\b
Then, from another terminal:
  glyphline recognize cheque.png --server localhost:50051
  curl localhost:9090/metrics

\b
Every option can be given as an environment variable too: GLYPHLINE_PORT, GLYPHLINE_MAX_BATCH, and so on. What stands on
the command line counts more. SIGTERM and Ctrl-C drain: health turns NOT_SERVING, new calls are still taken for
--drain-seconds, those in progress get --grace-seconds, and the exit code is 0. A second signal stops at once, unless it
comes within a second of the first and so is part of it. SIGHUP has --model-repository looked at at once.
"""


class LogFormat(StrEnum):
    """How log lines look."""

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"


class LogLevel(StrEnum):
    """Which log lines are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


# Options that can be given again are named for one, settings for all.
_SINGULAR = {"lexicons": "lexicon", "language_models": "language_model"}


def _number(name: str, help_text: str) -> Any:  # noqa: ANN401  # typer declares its options as Any
    return typer.Option(name, metavar="N", help=help_text)


def serve(
    *,
    host: Annotated[
        str | None, typer.Option(metavar="HOST", help="Address to listen on; 0.0.0.0 is all.  [default: 127.0.0.1]")
    ] = None,
    port: Annotated[int | None, _number("--port", "Port of gRPC; 0 takes any free one.  [default: 50051]")] = None,
    metrics_port: Annotated[
        int | None,
        _number("--metrics-port", "Port of /metrics; 0 takes any free one, -1 turns it off.  [default: 9090]"),
    ] = None,
    metrics_host: Annotated[
        str | None, typer.Option(metavar="HOST", help="Address of /metrics.  [default: that of --host]")
    ] = None,
    tls_certificate: Annotated[
        Path | None,
        typer.Option(metavar="PEM", help="The server's certificate and chain, read again when it changes."),
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="PEM", help="The key of the certificate.")] = None,
    tls_client_ca: Annotated[
        Path | None,
        typer.Option(metavar="PEM", help="Take only clients with a certificate that one of these authorities signed."),
    ] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Take only calls with a token of this file, read again when it changes; `glyphline token` makes one.",
        ),
    ] = None,
    allow_tokens_without_tls: Annotated[
        bool | None,
        typer.Option(
            "--allow-tokens-without-tls/--no-tokens-without-tls",
            help="Take tokens from other machines without TLS, as behind a proxy that ends it.  [default: no]",
        ),
    ] = None,
    workers: Annotated[
        int | None, _number("--workers", "Worker processes; 0 is one per CPU core, or one on each GPU.  [default: 0]")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="cpu|cuda|cuda:N,…",
            help="Where the networks run: cuda is the first GPU, cuda:0,1 are two.  [default: cpu]",
        ),
    ] = None,
    max_gpu_bytes: Annotated[
        int | None,
        _number("--max-gpu-bytes", "Most GPU memory that each graph of a model keeps.  [default: what it takes]"),
    ] = None,
    allow_cpu_fallback: Annotated[
        bool | None,
        typer.Option(
            "--allow-cpu-fallback/--no-cpu-fallback",
            help="Run on the CPU if the device is not there.  [default: no: fail at the start]",
        ),
    ] = None,
    provider: Annotated[
        ProviderName | None, typer.Option(help="What runs the networks on the device.  [default: onnxruntime]")
    ] = None,
    precision: Annotated[
        PrecisionName | None,
        typer.Option(help="int8 is faster; every model must have that variant.  [default: fp32]"),
    ] = None,
    model_repository: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder of models, <name>/<version>/manifest.json.  [default: the models of Glyphline]"
        ),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[:VERSION],…",
            help="Which models to load.  [default: of each the latest version, and those with labels]",
        ),
    ] = None,
    reload_seconds: Annotated[
        float | None,
        _number(
            "--reload-seconds",
            "How often --model-repository is looked at for new versions; 0 is only at SIGHUP.  [default: 5]",
        ),
    ] = None,
    lexicons: Annotated[
        list[str] | None,
        typer.Option(
            "--lexicon",
            metavar="NAME=FILE",
            help="A list of words, one a line, that requests may name; can be given again.  [default: none]",
            show_default=False,
        ),
    ] = None,
    language_models: Annotated[
        list[str] | None,
        typer.Option(
            "--language-model",
            metavar="NAME=FILE",
            help="An ARPA file of characters that requests may name; can be given again.  [default: none]",
            show_default=False,
        ),
    ] = None,
    max_batch: Annotated[
        int | None, _number("--max-batch", "Most images a worker gets at once.  [default: 32]")
    ] = None,
    max_batch_pixels: Annotated[
        int | None,
        _number("--max-batch-pixels", "Most pixels of images a worker gets at once.  [default: 16,000,000]"),
    ] = None,
    max_batch_bytes: Annotated[
        int | None, _number("--max-batch-bytes", "Most bytes of images a worker gets at once.  [default: 16 MiB]")
    ] = None,
    max_queue: Annotated[
        int | None, _number("--max-queue", "Most images that wait; more are refused at once.  [default: 1024]")
    ] = None,
    max_queue_bytes: Annotated[
        int | None, _number("--max-queue-bytes", "Most bytes of images that wait.  [default: 256 MiB]")
    ] = None,
    max_request_images: Annotated[
        int | None, _number("--max-request-images", "Most images in one BatchRecognize.  [default: 256]")
    ] = None,
    max_stream_images: Annotated[
        int | None, _number("--max-stream-images", "Most images of one stream in progress.  [default: 64]")
    ] = None,
    max_message_bytes: Annotated[
        int | None, _number("--max-message-bytes", "Largest message.  [default: 64 MiB]")
    ] = None,
    max_image_bytes: Annotated[
        int | None, _number("--max-image-bytes", "Largest image file.  [default: 20 MiB]")
    ] = None,
    max_pixels: Annotated[
        int | None, _number("--max-pixels", "Largest image, in pixels.  [default: 25,000,000]")
    ] = None,
    max_beam_width: Annotated[
        int | None, _number("--max-beam-width", "Widest beam a request may ask for.  [default: 100]")
    ] = None,
    remembered_readings: Annotated[
        int | None,
        _number("--remembered-readings", "Readings that can still be given their true text.  [default: 10,000]"),
    ] = None,
    drain_seconds: Annotated[
        float | None, _number("--drain-seconds", "How long a stopping server still takes new calls.  [default: 3]")
    ] = None,
    grace_seconds: Annotated[
        float | None, _number("--grace-seconds", "How long calls in progress may then take.  [default: 30]")
    ] = None,
    start_seconds: Annotated[
        float | None, _number("--start-seconds", "How long a worker may take to load its models.  [default: 120]")
    ] = None,
    batch_seconds: Annotated[
        float | None,
        _number("--batch-seconds", "How long a batch may take before its worker is replaced.  [default: 60]"),
    ] = None,
    heartbeat_seconds: Annotated[
        float | None,
        _number(
            "--heartbeat-seconds",
            "How long a worker may give no sign of life before it is replaced.  [default: 15]",
        ),
    ] = None,
    keepalive_seconds: Annotated[
        float | None, _number("--keepalive-seconds", "Idle time before the server pings a connection.  [default: 60]")
    ] = None,
    min_ping_seconds: Annotated[
        float | None, _number("--min-ping-seconds", "Shortest interval of a client's pings.  [default: 10]")
    ] = None,
    max_connection_age_seconds: Annotated[
        float | None,
        _number(
            "--max-connection-age-seconds",
            "Age at which a connection is closed, to balance replicas.  [default: never]",
        ),
    ] = None,
    max_connection_age_grace_seconds: Annotated[
        float | None,
        _number(
            "--max-connection-age-grace-seconds",
            "How long the calls of an aged connection may still take.  [default: 30]",
        ),
    ] = None,
    max_connection_calls: Annotated[
        int | None,
        _number("--max-connection-calls", "Most calls of one connection at once.  [default: 2048]"),
    ] = None,
    max_idle_seconds: Annotated[
        float | None,
        _number(
            "--max-idle-seconds", "How long a connection may have no call, and a stream no message.  [default: 300]"
        ),
    ] = None,
    reflection: Annotated[
        bool | None,
        typer.Option("--reflection/--no-reflection", help="Describe the API to tools like grpcurl.  [default: yes]"),
    ] = None,
    open_inference: Annotated[
        bool | None,
        typer.Option(
            "--open-inference/--no-open-inference",
            help="Serve the Open Inference Protocol as well, for clients of Triton and KServe.  [default: no]",
        ),
    ] = None,
    log_level: Annotated[LogLevel | None, typer.Option(help="Least level of log lines.  [default: info]")] = None,
    log_format: Annotated[
        LogFormat | None,
        typer.Option(help="Shape of log lines; auto is text on a terminal, else JSON.  [default: auto]"),
    ] = None,
    log_sample: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Share of successful calls that are logged, from 0 to 1.  [default: 0.01]"),
    ] = None,
    tracing: Annotated[
        bool | None,
        typer.Option(
            "--tracing/--no-tracing",
            help="Send spans by OpenTelemetry, which OTEL_* variables configure.  [default: no]",
        ),
    ] = None,
) -> None:
    """Serves models over gRPC, and metrics to Prometheus, until it is told to stop."""
    given = {name: value for name, value in locals().items() if value is not None and value != []}
    settings = _settings(given)
    if settings.model_repository is not None and not settings.model_repository.is_dir():
        raise CommandError(
            f"{settings.model_repository}: no such folder; it should hold <name>/<version>/manifest.json"
        )
    from glyphline.service.notify import notify_ready
    from glyphline.service.server import serve as serve_until_stopped

    def on_ready(server: Server) -> None:
        print(_ready_line(server, settings), flush=True)
        notify_ready()

    serve_until_stopped(settings, on_ready)


def _ready_line(server: Server, settings: ServerSettings) -> str:
    models = ", ".join(f"{model.name}:{model.version}" for model in server.catalogue.models)
    metrics_host = _reachable(settings.metrics_host or settings.host)
    metrics = f"metrics at http://{metrics_host}:{server.metrics_port}/metrics"
    where = f"{_reachable(settings.host)}:{server.port}{' over TLS' if settings.tls_certificate else ''}"
    return f"serving {models} at {where}; {metrics if settings.metrics_port >= 0 else 'no metrics'}"


def _reachable(host: str) -> str:
    """Names an address as one would on this machine."""
    return "localhost" if host in ("0.0.0.0", "::", "[::]") else host


def _settings(given: dict[str, Any]) -> ServerSettings:
    """Builds the settings from the options given and, for all others, the environment.

    Raises:
        CommandError: If a value is out of its range; it names the option and the environment variable.
    """
    from pydantic import ValidationError

    from glyphline.service.settings import ServerSettings

    try:
        return ServerSettings(**given)
    except ValidationError as error:
        raise CommandError(_explain(error, given)) from error


def _explain(error: ValidationError, given: dict[str, Any]) -> str:
    problems = []
    for detail in error.errors(include_url=False):
        if not detail["loc"]:  # about several settings, which the message names
            problems.append(detail["msg"].removeprefix("Value error, "))
            continue
        name = str(detail["loc"][0])
        where = f"--{_SINGULAR.get(name, name).replace('_', '-')}" if name in given else f"GLYPHLINE_{name.upper()}"
        message = detail["msg"].removeprefix("Value error, ")
        own = message != detail["msg"]  # a message of ours quotes what it is about
        problems.append(f"{where}: {message}" if own else f"{where}: {message}, not {detail['input']!r}")
    return "; ".join(problems)
