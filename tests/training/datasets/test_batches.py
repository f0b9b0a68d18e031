from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from glyphline.models.alphabet import Alphabet
from glyphline.models.image import ImageSettings
from glyphline.training.datasets.batches import WIDTHS, EncodedStrip, batch_size, collate, draw_pool, split_pool
from glyphline.training.datasets.characters import read_npz
from glyphline.training.datasets.compose import ComposedStrips


def strip(width: int, symbols: int) -> EncodedStrip:
    return EncodedStrip(np.full((16, width), 200, np.uint8), list(range(1, symbols + 1)))


def test_collate_pads_with_zeros() -> None:
    batch = collate([strip(10, 2), strip(40, 0)])
    assert batch.images.shape == (2, 1, 16, 64)
    assert batch.widths.tolist() == [10, 40]
    assert batch.label_lengths.tolist() == [2, 0]
    assert batch.labels.tolist() == [[1, 2], [0, 0]]
    assert batch.images[0, 0, :, :10].min() == 200
    assert not batch.images[0, 0, :, 10:].any()


@given(
    widths=st.lists(st.integers(1, 2048), min_size=1, max_size=60),
    columns=st.integers(256, 20_000),
    seed=st.integers(0, 99),
)
def test_every_strip_is_in_a_batch_and_shapes_are_few(widths: list[int], columns: int, seed: int) -> None:
    batches = list(split_pool([strip(width, 1) for width in widths], columns, np.random.default_rng(seed)))
    seen: list[int] = []
    for batch in batches:
        width = batch.images.shape[3]
        assert width in WIDTHS
        assert len(batch.widths) == batch_size(width, columns)
        seen += batch.widths.tolist()
    assert set(seen) == set(widths)
    assert len(seen) >= len(widths)


def test_a_pool_is_a_function_of_its_seed(data_root: Path) -> None:
    source = ComposedStrips(read_npz(data_root / "characters"), longest=3)
    alphabet, settings = Alphabet(tuple("0123456789.,:/-+ ")), ImageSettings(height=16)

    def pool(number: int) -> list[bytes]:
        drawn = draw_pool([source], np.ones(1), alphabet, settings, (1, number), 12)
        return [item.pixels.tobytes() + bytes(item.symbols) for item in drawn]

    assert pool(0) == pool(0)
    assert pool(0) != pool(1)


def test_what_is_too_wide_is_left_out(data_root: Path) -> None:
    source = ComposedStrips(read_npz(data_root / "characters"), longest=30)
    settings = ImageSettings(height=16, max_width=64)
    pool = draw_pool([source], np.ones(1), Alphabet(tuple("0123456789.,:/-+ ")), settings, (1, 1), 40)
    assert 0 < len(pool) < 40
    assert max(item.pixels.shape[1] for item in pool) <= 64
