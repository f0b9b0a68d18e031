"""The models of a running server: opened at the start, and exchanged while it serves.

A new version is verified here, copied, and loaded by new workers before any request is given to it; what is wrong with
it leaves all as it was. A version that is not wanted any more is dropped once the reads that began before have ended.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from glyphline.models.bundle import load_bundle
from glyphline.models.errors import GlyphlineError
from glyphline.models.repository import ModelRepository, pretrained_root
from glyphline.service.catalogue import Catalogue, ServedModel
from glyphline.service.copies import Copies
from glyphline.service.errors import ModelRefusedError, SettingError, StartError
from glyphline.service.in_progress import InProgress
from glyphline.service.messages import ModelKey, WorkerConfig
from glyphline.service.metrics import Metrics
from glyphline.service.selection import Choice, Selection, Signature, signature
from glyphline.service.worker_pool import WorkerPool

__all__ = ["Models"]

logger = logging.getLogger(__name__)


class Models:
    """Keeps the catalogue and the workers at what the repository says.

    Args:
        root: The model repository; None for the models that come with Glyphline.
        wanted: `name` or `name:version` of each model; None for all.
        metrics: What is counted.

    Raises:
        SettingError: If there is nothing to serve, or a version is no number.
        ModelNotFoundError: If a wanted model is not there.
        BundleError: If all that there is of a model is damaged, or labels are.
    """

    def __init__(self, root: Path | None, wanted: Sequence[str] | None, metrics: Metrics) -> None:
        self._root = root or pretrained_root()
        self._repository = ModelRepository([self._root])
        if not self._repository.names():
            lacking = f"{self._root}: no model here; a repository has <name>/<version>/manifest.json"
            raise SettingError("; ".join([lacking, *self._repository.passed_over()]))
        self._metrics = metrics
        self._selection = Selection(self._repository, wanted)
        self._copies = None if root is None else Copies()
        self._held: dict[ModelKey, ServedModel] = {}
        self._folders: dict[ModelKey, Path] = {}  # of the originals
        self._signatures: dict[ModelKey, Signature] = {}
        self._seen: Signature = ()
        self._away = False  # the repository, for now
        self._choice = Choice({}, {}, ())
        self._asked = asyncio.Event()
        self._open()
        default = wanted[0].partition(":")[0] if wanted else None
        self.catalogue = Catalogue(self._held.values(), default, self._choice.labels)

    async def start(self, pool: WorkerPool, configure: Callable[[Iterable[ServedModel]], WorkerConfig]) -> None:
        """Starts the workers with the models. If they refuse one, an earlier version takes its place.

        Args:
            pool: The workers.
            configure: Makes what a worker is to hold.

        Raises:
            StartError: If they cannot start.
        """
        self._pool, self._configure = pool, configure
        while True:
            try:
                await pool.start(configure(self._held.values()))
                break
            except ModelRefusedError as error:
                refused = next(model for model in self._held.values() if model.path == error.folder)
                self._refuse(refused, error)
                self._open()
                self.catalogue.replace(self._held.values(), self._choice.labels)
        for model in self._held.values():
            self._metrics.model_loads.labels(model.name, "loaded").inc()
        self._seen = signature(self._root)

    async def follow(self, seconds: float, reads: InProgress, on_change: Callable[[], None]) -> None:
        """Looks at the repository again and again, for ever.

        Args:
            seconds: How often; 0 for only when asked.
            reads: The reads in progress, which end before what they may use is dropped.
            on_change: Called when the catalogue has changed.
        """
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), seconds or None)
            forced = self._asked.is_set()
            self._asked.clear()
            try:
                await self._update(forced, reads, on_change)
            except Exception:
                logger.exception("models cannot be brought up to date")

    def close(self) -> None:
        """Removes what was copied."""
        if self._copies is not None:
            self._copies.close()

    def ask(self) -> None:
        """Has the repository looked at now, and what was refused tried again."""
        self._asked.set()

    async def _update(self, forced: bool, reads: InProgress, on_change: Callable[[], None]) -> None:
        problem, seen = await asyncio.to_thread(self._look)
        if self._is_away(problem) or (seen == self._seen and not forced):
            return
        self._seen = seen
        if forced:
            self._selection.forgive()
        while True:
            choice = await asyncio.to_thread(self._selection.choose, dict(self._folders), self._choice.labels)
            new = next((key for key in choice.folders if key not in self._held), None)
            if new is None:
                break
            await self._load(new, choice.folders[new])
        problem, _ = await asyncio.to_thread(self._look)
        if self._is_away(problem):  # it went while it was read: what was chosen may be half of what there was
            self._seen = ()
            return
        for key, folder in choice.folders.items():
            if folder.exists() and await asyncio.to_thread(signature, folder) != self._signatures[key]:
                logger.warning("models: %s has changed, but is read only once: add a new version instead", folder)
        for problem in choice.problems:
            logger.warning("models: %s", problem)
        await self._exchange(choice, reads, on_change)

    def _look(self) -> tuple[str, Signature]:
        """Returns why the repository says nothing, empty if it does, and what lies in it.

        One that is missing, cannot be listed or is empty, as where a disk is not mounted for a while, orders nothing.
        """
        try:
            with os.scandir(self._root):  # which raises where a search finds nothing
                pass
            seen = signature(self._root)
            return "" if self._repository.names() else f"{self._root}: no model is in it", seen
        except OSError as error:
            return f"{self._root}: {error.strerror}", ()

    def _is_away(self, problem: str) -> bool:
        """Tells the log, once each time, that the repository has gone or is back; returns whether it has gone."""
        if problem and not self._away:
            logger.warning("models: the repository cannot be read, and what is held stays: %s", problem)
        elif self._away and not problem:
            logger.info("models: the repository can be read again")
        self._away = bool(problem)
        return self._away

    async def _load(self, key: ModelKey, folder: Path) -> None:
        """Has the workers load a version beside those that they hold; or takes note that it cannot be used."""
        logger.info("loading model", extra={"model": f"{key[0]}:{key[1]}"})
        try:
            self._hold(await asyncio.to_thread(self._verify, key), folder)
        except GlyphlineError as error:
            self._tell_refusal(key, folder, error)
            return
        try:
            await self._pool.load(self._configure(self._held.values()))
        except StartError as error:
            self._refuse(self._held[key], error)
            await self._pool.unload(self._configure(self._held.values()), (key,))
        else:
            self._metrics.model_loads.labels(key[0], "loaded").inc()

    async def _exchange(self, choice: Choice, reads: InProgress, on_change: Callable[[], None]) -> None:
        """Gives requests what was chosen, and drops the rest when nobody uses it any more."""
        before, self._choice = self._choice, choice
        if choice.folders == before.folders and choice.labels == before.labels:
            return
        dropped = [model for key, model in self._held.items() if key not in choice.folders]
        for model in dropped:
            self._drop(model)
        self.catalogue.replace(self._held.values(), choice.labels)
        on_change()
        logger.info("models changed", extra={"models": _spell(self._held.values()), "labels": choice.labels})
        if dropped:
            await reads.ended()
            await self._pool.unload(self._configure(self._held.values()), tuple(model.key for model in dropped))
            for model in dropped:
                self._metrics.retire_model(model)
                self._remove_copy(model)
            logger.info("models unloaded", extra={"models": _spell(dropped)})

    def _open(self) -> None:
        """Chooses and verifies what to begin with."""
        while True:
            self._choice = self._selection.choose({}, {})
            self._selection.check(self._choice)
            for key, folder in self._choice.folders.items():
                if key not in self._held:
                    try:
                        self._hold(self._verify(key), folder)
                    except GlyphlineError as error:
                        self._tell_refusal(key, folder, error)
                        break
            else:
                break
        for model in [model for key, model in self._held.items() if key not in self._choice.folders]:
            self._drop(model)
            self._remove_copy(model)
        for problem in self._choice.problems:
            logger.warning("models: %s", problem)

    def _verify(self, key: ModelKey) -> ServedModel:
        """Verifies a bundle, and its copy if one is made."""
        bundle = self._repository.load(*key)
        return ServedModel.of(bundle if self._copies is None else load_bundle(self._copies.make(bundle.path)))

    def _hold(self, model: ServedModel, folder: Path) -> None:
        self._held[model.key] = model
        self._folders[model.key] = folder
        self._signatures[model.key] = signature(folder)

    def _drop(self, model: ServedModel) -> None:
        del self._held[model.key], self._folders[model.key], self._signatures[model.key]

    def _remove_copy(self, model: ServedModel) -> None:
        if self._copies is not None:
            self._copies.remove(model.path)

    def _refuse(self, model: ServedModel, error: GlyphlineError) -> None:
        """Drops a model that the workers refuse."""
        folder = self._folders[model.key]
        self._drop(model)
        self._remove_copy(model)
        self._tell_refusal(
            model.key, folder, ModelRefusedError(folder, str(error).replace(str(model.path), str(folder)))
        )

    def _tell_refusal(self, key: ModelKey, folder: Path, error: GlyphlineError) -> None:
        self._selection.refuse(key, folder, error)
        self._metrics.model_loads.labels(key[0], "refused").inc()
        logger.error("model refused", extra={"model": f"{key[0]}:{key[1]}", "reason": str(error)})


def _spell(models: Iterable[ServedModel]) -> list[str]:
    return [f"{model.name}:{model.version}" for model in models]
