"""One function for all formats: it recognises what lies at a path, and says what it saw where it cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from glyphline.training.datasets.readers.item import LabelledImage, check_files
from glyphline.training.datasets.readers.labels import read_csv, read_jsonl, read_tsv
from glyphline.training.datasets.readers.lmdb_reader import read_lmdb
from glyphline.training.datasets.readers.pages import read_pages
from glyphline.training.datasets.readers.parquet import read_parquet
from glyphline.training.datasets.readers.sidecar import TEXT_SUFFIX, read_sidecar
from glyphline.training.datasets.readers.webdataset import read_webdataset
from glyphline.training.datasets.readers.xml import root_tag
from glyphline.training.errors import DataError

Format = Literal["auto", "tsv", "csv", "jsonl", "sidecar", "lmdb", "page", "alto", "webdataset", "parquet"]
Cut = Literal["polygon", "box"]

FORMATS: dict[str, str] = {
    "tsv": "a folder of pictures with labels.tsv (name, tab, text), or such a file of another name",
    "csv": "a folder with labels.csv or metadata.csv: columns image (or file_name, filename) and text (or label)",
    "jsonl": "a folder with labels.jsonl or metadata.jsonl: an object a line with the same keys",
    "sidecar": "pictures with their text beside each: x.png and x.gt.txt",
    "lmdb": "an LMDB with num-samples, image-000000001, label-000000001 and so on",
    "page": "PAGE XML with the pages' pictures",
    "alto": "ALTO XML with the pages' pictures",
    "webdataset": "tar shards: 000001.jpg and 000001.txt or .json",
    "parquet": "Parquet with a column of images, as Hugging Face writes it",
}
"""What there is, and what each looks like on a disk."""

LABEL_FILES = {
    "tsv": ("labels.tsv",),
    "csv": ("labels.csv", "metadata.csv"),
    "jsonl": ("labels.jsonl", "metadata.jsonl"),
}
_BY_SUFFIX = {
    ".tsv": "tsv",
    ".txt": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".tar": "webdataset",
    ".parquet": "parquet",
    ".mdb": "lmdb",
    ".lmdb": "lmdb",
}


@dataclass(frozen=True, slots=True)
class _Request:
    """What is read, and how."""

    path: Path
    labels: str
    image_key: str
    text_key: str
    cut: str

    def label_file(self, form: str) -> Path:
        """The label file: the path itself, the one that is named, or the usual one."""
        if self.path.is_file():
            return self.path
        if self.labels:
            return self.path / self.labels
        usual = [self.path / name for name in LABEL_FILES[form]]
        return next((path for path in usual if path.is_file()), usual[0])

    def xml_files(self) -> list[Path]:
        """The path itself, or all XML files of its kind below it."""
        return [self.path] if self.path.is_file() else sorted(self.path.rglob("*.xml"))


_READERS: dict[str, Callable[[_Request], Iterator[LabelledImage]]] = {
    "tsv": lambda request: read_tsv(request.label_file("tsv")),
    "csv": lambda request: read_csv(request.label_file("csv"), request.image_key, request.text_key),
    "jsonl": lambda request: read_jsonl(request.label_file("jsonl"), request.image_key, request.text_key),
    "sidecar": lambda request: read_sidecar(request.path),
    "lmdb": lambda request: read_lmdb(request.path.parent if request.path.name == "data.mdb" else request.path),
    "page": lambda request: _read_pages(request, "PcGts"),
    "alto": lambda request: _read_pages(request, "alto"),
    "webdataset": lambda request: read_webdataset(request.path, request.text_key),
    "parquet": lambda request: read_parquet(request.path, request.image_key, request.text_key),
}


def _read_pages(request: _Request, tag: str) -> Iterator[LabelledImage]:
    root = request.path.parent if request.path.is_file() else request.path
    for path in request.xml_files():
        # A folder of pages has other XML too, as METS files.
        if path == request.path or root_tag(path) == tag:
            yield from read_pages(path, root, request.cut)


def read_dataset(
    path: Path,
    format: Format = "auto",
    *,
    labels: str = "",
    image_key: str = "",
    text_key: str = "",
    cut: Cut = "polygon",
    missing: Literal["refuse", "keep"] = "refuse",
) -> list[LabelledImage]:
    """Reads a data set's labels; its pictures are decoded when they are asked for.

    Args:
        path: Folder or file.
        format: One of `FORMATS`, or `auto` to recognise it.
        labels: Name of the label file in a folder, where it is not the usual one.
        image_key: Column or key of the picture, where it has none of the usual names.
        text_key: Column or key of the text, where it has none of the usual names.
        cut: How lines are cut from pages: by their `polygon`, or by the `box` around it.
        missing: Whether a data set is refused whose labels name files that do not exist.

    Returns:
        The labelled pictures, in the data set's own order; the same each time.

    Raises:
        DataError: If the path does not exist, its format is not recognised (the message says what there is), something
            in it is not as its format wants it (the place is named), or it holds nothing.
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path} does not exist: a data set is {_choices()}")
    chosen = recognise(path, labels) if format == "auto" else format
    images = list(_READERS[chosen](_Request(path, labels, image_key, text_key, cut)))
    if not images:
        raise DataError(f"{path}, read as {chosen} ({FORMATS[chosen]}), holds no labelled picture; {describe(path)}")
    if missing == "refuse":
        check_files(images)
    return images


def recognise(path: Path, labels: str = "") -> str:
    """Tells the format of a data set from names and, for XML, from the root element.

    Args:
        path: Folder or file.
        labels: Name of the label file in a folder, where it is not the usual one.

    Returns:
        One of `FORMATS`.

    Raises:
        DataError: If it is none of them; the message says what there is.
    """
    if path.is_file():
        form = _BY_SUFFIX.get(path.suffix.lower()) or (_xml_format(path) if path.suffix.lower() == ".xml" else None)
    elif labels:
        form = _BY_SUFFIX.get(Path(labels).suffix.lower(), "tsv")
    else:
        form = _recognise_folder(path)
    if form is None:
        raise DataError(f"{path}: its format is not recognised; {describe(path)}. A data set is {_choices()}")
    return form


def _recognise_folder(path: Path) -> str | None:
    for form, names in LABEL_FILES.items():
        if any((path / name).is_file() for name in names):
            return form
    if (path / "data.mdb").is_file():
        return "lmdb"
    if any(path.glob("*.tar")):
        return "webdataset"
    for pattern, form in ((f"*{TEXT_SUFFIX}", "sidecar"), ("*.parquet", "parquet")):
        if any(path.rglob(pattern)):
            return form
    forms = (_xml_format(xml) for xml in sorted(path.rglob("*.xml"))[:50])
    return next((form for form in forms if form is not None), None)


def _xml_format(path: Path) -> str | None:
    try:
        return {"PcGts": "page", "alto": "alto"}.get(root_tag(path))
    except DataError:  # broken, or no XML at all: neither tells the format
        return None


def describe(path: Path) -> str:
    """Says in a few words what lies at a path: how many files of which kinds."""
    if path.is_file():
        return f"it is a file of {path.stat().st_size:,} bytes that ends in {path.suffix or 'nothing'}"
    kinds = Counter(file.suffix.lower() or "files without an ending" for file in path.rglob("*") if file.is_file())
    shown = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common(6))
    return f"there are {shown} below it" if shown else "the folder is empty"


def _choices() -> str:
    return "; or ".join(f"{words} ({name})" for name, words in FORMATS.items())
