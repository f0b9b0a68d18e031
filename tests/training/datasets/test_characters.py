from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from glyphline.training.config import CharactersConfig
from glyphline.training.datasets.build import read_characters
from glyphline.training.datasets.characters import CharacterSet, read_folder, read_idx, read_mnist, read_npz
from glyphline.training.errors import DataError


def idx(array: np.ndarray) -> bytes:
    """Encodes an array of bytes as IDX."""
    header = b"\x00\x00\x08" + bytes([array.ndim]) + b"".join(int(n).to_bytes(4, "big") for n in array.shape)
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def mnist(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (12, 28, 28))
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx(images))
    (tmp_path / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(np.arange(12) % 10)))
    rows = "".join(f"{i}\t{i % 10}\t{100 + i % 3}\t4\t0\n" for i in range(12))
    (tmp_path / "writers.tsv").write_text("index\tdigit\twriter\thsf\tn\n" + rows)
    return tmp_path


def test_mnist_is_read_plain_and_gzipped_with_its_writers(mnist: Path) -> None:
    characters = read_mnist(mnist)
    assert len(characters.images) == 12
    assert characters.labels[11] == "1"
    assert characters.images[0].shape == (28, 28)
    assert set(characters.writers) == {100, 101, 102}
    groups = characters.by_writer()
    assert len(groups) == 3
    assert groups[0]["0"].tolist() == [0]


def test_where_keeps_images_labels_and_writers_together(mnist: Path) -> None:
    characters = read_mnist(mnist)
    part = characters.where(characters.writers == 101)
    assert part.labels == ["1", "4", "7", "0"]
    assert np.array_equal(part.images[1], characters.images[4])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an IDX"),
        (b"\x00\x00\x09\x01\x00\x00\x00\x01\x00", "not an IDX"),
        (idx(np.zeros(9))[:-2], "cut short"),
    ],
)
def test_a_bad_idx_file_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "train-images-idx3-ubyte"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        read_idx(path)
    assert str(path) in str(error.value)


def test_missing_mnist_says_where_it_comes_from(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="torchvision"):
        read_mnist(tmp_path)


def test_npz_and_folders(data_root: Path) -> None:
    npz = read_npz(data_root / "characters")
    assert len(npz.images) == 30
    assert npz.labels[3] == "1"
    cells = read_folder(data_root / "cells")
    assert len(set(cells.writers.tolist())) == 2
    assert len(read_folder(data_root / "cells", without="meter1").images) == 15


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (None, r"images\.npz is missing"),
        (b"no archive", r"images\.npz is not an archive"),
        (np.zeros((2, 28), np.uint8), r"\(2, 28\) of uint8"),
        (np.zeros((2, 28, 28)), r"\(2, 28, 28\) of float64"),
    ],
)
def test_a_bad_archive_is_named(tmp_path: Path, array: np.ndarray | bytes | None, reason: str) -> None:
    if isinstance(array, bytes):
        (tmp_path / "images.npz").write_bytes(array)
    elif array is not None:
        np.savez(tmp_path / "images.npz", array)
    with pytest.raises(DataError, match=reason):
        read_npz(tmp_path)


@pytest.mark.parametrize("rows", ["0\t0\tsomeone\n", "0\t0\n", "99\t0\t7\n"])
def test_a_bad_table_of_writers_is_named(mnist: Path, rows: str) -> None:
    (mnist / "writers.tsv").write_text("index\tdigit\twriter\n" + rows)
    with pytest.raises(DataError, match=r"writers\.tsv"):
        read_mnist(mnist)


def test_counts_must_agree() -> None:
    with pytest.raises(DataError, match="1 images, 2 labels"):
        CharacterSet("x", [np.zeros((2, 2), np.uint8)], ["1", "2"], np.zeros(1, np.int64))


def test_images_are_dealt_into_folds_where_no_writer_is_known(data_root: Path) -> None:
    whole = read_npz(data_root / "characters")
    config = CharactersConfig(reader="npz", path="characters", folds=4, fold=1)
    rest = read_characters(config, data_root)
    held_out = read_characters(config.model_copy(update={"held_out": True}), data_root)
    assert len(held_out.images) == len(whole.images[1::4])
    assert len(rest.images) + len(held_out.images) == len(whole.images)
    assert all(np.array_equal(one, other) for one, other in zip(held_out.images, whole.images[1::4], strict=True))
