"""Outputs of several runs as those of one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from glyphline.models.joining import join_runs


def test_the_shorter_runs_are_filled_up_with_zeros() -> None:
    runs: list[dict[str, NDArray[Any]]] = [
        {
            "memory": np.full((count, frames, 2), count, dtype=np.float32),
            "state": np.full((count, 5), count, dtype=np.float32),
            "lengths": np.full(count, frames, dtype=np.int64),
        }
        for count, frames in ((1, 3), (2, 4))
    ]
    joined = join_runs(runs)
    assert joined["lengths"].tolist() == [3, 4, 4]
    assert joined["state"].tolist() == [[1.0] * 5, [2.0] * 5, [2.0] * 5]
    assert joined["memory"].shape == (3, 4, 2)
    assert joined["memory"].dtype == np.float32
    assert joined["memory"][0].tolist() == [[1.0, 1.0]] * 3 + [[0.0, 0.0]]
    assert (joined["memory"][1:] == 2.0).all()


def test_one_run_stays_as_it_is() -> None:
    run = {"lengths": np.array([3], dtype=np.int64)}
    assert join_runs([run])["lengths"] is run["lengths"]
