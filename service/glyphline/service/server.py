"""The life of a server: it binds, loads, serves, drains and ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from glyphline.models.errors import GlyphlineError
from glyphline.models.recognizer import MAX_COLUMNS
from glyphline.recognition.v1 import recognition_pb2, recognition_pb2_grpc
from glyphline.service.addresses import bracketed, check_address
from glyphline.service.admission import Admission
from glyphline.service.batcher import Batcher, Done, Item
from glyphline.service.batching import BatchQueue
from glyphline.service.catalogue import ServedModel
from glyphline.service.closing import ClosingInterceptor
from glyphline.service.entries import BatchLimits
from glyphline.service.errors import StartError
from glyphline.service.feedback_service import FeedbackServicer
from glyphline.service.grpc_metrics import MetricsInterceptor
from glyphline.service.grpc_options import grpc_options
from glyphline.service.guides import load_guides
from glyphline.service.health import Health
from glyphline.service.logs import configure_logging
from glyphline.service.memory import keep_what_is_here
from glyphline.service.messages import WorkerConfig
from glyphline.service.metrics import Metrics
from glyphline.service.metrics_endpoint import MetricsEndpoint
from glyphline.service.model_service import ModelServicer
from glyphline.service.output import quiet_decoders
from glyphline.service.parsing import ParsingInterceptor
from glyphline.service.pipeline import Pipeline
from glyphline.service.references import RecentReadings
from glyphline.service.reloading import Models
from glyphline.service.security.protection import Protection
from glyphline.service.servicer import RecognitionServicer
from glyphline.service.settings import ServerSettings, unknown_variables
from glyphline.service.tracing import open_tracing
from glyphline.service.worker_handle import BEATS
from glyphline.service.worker_pool import WorkerPool

if TYPE_CHECKING:
    from glyphline.service.open_inference import Statistics

__all__ = ["Server", "run", "serve"]

logger = logging.getLogger(__name__)

EXIT_FAILED = 1
_SAME_SIGNAL_SECONDS = 1.0
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Server:
    """A server in this process's event loop, with its workers in processes of their own.

    Args:
        settings: How it serves.

    Raises:
        GlyphlineError: If its models cannot be found or are damaged.
    """

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        clock = asyncio.get_running_loop().time
        self.metrics = Metrics()
        self.models = Models(settings.model_repository, settings.models, self.metrics)
        self.catalogue = self.models.catalogue
        self.metrics.add_models(self.catalogue)
        self.guides = load_guides(settings.lexicons, settings.language_models)
        self._services = list(recognition_pb2.DESCRIPTOR.services_by_name.values())
        self._statistics: Statistics | None = None
        if settings.open_inference:
            from glyphline.service import open_inference  # noqa: PLC0415  # its package says why

            self._services.append(open_inference.SERVICE)
            self._statistics = open_inference.Statistics(self.catalogue, self.metrics)
        self._health = Health(service.full_name for service in self._services)
        self._health.set_models(self.catalogue.health_names)
        queue: BatchQueue[Item, Done] = BatchQueue(
            max_items=settings.max_queue,
            max_bytes=settings.max_queue_bytes,
            limits=BatchLimits(
                items=settings.max_batch,
                pixels=settings.max_batch_pixels,
                work=MAX_COLUMNS,
                size=settings.max_batch_bytes,
            ),
            clock=clock,
        )
        batcher = Batcher(
            queue,
            self.metrics,
            batch_seconds=settings.batch_seconds,
            clock=clock,
            on_batch=None if self._statistics is None else self._statistics.observe_batch,
        )
        self.workers = WorkerPool(
            settings.worker_count,
            start_seconds=settings.start_seconds,
            silence_seconds=settings.heartbeat_seconds,
            on_idle=batcher.schedule,
            on_change=self._on_worker_change,
            on_loss=self.metrics.worker_losses.inc,
        )
        batcher.attach(self.workers)
        admission = Admission(
            self.catalogue,
            limits=settings.limits,
            max_beam_width=settings.max_beam_width,
            guides=self.guides,
            ready=lambda: self.workers.living > 0,
            metrics=self.metrics,
        )
        self._pipeline = Pipeline(admission, batcher, RecentReadings(settings.remembered_readings), self.metrics)
        self._calls = MetricsInterceptor(self.metrics.registry, self._services)
        self._closing = ClosingInterceptor(self.metrics)
        self._protection = Protection(settings, self.metrics)
        self._tracing = open_tracing() if settings.tracing else None
        self._server = self._make_server()
        self._metrics_endpoint: MetricsEndpoint | None = None
        self._following: asyncio.Task[None] | None = None
        self.port = 0
        self.metrics_port = 0

    async def start(self) -> None:
        """Binds the ports, then loads the models; calls are refused as not ready until that is done.

        Raises:
            StartError: If a port is taken, or a worker cannot load the models.
        """
        settings = self._settings
        check_address(settings.host, settings.port)
        try:
            self.port = self._protection.bind(self._server, f"{bracketed(settings.host)}:{settings.port}")
        except RuntimeError as error:
            raise StartError(f"cannot listen on {settings.host}:{settings.port}: {error}") from error
        if settings.metrics_port >= 0:
            self._metrics_endpoint = MetricsEndpoint(
                settings.metrics_host or settings.host, settings.metrics_port, self.metrics.registry
            )
            self.metrics_port = self._metrics_endpoint.port
        await self._server.start()
        self._protection.follow()
        logger.info("listening", extra={"host": settings.host, "port": self.port, "metrics_port": self.metrics_port})
        await self.models.start(self.workers, self._configure)
        self._on_model_change()
        if settings.model_repository is not None:
            following = self.models.follow(settings.reload_seconds, self._pipeline.in_progress, self._on_model_change)
            self._following = asyncio.create_task(following)
        names = [f"{model.name}:{model.version}" for model in self.catalogue.models]
        providers = sorted(set(self.workers.providers.values()))
        guides = {"lexicons": sorted(self.guides.lexicons), "language_models": sorted(self.guides.language_models)}
        logger.info("ready", extra={"models": names, "workers": self.workers.pids, "providers": providers} | guides)

    async def stop(self, *, drain_seconds: float = 0.0, grace_seconds: float = 0.0) -> None:
        """Stops serving without losing a call that was taken.

        Args:
            drain_seconds: How long new calls are still taken, while health says that they should go elsewhere.
            grace_seconds: How long calls in progress may then take.
        """
        self._health.stop()
        self.metrics.set_models_ready(self.catalogue, False)
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait({self._following})
        if drain_seconds:
            logger.info("draining", extra={"seconds": drain_seconds})
            await asyncio.sleep(drain_seconds)
        self._health.close()
        await self._closing.close(self._server.stop, lambda: self._calls.in_progress, grace_seconds=grace_seconds)
        await self.workers.stop()
        self.models.close()
        await self._protection.close()
        if self._tracing is not None:
            await self._tracing.close()
        if self._metrics_endpoint is not None:
            await self._metrics_endpoint.close()
            self._metrics_endpoint = None

    def kill(self) -> None:
        """Ends the workers at once."""
        self.workers.kill()
        self.models.close()

    def _configure(self, models: Iterable[ServedModel]) -> WorkerConfig:
        """Makes what a worker is to hold."""
        settings = self._settings
        manifests = {model.path: model.manifest_sha256 for model in models}
        return WorkerConfig(
            models=tuple(manifests),
            manifests=manifests,
            device=settings.device,
            allow_cpu_fallback=settings.allow_cpu_fallback,
            provider=settings.provider,
            precision=settings.precision,
            threads=settings.worker_threads,
            max_gpu_bytes=settings.max_gpu_bytes,
            limits=settings.limits,
            max_batch=settings.max_batch,
            lexicons=settings.lexicons,
            language_models=settings.language_models,
            beat_seconds=settings.heartbeat_seconds / BEATS,
        )

    def _on_model_change(self) -> None:
        """Follows the catalogue."""
        self._pipeline.admission.forget()
        self.metrics.add_models(self.catalogue)
        self.metrics.set_models_ready(self.catalogue, self._health.serving)
        self._tell_providers()
        self._health.set_models(self.catalogue.health_names)

    def _on_worker_change(self, living: int) -> None:
        """Follows the workers: a server without any is not ready."""
        self.metrics.workers.set(living)
        self._health.set_serving(living > 0)
        self.metrics.set_models_ready(self.catalogue, self._health.serving)
        self._tell_providers()  # another worker may have come up on another device

    def _tell_providers(self) -> None:
        self.metrics.set_providers(self.catalogue, self.workers.providers, self._settings.device)

    def _make_server(self) -> grpc.aio.Server:
        """Makes the gRPC server with all its services."""
        settings = self._settings
        server = grpc.aio.server(
            interceptors=[
                self._closing,
                *self._protection.door(self._calls),
                self._calls,
                *([] if self._tracing is None else [self._tracing]),
                ParsingInterceptor(),
                self._protection.limits,
            ],
            options=grpc_options(settings),
        )
        recognition_pb2_grpc.add_RecognitionServiceServicer_to_server(
            RecognitionServicer(
                self._pipeline,
                self.metrics,
                max_request_images=settings.request_images,
                max_stream_images=settings.max_stream_images,
            ),
            server,
        )
        recognition_pb2_grpc.add_ModelServiceServicer_to_server(
            ModelServicer(self.catalogue, lambda: self.workers.providers), server
        )
        recognition_pb2_grpc.add_FeedbackServiceServicer_to_server(FeedbackServicer(self._pipeline), server)
        if self._statistics is not None:
            from glyphline.service import open_inference  # noqa: PLC0415

            servicer = open_inference.OpenInferenceServicer(
                self._pipeline,
                self.catalogue,
                self._statistics,
                self.metrics,
                limits=self._protection.limits,
                settings=settings,
                ready=lambda: self._health.serving,
            )
            open_inference.add_to_server(servicer, server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        if settings.reflection:
            health_name = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
            names = [*(service.full_name for service in self._services), health_name]
            reflection.enable_server_reflection([*names, reflection.SERVICE_NAME], server)
        return server


def run(settings: ServerSettings, on_ready: Callable[[Server], None] | None = None) -> int:
    """Serves like `serve`, but tells in the log why the server cannot start.

    Args:
        settings: How to serve.
        on_ready: Called once the server is ready.

    Returns:
        The exit code: 0 after an orderly end, 1 if the server could not start.
    """
    try:
        serve(settings, on_ready)
    except GlyphlineError as error:
        logger.error("cannot start: %s", error)
        return EXIT_FAILED
    return 0


def serve(settings: ServerSettings, on_ready: Callable[[Server], None] | None = None) -> None:
    """Serves until SIGTERM or SIGINT, then drains; a second signal ends the process at once.

    Signals within a second of the first count as the first: one order to stop often comes twice, as when a terminal or
    `timeout` sends it to a group of processes and a parent passes it on.

    Workers are started as new processes that import the program's main module: a script that calls this must do so
    under `if __name__ == "__main__":`.

    Args:
        settings: How to serve.
        on_ready: Called once the server is ready.

    Raises:
        GlyphlineError: If the server cannot start. The message says what to change.
    """
    configure_logging(settings)
    quiet_decoders()
    for name, meant in unknown_variables(os.environ):
        hint = f"did you mean {meant}?" if meant else "see `glyphline serve --help`"
        logger.warning("%s is no setting and changes nothing; %s", name, hint)
    for variable in _THREAD_VARIABLES:
        os.environ.setdefault(variable, "1")  # for the workers: each has one core to itself
    asyncio.run(_serve(settings, on_ready))


async def _serve(settings: ServerSettings, on_ready: Callable[[Server], None] | None) -> None:
    stop = asyncio.Event()
    server = Server(settings)
    loop = asyncio.get_running_loop()
    stopped_at = 0.0

    def on_signal(number: signal.Signals) -> None:
        nonlocal stopped_at
        if stop.is_set():
            if loop.time() - stopped_at < _SAME_SIGNAL_SECONDS:
                return
            logger.warning("second signal: ending at once", extra={"signal": number.name})
            server.kill()
            os._exit(128 + number)
        logger.info("stopping", extra={"signal": number.name})
        stopped_at = loop.time()
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    if settings.model_repository is not None:  # else the end of a terminal ends the server, as is usual
        loop.add_signal_handler(signal.SIGHUP, server.models.ask)
    stopping = asyncio.create_task(stop.wait())
    starting = asyncio.create_task(server.start())
    try:
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            keep_what_is_here()
            if on_ready is not None:
                on_ready(server)
            await stopping
            await server.stop(drain_seconds=settings.drain_seconds, grace_seconds=settings.grace_seconds)
        else:
            starting.cancel()
            with suppress(asyncio.CancelledError):
                await starting
            await server.stop()
    except BaseException:
        stopping.cancel()
        await server.stop()
        raise
    logger.info("stopped")
