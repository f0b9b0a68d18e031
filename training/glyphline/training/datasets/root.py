"""The folder that data are below: it need not be there, unless something below it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from glyphline.training.errors import DataError


@contextmanager
def below(root: Path) -> Iterator[None]:
    """Says of data that are missing that the whole folder of them is, where it is.

    Args:
        root: The folder.

    Raises:
        DataError: Passed on, with where the folder was looked for.
    """
    try:
        yield
    except DataError as error:
        if root.is_dir() or "--data-root" in str(error):
            raise
        raise DataError(f"{error}; there is no folder {root}: --data-root says where the data are") from error
