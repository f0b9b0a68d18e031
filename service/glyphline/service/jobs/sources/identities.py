"""Makes sure that no two items of a job have one id, in eight bytes an item."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from glyphline.service.jobs.errors import InputError
from glyphline.service.jobs.items import Item

__all__ = ["Identities"]

Keys = NDArray[np.uint64]


class Identities:
    """The ids that have been seen, as sorted arrays of their hashes.

    As in a tree of logs, arrays of like size are merged, so that there are few of them and each id is moved seldom. Two
    of a hundred million different ids have one hash in one job of three thousand.
    """

    def __init__(self) -> None:
        self._runs: list[Keys] = []

    def add(self, items: Sequence[Item]) -> None:
        """Takes the ids of more items.

        Raises:
            InputError: If one has been seen before; the message names it.
        """
        keys = np.array([_key(item.id) for item in items], dtype=np.uint64)
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        twice = np.flatnonzero(ordered[1:] == ordered[:-1])
        if twice.size:
            raise _repeated(items[int(order[twice[0] + 1])])
        for run in self._runs:
            places = np.minimum(np.searchsorted(run, ordered), run.size - 1)
            known = np.flatnonzero(run[places] == ordered)
            if known.size:
                raise _repeated(items[int(order[known].min())])
        self._runs.append(ordered)
        while len(self._runs) > 1 and self._runs[-1].size * 2 > self._runs[-2].size:
            last = self._runs.pop()
            self._runs[-1] = np.sort(np.concatenate([self._runs[-1], last]), kind="stable")


def _key(identity: str) -> int:
    content = identity.encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def _repeated(item: Item) -> InputError:
    return InputError(
        f"{item.id!r} comes twice: every picture of a job needs an id of its own; name each file once, or give the list"
        " a column `id`"
    )
