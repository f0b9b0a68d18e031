"""Where the stages of an image are told to whoever traces its call; nobody does unless the server is told to."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from glyphline.service.batcher import Done, Item

__all__ = ["RECORDER", "Recorder", "record_image"]

Recorder: TypeAlias = "Callable[[Item, Done], None]"

RECORDER: ContextVar[Recorder | None] = ContextVar("recorder", default=None)
"""What records the images of the call of this task."""


def record_image(item: Item, done: Done) -> None:
    """Records how an image was served, if its call is traced."""
    if (record := RECORDER.get()) is not None:
        record(item, done)
