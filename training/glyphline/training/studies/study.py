"""What a study is: a measurement with its tables and its picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Findings = TypeVar("Findings")

Tell = Callable[[int, int], None]
"""Is told as a study gets on how many of how many steps are done."""


def tell_nobody(done: int, steps: int) -> None:
    """A `Tell` for those who do not ask how a study gets on."""


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """How large a study is made.

    Attributes:
        seeds: Networks of each kind that are measured; None: as many as the study's own default.
        quick: Measure on tiny sizes, in seconds: to see that all works, not to believe the figures.
        data_root: Folder of the data, for studies that read any.
        folder: Folder where a long study keeps what it has trained, so that it goes on where it was stopped.
    """

    seeds: int | None = None
    quick: bool = False
    data_root: Path | None = None
    folder: Path | None = None

    def seed_list(self, default: int, quick: int = 2) -> tuple[int, ...]:
        """Returns the seeds: as many as asked for, or else `default` of them, or `quick` of a quick study."""
        return tuple(range(self.seeds or (quick if self.quick else default)))


@dataclass(frozen=True, slots=True)
class Table:
    """A table of what was measured, every value as it is to be shown.

    Attributes:
        title: What the rows are.
        headings: Names of the columns.
        rows: Values, a row as long as the headings.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def to_markdown(self) -> str:
        """Writes the table as Markdown, columns after the first to the right."""
        rule = ("---", *("---:" for _ in self.headings[1:]))
        lines = [f"| {' | '.join(row)} |" for row in (self.headings, rule, *self.rows)]
        return "\n".join([f"**{self.title}**", "", *lines])


@dataclass(frozen=True)
class Study(Generic[Findings]):
    """A study; `Findings` is its frozen dataclass of what was measured, of values that JSON knows.

    Attributes:
        name: What the command line calls it.
        title: What it shows, in a line.
        run: Measures. The same options give the same findings.
        tables: Tabulates what was found.
        draw: Draws what was found.
        animate: Draws it as an animation into a GIF file, if it can be.
        needs_data: Whether it reads data, and so needs their folder.
    """

    name: str
    title: str
    run: Callable[[StudyOptions, Tell], Findings]
    tables: Callable[[Findings], tuple[Table, ...]]
    draw: Callable[[Findings], Figure]
    animate: Callable[[Findings, Path], None] | None = None
    needs_data: bool = False
