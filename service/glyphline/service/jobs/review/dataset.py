"""Makes a data set of a job's pictures and the labels that were saved on its page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from glyphline.models.errors import ImageError, LabelsError
from glyphline.models.image import FORMAT_SUFFIXES, read_image
from glyphline.models.labels import read_labels
from glyphline.service.jobs.disk import Disk
from glyphline.service.jobs.errors import InputError, OutputError
from glyphline.service.jobs.review.output import JobOutput
from glyphline.service.jobs.review.strips import fetch_strip, image_file
from glyphline.service.jobs.review.texts import same_text
from glyphline.service.jobs.rows import ESCAPED_BYTE, RowError, one_cell

__all__ = ["Written", "write_dataset"]

_ENDINGS = (*FORMAT_SUFFIXES.values(), ".jpeg", ".tiff")


@dataclass(slots=True)
class Written:
    """What became of labels.

    Attributes:
        pictures: Labels that are in the data set, each with its picture.
        changed: How many of them are not what the job had read.
        missing: Ids of rows whose pictures cannot be had, with the reason.
    """

    pictures: int = 0
    changed: int = 0
    missing: dict[str, str] = field(default_factory=dict)


def write_dataset(output: JobOutput, labels: Path, folder: Path, *, allow_http: bool = False) -> Written:
    """Writes a folder of pictures with `labels.tsv`, as training reads it.

    Args:
        output: The job.
        labels: The file that the page has saved: ids of rows and their texts.
        folder: Where to write; it must not be there yet, or be empty.
        allow_http: Whether web addresses may be read.

    Raises:
        InputError: If the labels cannot be read, or name rows that the job has not.
        OutputError: If the folder holds something.
        OSError: If something cannot be written.
    """
    texts = _read(labels)
    rows = {name: row for row in output if (name := one_cell(row["id"])) in texts}
    strange = [name for name in texts if name not in rows]
    if strange:
        more = f" and {len(strange) - 1:,} more" if len(strange) > 1 else ""
        raise InputError(f"{labels}: {strange[0]!r}{more} is no row of {output.name}; the labels are of another job")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{folder}: exists already; choose a new folder, as training takes any number of them")
    written, taken = Written(), set[str]()
    lines: list[str] = []
    disk = Disk()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        row = rows[name]
        content = fetch_strip(output.located(row), output.limits, allow_http=allow_http)
        try:
            if isinstance(content, bytes):
                read_image(content, output.limits)  # training would stop at what can't be decoded
            if isinstance(content, RowError):
                written.missing[row["id"]] = content.message
                continue
            data, suffix = image_file(content)
        except ImageError as error:
            written.missing[row["id"]] = str(error)
            continue
        target = _file_name(row["id"], suffix, taken)
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        (folder / target).write_bytes(data)
        lines.append(f"{target}\t{text}\n")
        written.pictures += 1
        written.changed += row["text"] is None or not same_text(text, row["text"])
    disk.write_whole(folder / "labels.tsv", "".join(lines).encode())
    return written


def _read(path: Path) -> Mapping[str, str]:
    try:
        labels = read_labels(path)
    except LabelsError as error:
        raise InputError(str(error)) from error
    texts: dict[str, Any] = {}
    for label in labels:
        if texts.setdefault(label.name, label.text) != label.text:
            raise InputError(f"{path}, line {label.line}: {label.name!r} has two different texts")
    if not texts:
        raise InputError(f"{path}: no labels; accept rows on the page and save them")
    return texts


def _file_name(identity: str, suffix: str, taken: set[str]) -> str:
    """Makes of an id a name within the folder, like it and of no other row: what tells writers apart stays in it."""
    identity = ESCAPED_BYTE.sub(r"_\1", identity).replace("\\", "/")
    parts = [part for part in PurePosixPath(identity).parts if part not in ("/", "..", ".")]
    clean = "/".join("".join(c if c.isprintable() and c not in ':*?"<>|#' else "_" for c in part) for part in parts)
    path = PurePosixPath(clean or "strip")
    stem = str(path.with_suffix("")) if path.suffix.lower() in _ENDINGS else str(path)
    chosen, number = f"{stem}{suffix}", 2
    while chosen.lower() in taken:  # some file systems take a.png and A.png for one
        chosen, number = f"{stem}-{number}{suffix}", number + 1
    taken.add(chosen.lower())
    return chosen
