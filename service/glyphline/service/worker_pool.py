"""The worker processes of a server: as many as there are to be, each replaced when it dies or when models change.

Models are changed by changing workers. A model that is new is loaded by new processes, one after the other, and each
takes the place of an old one once it is ready: what is wrong with the model, be it a crash, harms nobody, and no call
waits while it loads. What is not used any more is dropped by the workers as they are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from glyphline.service.errors import StartError, WorkerLostError
from glyphline.service.messages import ModelKey, WorkerConfig
from glyphline.service.worker_handle import EXIT_SECONDS, WorkerHandle

__all__ = ["WorkerPool"]

logger = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 30.0


class _Place:
    """A worker's place, which is filled again whenever its worker is lost.

    Attributes:
        member: The worker; it may be lost.
        lock: Held by whoever fills the place.
    """

    def __init__(self, member: WorkerHandle) -> None:
        self.member = member
        self.lock = asyncio.Lock()


class WorkerPool:
    """All workers of a server, each replaced when it dies.

    Args:
        count: How many.
        start_seconds: How long one may take to load.
        silence_seconds: How long one may give no sign of life.
        on_idle: Called when a worker becomes free.
        on_change: Called when the number of living workers changes, with that number.
        on_loss: Called when a worker has died.
    """

    def __init__(
        self,
        count: int,
        *,
        start_seconds: float,
        silence_seconds: float,
        on_idle: Callable[[], None],
        on_change: Callable[[int], None],
        on_loss: Callable[[], None],
    ) -> None:
        self._count = count
        self._start_seconds = start_seconds
        self._silence_seconds = silence_seconds
        self._on_idle = on_idle
        self._on_change = on_change
        self._on_loss = on_loss
        self._living: set[WorkerHandle] = set()
        self._idle: list[WorkerHandle] = []
        self._retired: set[WorkerHandle] = set()  # at work for the last time
        self._all: set[WorkerHandle] = set()
        self._places: list[_Place] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.providers: dict[ModelKey, str] = {}

    @property
    def size(self) -> int:
        """Workers when none is being replaced."""
        return self._count

    @property
    def living(self) -> int:
        """Workers that are ready or at work."""
        return len(self._living)

    @property
    def idle(self) -> int:
        """Workers that are ready and have nothing to do."""
        return len(self._idle)

    @property
    def pids(self) -> list[int]:
        """Process ids of the living workers."""
        return [member.pid for member in self._living if member.pid is not None]

    async def start(self, config: WorkerConfig) -> None:
        """Starts all workers and returns when all are ready. If it fails, it may be tried again.

        Args:
            config: What each holds.

        Raises:
            ModelRefusedError: If one cannot hold a model.
            StartError: If one cannot start.
        """
        self._config = config
        members = [self._make(index, config) for index in range(self._count)]
        starts = [asyncio.create_task(member.start(self._start_seconds)) for member in members]
        try:
            await asyncio.gather(*starts)
        except BaseException:
            for start in starts:
                start.cancel()
            await asyncio.gather(*starts, return_exceptions=True)
            await self.stop()
            raise
        for member in members:
            self._enter(member)
            self._places.append(_Place(member))
        for place in self._places:
            self._run(self._supervise(place))
        self._run(self._watch())

    async def load(self, config: WorkerConfig) -> None:
        """Replaces every worker, one after the other, by one that holds other models; the old ones finish their batch.

        Args:
            config: What each holds from now on, if all can.

        Raises:
            ModelRefusedError: If one cannot hold a model.
            StartError: If one cannot start. Those before it hold the new models already; what they are not to hold
                can be unloaded.
        """
        while stale := next((place for place in self._places if place.member.config is not config), None):
            async with stale.lock:
                if stale.member.config is not config:
                    await self._fill(stale, config)
        self._config = config

    async def unload(self, config: WorkerConfig, models: tuple[ModelKey, ...]) -> None:
        """Has every worker drop models that nobody reads with any more.

        Args:
            config: What each holds then.
            models: The models.
        """
        self._config = config
        holders = [member for member in self._living if not member.providers.keys().isdisjoint(models)]
        drops = [member.unload(models, self._start_seconds) for member in holders]
        for loss in await asyncio.gather(*drops, return_exceptions=True):
            if isinstance(loss, WorkerLostError):
                logger.error("worker lost over unloading", extra={"reason": str(loss)})
            elif isinstance(loss, BaseException):
                raise loss
        for key in models:
            self.providers.pop(key, None)

    def acquire(self) -> WorkerHandle | None:
        """Takes a free worker, or None if all are at work."""
        return self._idle.pop() if self._idle else None

    def release(self, member: object) -> None:
        """Gives a worker back."""
        assert isinstance(member, WorkerHandle)
        if member in self._retired:
            self._retired.discard(member)
            self._run(self._dispose(member))
        elif member in self._living and member.alive:
            self._idle.append(member)
            self._on_idle()

    async def stop(self) -> None:
        """Ends all workers. One at work may finish its batch first, if that takes no longer than a few seconds."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._places.clear()
        self._living.clear()
        self._idle.clear()
        self._retired.clear()
        closing = [asyncio.create_task(member.close()) for member in self._all]
        if closing:
            _, late = await asyncio.wait(closing, timeout=EXIT_SECONDS)
            if late:
                self.kill()
            await asyncio.gather(*closing)
        self._all.clear()

    def kill(self) -> None:
        """Ends all workers at once."""
        for member in self._all:
            member.kill()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _make(self, index: int, config: WorkerConfig) -> WorkerHandle:
        member = WorkerHandle(index, config, self._silence_seconds)
        self._all.add(member)
        return member

    async def _fill(self, place: _Place, config: WorkerConfig) -> None:
        """Starts a worker and gives it a place, once it is ready. Whoever had the place may finish its batch."""
        member = self._make(place.member.index, config)
        try:
            await member.start(self._start_seconds)
        except StartError:
            await self._dispose(member)
            raise
        old, place.member = place.member, member
        self._enter(member)
        if old in self._living:
            at_work = old not in self._idle
            self._leave(old)
            if at_work and old.alive:
                self._retired.add(old)
            else:
                await self._dispose(old)
        logger.info("worker replaced", extra={"worker": member.index, "pid": member.pid})

    async def _supervise(self, place: _Place) -> None:
        """Keeps a place filled: waits for its worker's end, and starts the next."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            member, lived_from = place.member, asyncio.get_running_loop().time()
            await member.ended()
            if place.member is not member:
                continue  # replaced on purpose
            self._leave(member)
            logger.error(
                "worker lost", extra={"worker": member.index, "pid": member.pid, "exit_code": member.exit_code}
            )
            self._on_loss()
            await self._dispose(member)
            if asyncio.get_running_loop().time() - lived_from > _LONGEST_PAUSE_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            while place.member is member:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                async with place.lock:
                    if place.member is member:
                        try:
                            await self._fill(place, self._config)
                        except StartError as error:
                            logger.error("worker cannot start", extra={"worker": member.index, "reason": str(error)})

    async def _watch(self) -> None:
        """Asks the workers that have nothing to do whether they live, again and again."""
        while True:
            await asyncio.sleep(self._silence_seconds / 2)
            for member in self._idle:
                self._run(self._ping(member))
            self._on_idle()  # what waits beside a free worker must not wait for ever, whatever went wrong

    async def _ping(self, member: WorkerHandle) -> None:
        try:
            await member.ping()
        except WorkerLostError as error:
            if member in self._living:
                logger.error("worker hangs", extra={"worker": member.index, "pid": member.pid, "reason": str(error)})

    def _enter(self, member: WorkerHandle) -> None:
        self.providers.update(member.providers)
        self._living.add(member)
        self._idle.append(member)
        self._on_change(self.living)
        self._on_idle()

    def _leave(self, member: WorkerHandle) -> None:
        self._living.discard(member)
        if member in self._idle:
            self._idle.remove(member)
        self._on_change(self.living)

    async def _dispose(self, member: WorkerHandle) -> None:
        await member.close()
        self._all.discard(member)
