"""Knows what is in progress, so that what it uses is kept until it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["InProgress"]


class InProgress:
    """Work that is in progress."""

    def __init__(self) -> None:
        self._tokens: set[object] = set()
        self._waiting: list[tuple[set[object], asyncio.Event]] = []

    def __len__(self) -> int:
        return len(self._tokens)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Counts as in progress until it is left."""
        token = object()
        self._tokens.add(token)
        try:
            yield
        finally:
            self._tokens.discard(token)
            for tokens, ended in self._waiting:
                tokens.discard(token)
                if not tokens:
                    ended.set()

    async def ended(self) -> None:
        """Waits until all that is in progress now has ended; what begins meanwhile is not waited for."""
        if not self._tokens:
            return
        entry = set(self._tokens), asyncio.Event()
        self._waiting.append(entry)
        try:
            await entry[1].wait()
        finally:
            self._waiting.remove(entry)
