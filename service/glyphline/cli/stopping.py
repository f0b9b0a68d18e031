"""Ends a long command by Ctrl-C or SIGTERM with a line that says how to go on, and the signal's exit code."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from glyphline.cli.exit_codes import CommandError, ExitCode

_TOGETHER = 1.0
"""Seconds within which signals are one: `timeout`, for one, sends its signal to the process and then to its group."""

_PATIENCE = 3.0
"""Seconds after which a signal is raised again: Python drops what is raised where it calls back, as in a fork."""

_NAMES = {signal.SIGINT: ("Ctrl-C", ExitCode.INTERRUPTED), signal.SIGTERM: ("SIGTERM", ExitCode.TERMINATED)}


class Terminated(BaseException):
    """SIGTERM has come; it is to SIGTERM what `KeyboardInterrupt` is to Ctrl-C."""


@contextmanager
def stoppable(advice: Callable[[], str]) -> Iterator[None]:
    """Turns both signals into the one error that says what was stopped by which, whatever became of them on the way.

    A library may end its work gracefully on a signal, or another error may follow from it, as that of a worker process
    that got the signal too: it was the signal all the same.

    Args:
        advice: Says what to do now; it is called when a signal has come.

    Raises:
        CommandError: If a signal has come.
    """
    received: list[tuple[signal.Signals, float]] = []
    left = threading.Event()

    def insist(number: signal.Signals) -> None:
        while not left.wait(_PATIENCE):
            _thread.interrupt_main(number)

    def handle(number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        again = bool(received) and now - received[-1][1] < _TOGETHER
        received.append((signal.Signals(number), now))
        if len(received) == 1:
            threading.Thread(target=insist, args=(received[0][0],), daemon=True).start()
        if not again:
            raise KeyboardInterrupt if number == signal.SIGINT else Terminated

    before = _take_over(handle)
    try:
        yield
    except BaseException as error:
        if not received and isinstance(error, KeyboardInterrupt):
            received.append((signal.SIGINT, time.monotonic()))
        if not received:
            raise
    finally:
        left.set()
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        name, code = _NAMES[received[0][0]]
        raise CommandError(f"stopped by {name}; {advice()}", code)


def leave_at_once(code: int) -> NoReturn:
    """Ends the process after a signal, without the interpreter's end: of an import cut in two it may take minutes."""
    if "multiprocessing" in sys.modules:
        import multiprocessing

        for child in multiprocessing.active_children():
            child.terminate()
        _let_go_of_semaphores()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _let_go_of_semaphores() -> None:
    """Does what the interpreter's end would do: else a process that watches over semaphores says that some are left."""
    from multiprocessing import util

    semaphores = getattr(sys.modules.get("multiprocessing.synchronize"), "SemLock", None)
    if semaphores is None:
        return
    for finalizer in list(util._finalizer_registry.values()):  # type: ignore[attr-defined]
        if finalizer._callback is semaphores._cleanup:
            with suppress(OSError):  # it is gone already
                finalizer()


def _take_over(handle: Callable[[int, FrameType | None], None]) -> dict[signal.Signals, signal.Handlers | Callable]:  # type: ignore[type-arg]
    """Handles both signals where they have their usual effect: one that is ignored stays ignored."""
    before: dict[signal.Signals, signal.Handlers | Callable] = {}  # type: ignore[type-arg]
    if threading.current_thread() is not threading.main_thread():
        return before
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
        if signal.getsignal(number) == usual:
            before[number] = usual
            signal.signal(number, handle)
    return before
