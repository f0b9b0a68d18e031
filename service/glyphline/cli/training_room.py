"""Enters the training room, and says which extra to install where a package of it is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from glyphline.cli.exit_codes import CommandError


@contextmanager
def training_room() -> Iterator[None]:
    """Turns a missing package into advice.

    Raises:
        CommandError: If an import within the block finds no package of the extra `train`.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("glyphline."):
            raise
        raise CommandError(
            f"this needs the package {error.name}, which is not installed: pip install 'glyphline[train]'"
        ) from error
