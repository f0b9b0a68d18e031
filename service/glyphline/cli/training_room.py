"""Enters the training room, and says which extra to install where a package of it is missing."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from glyphline.cli.exit_codes import CommandError


@contextmanager
def training_room() -> Iterator[None]:
    """Turns a missing package into advice, and shows what the room logs.

    Raises:
        CommandError: If an import within the block finds no package of the extra `train`.
    """
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("glyphline."):
            raise
        raise CommandError(
            f"this needs the package {error.name}, which is not installed: pip install 'glyphline[train]'"
            " (from a clone: pip install -e '.[train]')"
        ) from error


def require_torch() -> None:
    """Makes sure of torch without loading it, for what looks at data for seconds before it needs it.

    Raises:
        ModuleNotFoundError: If it is not installed.
    """
    if find_spec("torch") is None:
        raise ModuleNotFoundError(name="torch")
