"""Where a job's files lie: the output's own place, and the folder beside or within it that the job is run from."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from glyphline.service.jobs.errors import OutputError

__all__ = ["FORMATS", "Format", "Layout", "choose_format", "guess_format"]

Format = Literal["jsonl", "csv", "parquet", "xml"]
FORMATS: tuple[Format, ...] = ("jsonl", "csv", "parquet", "xml")
PART_ROWS = 100_000
_BY_ENDING: dict[str, Format] = {
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "json": "jsonl",
    "csv": "csv",
    "parquet": "parquet",
}
_PART = re.compile(r"\.?part-\d{6}\.(jsonl|csv|parquet)(\.new)?")


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of a job's files.

    Attributes:
        output: The file or folder that was asked for.
        format: How rows are written there.
        folder: Whether it is a folder of parts.
        part_rows: Rows of a part.
    """

    output: Path
    format: Format
    folder: bool
    part_rows: int = PART_ROWS

    @classmethod
    def of(cls, output: str | Path, chosen: Format, *, folder: bool, part_rows: int = PART_ROWS) -> Layout:
        """Follows links, so that a link keeps pointing at what it points at."""
        return cls(Path(os.path.realpath(output)), chosen, folder, part_rows)

    @property
    def job(self) -> Path:
        """The folder of the job: `_job` within a folder, which readers of Parquet pass over; else `NAME.job`."""
        return self.output / "_job" if self.folder else self.output.with_name(f"{self.output.name}.job")

    @property
    def divided(self) -> bool:
        """Whether there are several parts."""
        return self.folder and self.format != "xml"

    def segment(self, part: int) -> Path:
        """Returns the file to which rows are added until their part is published."""
        return self.job / f"rows-{part:06d}.jsonl"

    def published(self, part: int) -> Path:
        """Returns the place of a part's rows."""
        if not self.folder:
            return self.output
        return self.output / ("rows.jsonl" if self.format == "xml" else f"part-{part:06d}.{self.format}")

    def leftovers(self) -> list[Path]:
        """Lists what lies in the output's place, the job's own folder left out."""
        if not self.folder or not self.output.is_dir():
            return [self.output] if os.path.lexists(self.output) else []
        return sorted(path for path in self.output.iterdir() if path != self.job)

    def is_ours(self, path: Path) -> bool:
        """Whether something that lies in the output's place may be replaced by a job that overwrites."""
        return not self.folder or path.name == "rows.jsonl" or _PART.fullmatch(path.name) is not None


def choose_format(output: str, stated: Format | None) -> tuple[Format, bool]:
    """Tells from an output's name how it is written, and whether it is a folder.

    Args:
        output: As it was given: a folder ends with `/` or is there already; XML and Parquet without an ending are
            written to folders too.
        stated: The format that was asked for, if any.

    Raises:
        OutputError: If no format was asked for, and the name's ending is that of none.
    """
    ending = _ending(output)
    if stated is None and ending and ending not in _BY_ENDING and not _is_folder(output):
        raise OutputError(f"{output}: .{ending} is the ending of no format; {_advice(ending)}")
    return guess_format(output, stated)


def guess_format(output: str, stated: Format | None = None) -> tuple[Format, bool]:
    """Tells the same of a name that may end in anything, as that of an output which is there already may."""
    ending = _ending(output)
    chosen = stated or _BY_ENDING.get(ending, "jsonl")
    return chosen, _is_folder(output) or chosen == "xml" or (chosen == "parquet" and ending not in _BY_ENDING)


def _ending(output: str) -> str:
    return os.path.splitext(output)[1].lower().lstrip(".")


def _is_folder(output: str) -> bool:
    return output.endswith(("/", os.sep)) or os.path.isdir(output)


def _advice(ending: str) -> str:
    if ending == "xml":
        return "PAGE and ALTO files are filled in within a folder: name that, and add --format xml"
    return "name a file that ends in .jsonl, .csv or .parquet, or a folder with / at its end, or add --format"
