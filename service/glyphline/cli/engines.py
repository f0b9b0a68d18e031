"""The engines that `glyphline transcribe` can choose from, opened by what its options say."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyphline.cli.access import advised
from glyphline.cli.exit_codes import CommandError
from glyphline.cli.group import tell
from glyphline.cli.guides import tell_left_out
from glyphline.cli.selection import find_bundle
from glyphline.models.decoding import DecodingOptions
from glyphline.models.manifest import MANIFEST_NAME
from glyphline.models.session import most_workers
from glyphline.service.jobs import Engine, LocalEngine, ModelIdentity, WorkerSettings, usual_workers

if TYPE_CHECKING:
    from glyphline.cli.transcribing import Reading
    from glyphline.service.client import Client

__all__ = ["Opened", "open_engine"]


@dataclass(frozen=True, slots=True)
class Opened:
    """An engine that is ready to be entered."""

    engine: Engine


def open_engine(reading: Reading) -> AbstractContextManager[Opened]:
    """Chooses the engine that the options ask for."""
    if reading.servers:
        return _server_engine(reading)
    return _ray_engine(reading) if reading.engine == "ray" else _local_engine(reading)


@contextmanager
def _local_engine(reading: Reading) -> Iterator[Opened]:
    """Reads with the processes of this machine."""
    if reading.workers is not None and reading.workers > (most := most_workers()):
        raise CommandError(f"--workers {reading.workers}: at most {most} here; as many as there are cores are fastest")
    settings, identity = _prepare(reading)
    yield Opened(LocalEngine(settings, identity, reading.workers or usual_workers(reading.device)))


@contextmanager
def _ray_engine(reading: Reading) -> Iterator[Opened]:
    """Connects to a Ray cluster."""
    from glyphline.service.jobs.engines.ray import RayEngine, connected, usual_readers

    if reading.device not in ("cpu", "cuda"):
        raise CommandError(f"--device {reading.device}: Ray chooses the GPU of each worker; give --device cuda")
    settings, identity = _prepare(reading)
    with connected(reading.ray_address):
        yield Opened(RayEngine(settings, identity, reading.workers or usual_readers(reading.device)))


def _prepare(reading: Reading) -> tuple[WorkerSettings, ModelIdentity]:
    """Checks the model and all that can be checked before the first process starts."""
    from glyphline.models.alphabet import Alphabet

    assert not isinstance(reading.version, str)
    bundle = find_bundle(reading.model, reading.version, reading.repository)
    tell_left_out(reading.options, bundle.manifest, "transcribe")
    reading.options.validate(Alphabet(bundle.manifest.alphabet))
    manifest = bundle.manifest
    identity = ModelIdentity(
        manifest.name,
        manifest.version,
        hashlib.sha256(bundle.file(MANIFEST_NAME).read_bytes()).hexdigest(),
        _decoder(reading.options, reading.options.width(manifest.decoder)),
    )
    settings = WorkerSettings(
        bundle.path,
        reading.device,
        reading.allow_cpu_fallback,
        reading.options,
        reading.limits,
        provider=reading.provider,
        precision=reading.precision,
    )
    return settings, identity


@contextmanager
def _server_engine(reading: Reading) -> Iterator[Opened]:
    """Connects to every server and makes sure that all that answer hold the same model; the others are left out."""
    from glyphline.models.manifest import DecoderDefaults
    from glyphline.service.client import ModelInfo, UnavailableError
    from glyphline.service.jobs.engines.server import ServerEngine, ServerPlan

    with ExitStack() as stack:
        answering: dict[str, Client] = {}
        known: ModelInfo | None = None
        for target in reading.servers:
            client = stack.enter_context(reading.access.client(target, reading.timeout))
            try:
                # The first to answer says which model and version; the others must have the same.
                with reading.access.connecting(target):
                    info = client.get_model(
                        *(known.name, known.version) if known else (reading.model or "", reading.version)
                    )
            except UnavailableError as error:
                if target == reading.servers[-1] and not answering:
                    raise
                tell(
                    f"{target} is left out, as it does not answer: {advised(error.reason, error.message)}", "transcribe"
                )
                continue
            if known and info.sha256 != known.sha256:
                raise CommandError(
                    f"{target} has another {info.name} {info.version} than {next(iter(answering))}: rows would depend "
                    "on which is asked; give both the same bundle"
                )
            if info.default_decoder not in ("greedy", "beam"):
                raise CommandError(f"{target}: a server of another version; it decodes by {info.default_decoder}")
            known = info
            answering[target] = client
        assert known is not None
        defaults = DecoderDefaults.model_validate(
            {"name": known.default_decoder, "beam_width": max(1, known.default_beam_width)}
        )
        decoder = _decoder(reading.options, reading.options.width(defaults))
        plan = ServerPlan(known.name, known.version, reading.options, reading.limits, patience=reading.timeout)
        identity = ModelIdentity(known.name, known.version, known.sha256 or None, decoder)
        yield Opened(ServerEngine(list(answering.values()), plan, identity))


def _decoder(options: DecodingOptions, width: int) -> str:
    guides = [name for name in ("lexicon", "language model") if getattr(options, name.replace(" ", "_")) is not None]
    return ("greedy" if width == 1 else f"beam {width}") + (f" with {' and '.join(guides)}" if guides else "")
