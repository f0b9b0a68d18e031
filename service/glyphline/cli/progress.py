"""Shows how a job gets on: a bar on a terminal, a line now and then elsewhere, always on standard error."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_SECONDS_BETWEEN_LINES = 10.0


class ProgressKind(StrEnum):
    """How progress is shown."""

    AUTO = "auto"
    BAR = "bar"
    LINES = "lines"
    JSON = "json"


class Reporter(Protocol):
    """Is told after each image how many were done and how many failed."""

    def __enter__(self) -> Self:
        """Begins to show."""
        ...

    def update(self, images: int, failed: int, cer: float | None = None) -> None:
        """Shows the state; the error rate so far, where there are references."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stops showing."""
        ...


def open_reporter(
    *,
    quiet: bool,
    count: Callable[[], int] | None,
    verb: str = "Reading",
    kind: ProgressKind = ProgressKind.AUTO,
    done: int = 0,
) -> Reporter:
    """Chooses how to report.

    Args:
        quiet: Show nothing.
        count: Counts the images of the job, for a bar with an end; it runs beside the job. None: they cannot be known.
        verb: What is done to the images.
        kind: How to show it.
        done: Images that an earlier run has done: they are no part of the rate.
    """
    if quiet:
        return _Silence()
    if kind is ProgressKind.AUTO:
        kind = ProgressKind.BAR if sys.stderr.isatty() else ProgressKind.LINES
    if kind is ProgressKind.BAR:
        return _Bar(count, verb, done)
    return _Lines(count if kind is ProgressKind.JSON else None, done, as_json=kind is ProgressKind.JSON)


class _Silence:
    def __enter__(self) -> Self:
        return self

    def update(self, images: int, failed: int, cer: float | None = None) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


class _Counted(_Silence):
    """Knows the number of images once it has been found."""

    def __init__(self, count: Callable[[], int] | None, done: int) -> None:
        self._count = count
        self._done = done
        self._total: int | None = None

    def __enter__(self) -> Self:
        self._started = self._last = time.monotonic()
        if self._count is not None:
            threading.Thread(target=self._find_total, args=(self._count,), daemon=True).start()
        return self

    def _find_total(self, count: Callable[[], int]) -> None:
        with suppress(Exception):  # the job itself comes across whatever is wrong with its inputs, and tells it
            self._total = count()

    def _rate(self, images: int) -> float:
        return (images - self._done) / max(time.monotonic() - self._started, 1e-9)


class _Lines(_Counted):
    """One line at most every few seconds, so that the log of a night's job stays readable."""

    def __init__(self, count: Callable[[], int] | None, done: int, *, as_json: bool) -> None:
        super().__init__(count, done)
        self._as_json = as_json

    def update(self, images: int, failed: int, cer: float | None = None) -> None:
        now = time.monotonic()
        if now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            told = self._json(images, failed, cer) if self._as_json else self._line(images, failed, cer)
            print(told, file=sys.stderr, flush=True)

    def _line(self, images: int, failed: int, cer: float | None) -> str:
        rate = "" if cer is None else f", CER {cer:.2%}"
        return (
            f"{images:,} image{'' if images == 1 else 's'}, {failed:,} failed, {self._rate(images):,.1f} images/s{rate}"
        )

    def _json(self, images: int, failed: int, cer: float | None) -> str:
        rate = self._rate(images)
        left = None if self._total is None or not rate else round(max(0, self._total - images) / rate)
        values: dict[str, Any] = {"images": images, "failed": failed, "total": self._total}
        values |= {"images_per_second": round(rate, 2), "remaining_seconds": left}
        return json.dumps(values | {"cer": None if cer is None else round(cer, 6)})


class _Bar(_Counted):
    def __init__(self, count: Callable[[], int] | None, verb: str, done: int) -> None:
        super().__init__(count, done)
        self._progress, self._task = _new_bar(verb, done)

    def __enter__(self) -> Self:
        self._progress.start()
        return super().__enter__()

    def _find_total(self, count: Callable[[], int]) -> None:
        super()._find_total(count)
        self._progress.update(self._task, total=self._total)

    def update(self, images: int, failed: int, cer: float | None = None) -> None:
        rate = f"{self._rate(images):,.0f} images/s"
        told = "" if cer is None else f"CER {cer:.2%}"
        self._progress.update(self._task, completed=images, rate=rate, failed=failed, cer=told)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()


def _new_bar(verb: str, done: int) -> tuple[Progress, TaskID]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    progress = Progress(
        TextColumn(verb),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[failed]} failed"),
        TextColumn("{task.fields[cer]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    return progress, progress.add_task(verb, total=None, completed=done, rate="", failed=0, cer="")
