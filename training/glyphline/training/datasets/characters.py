"""Single-character images, grouped by writer: IDX files (MNIST), `images.npz`, and folders of pictures."""

from __future__ import annotations

import gzip
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from glyphline.training.datasets.labels import read_labels, read_picture
from glyphline.training.datasets.samples import Grey
from glyphline.training.errors import DataError


@dataclass(frozen=True)
class CharacterSet:
    """Images of single characters.

    Attributes:
        name: Name for reports.
        images: One array `(height, width)` a character, uint8.
        labels: The character of each image.
        writers: A number for each image's writer (or meter, or font); all zero where it is not known.
    """

    name: str
    images: list[Grey]
    labels: list[str]
    writers: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Checks that every image has its label and writer.

        Raises:
            DataError: If the counts differ or there is no image.
        """
        if not self.images or not len(self.images) == len(self.labels) == len(self.writers):
            raise DataError(
                f"{self.name}: {len(self.images)} images, {len(self.labels)} labels, {len(self.writers)} writers"
            )

    def where(self, chosen: NDArray[np.bool_], name: str | None = None) -> CharacterSet:
        """Returns the images for which `chosen` holds."""
        index = np.flatnonzero(chosen)
        return CharacterSet(
            name or self.name,
            [self.images[i] for i in index],
            [self.labels[i] for i in index],
            self.writers[index],
        )

    def by_writer(self) -> list[dict[str, NDArray[np.int64]]]:
        """Groups the images: for every writer, the indices of each character that writer has written."""
        groups: dict[int, dict[str, list[int]]] = {}
        for index, (writer, label) in enumerate(zip(self.writers, self.labels, strict=True)):
            groups.setdefault(int(writer), {}).setdefault(label, []).append(index)
        return [{label: np.array(found) for label, found in group.items()} for _, group in sorted(groups.items())]


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Reads an IDX file of bytes, gzipped or not (the format of MNIST).

    Args:
        path: The file; `path` with `.gz` added is tried too.

    Returns:
        Array of the shape that the file states.

    Raises:
        DataError: If the file is missing or not an IDX file of unsigned bytes.
    """
    if not path.exists() and path.with_name(path.name + ".gz").exists():
        path = path.with_name(path.name + ".gz")
    if not path.exists():
        raise DataError(f"{path} is missing: put MNIST's IDX files there (torchvision.datasets.MNIST downloads them)")
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise DataError(f"{path} is not an IDX file of unsigned bytes")
    dimensions = content[3]
    shape = tuple(int(size) for size in np.frombuffer(content, ">u4", dimensions, 4))
    data = np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions)
    if data.size != int(np.prod(shape)):
        raise DataError(f"{path} is cut short: its header says {shape}, it holds {data.size} bytes")
    return data.reshape(shape)


def read_mnist(folder: Path, part: str = "train") -> CharacterSet:
    """Reads one part of MNIST from IDX files.

    Where `writers.tsv` stands beside them (QMNIST's writer of each training image), strips can be composed of one
    writer's digits.

    Args:
        folder: Folder with `train-images-idx3-ubyte` and so on, gzipped or not; torchvision's `MNIST/raw` is one.
        part: `train` or `t10k`.
    """
    if not (folder / f"{part}-images-idx3-ubyte").exists() and (folder / "MNIST" / "raw").is_dir():
        folder = folder / "MNIST" / "raw"
    images = read_idx(folder / f"{part}-images-idx3-ubyte")
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte")
    writers = np.zeros(len(labels), np.int64)
    table = folder / "writers.tsv"
    if part == "train" and table.exists():
        try:
            for line in table.read_text(encoding="utf-8-sig").splitlines()[1:]:
                index, _, writer = line.split("\t")[:3]
                writers[int(index)] = int(writer)
        except (ValueError, IndexError) as error:
            raise DataError(
                f"{table}: each line is index, label, writer with tabs between, all numbers: {error}"
            ) from error
    return CharacterSet(f"mnist-{part}", list(images), [str(label) for label in labels], writers)


def read_npz(folder: Path) -> CharacterSet:
    """Reads `images.npz` and `labels.tsv` beside it, whose n-th line is the n-th image's.

    Args:
        folder: Its first array, of uint8, is `(count, height, width)`, ink bright on dark, from 0 to 255 or to 1.

    Raises:
        DataError: If the archive is missing, or not such a one.
    """
    path = folder / "images.npz"
    if not path.exists():
        raise DataError(f"{path} is missing: one array of images, (count, height, width), with labels.tsv beside it")
    try:
        with np.load(path) as archive:
            images = np.asarray(archive[archive.files[0]])
    except (OSError, ValueError, IndexError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} is not an archive of one array: {error}") from error
    if images.ndim != 3 or images.dtype != np.uint8:
        raise DataError(
            f"{path}: images are (count, height, width) of uint8, these are {images.shape} of {images.dtype}"
        )
    labels = [label.text for label in read_labels(folder / "labels.tsv")]
    if images.size and images.max() == 1:
        images = images * np.uint8(255)
    return CharacterSet(folder.name, list(images), labels, np.zeros(len(labels), np.int64))


def read_folder(folder: Path, without: str = "") -> CharacterSet:
    """Reads pictures of single characters with `labels.tsv`; what stands before `__` in a name is its writer.

    Args:
        folder: Folder of pictures.
        without: Regular expression; files whose names match it (from their beginning) are left out.
    """
    labels = read_labels(folder / "labels.tsv")
    rows = [(label.name, label.text) for label in labels if not (without and re.match(without, label.name))]
    names = sorted({name.split("__")[0] for name, _ in rows})
    number = {name: index for index, name in enumerate(names)}
    images = [read_picture(folder / name) for name, _ in rows]
    writers = np.array([number[name.split("__")[0]] for name, _ in rows], np.int64)
    return CharacterSet(folder.name, images, [text for _, text in rows], writers)
