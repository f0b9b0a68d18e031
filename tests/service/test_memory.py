"""What is there when a process has started is left alone by the collector, and what is dropped later still goes."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from glyphline.service.memory import keep_what_is_here


class Ring:
    """Refers to itself, so that only the collector finds it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_what_is_here_is_looked_at_again_only_when_that_is_asked_for() -> None:
    ring = Ring()
    gone = weakref.ref(ring)
    keep_what_is_here()
    del ring
    gc.collect()
    assert gone() is not None
    keep_what_is_here()
    assert gone() is None


def test_what_comes_after_is_collected_as_always() -> None:
    keep_what_is_here()
    ring = Ring()
    gone = weakref.ref(ring)
    del ring
    gc.collect()
    assert gone() is None
