"""Shows how a job gets on: a bar on a terminal, a plain line now and then elsewhere, always on standard error."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_SECONDS_BETWEEN_LINES = 10.0


class Reporter(Protocol):
    """Is told after each image how many were done and how many failed."""

    def __enter__(self) -> Self:
        """Begins to show."""
        ...

    def update(self, images: int, failed: int) -> None:
        """Shows the state."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stops showing."""
        ...


def open_reporter(*, quiet: bool, count: Callable[[], int] | None, verb: str = "Reading") -> Reporter:
    """Chooses how to report.

    Args:
        quiet: Show nothing.
        count: Counts the images of the job, for a bar with an end; it runs beside the job. None: they cannot be known.
        verb: What is done to the images.
    """
    if quiet:
        return _Silence()
    return _Bar(count, verb) if sys.stderr.isatty() else _Lines()


class _Silence:
    def __enter__(self) -> Self:
        return self

    def update(self, images: int, failed: int) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


class _Lines(_Silence):
    """One line at most every few seconds, so that the log of a night's job stays readable."""

    def __enter__(self) -> Self:
        self._started = self._last = time.monotonic()
        return self

    def update(self, images: int, failed: int) -> None:
        now = time.monotonic()
        if now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            rate = images / (now - self._started)
            print(f"{images:,} images, {failed:,} failed, {rate:,.1f} images/s", file=sys.stderr, flush=True)


class _Bar(_Silence):
    def __init__(self, count: Callable[[], int] | None, verb: str) -> None:
        self._count = count
        self._progress, self._task = _new_bar(verb)

    def __enter__(self) -> Self:
        self._progress.start()
        if self._count is not None:
            threading.Thread(target=self._find_total, args=(self._count,), daemon=True).start()
        return self

    def _find_total(self, count: Callable[[], int]) -> None:
        self._progress.update(self._task, total=count())

    def update(self, images: int, failed: int) -> None:
        task = self._progress.tasks[0]
        rate = f"{images / task.elapsed:,.0f} images/s" if task.elapsed else ""
        self._progress.update(self._task, completed=images, rate=rate, failed=failed)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()


def _new_bar(verb: str) -> tuple[Progress, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    progress = Progress(
        TextColumn(verb),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[failed]} failed"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    return progress, progress.add_task(verb, total=None, rate="", failed=0)
