"""Labelled images for benchmarks: any data set that `glyphline evaluate` takes, as files that any program reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from glyphline.training.config import FolderSetConfig
from glyphline.training.datasets.build import build_set
from glyphline.training.datasets.readers.item import encode_png
from glyphline.training.datasets.selection import read_selected
from glyphline.training.errors import DataError
from glyphline.training.evaluate import find_set

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class LabelledFiles:
    """A data set as image files.

    Attributes:
        name: What it was called.
        compare: What of the texts its own configuration compares: `all`, or `digits`.
        paths: The files.
        texts: The true text of each.
    """

    name: str
    compare: str
    paths: tuple[Path, ...]
    texts: tuple[str, ...]


def spread(items: Sequence[Item], limit: int | None) -> list[Item]:
    """Takes at most `limit` of the items, evenly from all over them, in their order."""
    if limit is None or len(items) <= limit:
        return list(items)
    return [items[place * len(items) // limit] for place in range(limit)]


def write_files(name: str, data_root: Path, limit: int | None, folder: Path) -> LabelledFiles:
    """Writes the images of a data set into a folder, with `labels.tsv`.

    Images of a data set keep their bytes; what is composed or cut from pages is written as PNG.

    Args:
        name: A data set in any format, `CONFIG.toml:SET`, or a name of the shipped list of evaluation sets.
        data_root: Folder below which named sets lie.
        limit: Most images, taken evenly from all over the set; None takes all.
        folder: Where the files go; it is made if it is not there.

    Returns:
        The files and their texts.

    Raises:
        GlyphlineError: If the data set cannot be read.
    """
    settings, root = find_set(name, data_root)
    pairs: list[tuple[bytes, str]]
    if isinstance(settings, FolderSetConfig):
        pairs = [(image.content(), image.text) for image in spread(read_selected(settings, root), limit)]
        compare = str(settings.compare)
    else:
        pairs = [(encode_png(sample.pixels), sample.text) for sample in spread(build_set(settings, root), limit)]
        compare = "all"
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise DataError(f"{folder} is not empty")
    paths = tuple(folder / f"{number:05d}{suffix_of(content)}" for number, (content, _) in enumerate(pairs, 1))
    for path, (content, _) in zip(paths, pairs, strict=True):
        path.write_bytes(content)
    texts = tuple(text for _, text in pairs)
    lines = (f"{path.name}\t{text}\n" for path, text in zip(paths, texts, strict=True))
    (folder / "labels.tsv").write_text("".join(lines), encoding="utf-8")
    return LabelledFiles(name, compare, paths, texts)


SIGNATURES = {
    b"\x89PNG": ".png",
    b"\xff\xd8": ".jpg",
    b"GIF8": ".gif",
    b"BM": ".bmp",
    b"RIFF": ".webp",
    b"II*\x00": ".tif",
    b"MM\x00*": ".tif",
}


def suffix_of(content: bytes) -> str:
    """Returns the usual ending of an image file's name, by its first bytes; PNM's where nothing else fits."""
    return next((suffix for start, suffix in SIGNATURES.items() if content.startswith(start)), ".pnm")
