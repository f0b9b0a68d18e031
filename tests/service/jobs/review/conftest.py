"""Rows of a job, as a page shows them."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="session")
def row() -> Callable[..., dict[str, Any]]:
    """Returns a function that makes a row of a job: `row("a.png", "12", 0.5, reference="13")`."""

    def make(name: str, text: str | None, confidence: float | None = 0.5, **more: object) -> dict[str, Any]:
        error = None if text is not None else {"code": "empty_image", "message": "the file is empty"}
        values: dict[str, Any] = {"id": name, "source": name, "text": text, "error": error, "truncated": False}
        values["confidence"] = None if text is None else confidence
        return values | {"model": "digits", "version": 1, "sha256": None, "decoder": "greedy"} | more

    return make
