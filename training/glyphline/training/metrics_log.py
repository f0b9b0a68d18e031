"""The figures of a run, one row an epoch, in a CSV file that survives a kill between two rows."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class MetricsLog:
    """A CSV file of figures; its columns grow with the figures that rows have.

    Attributes:
        path: The file.
    """

    path: Path

    def rows(self) -> list[dict[str, float]]:
        """Returns all rows in order; a figure that a row lacks is absent from it."""
        if not self.path.exists():
            return []
        with self.path.open(newline="") as file:
            return [{name: float(value) for name, value in row.items() if value} for row in csv.DictReader(file)]

    def append(self, row: dict[str, float]) -> None:
        """Adds a row; rows of the same or a later epoch, left by a run that was resumed from before, are replaced."""
        rows = [kept for kept in self.rows() if kept["epoch"] < row["epoch"]] + [row]
        columns = list(dict.fromkeys(name for kept in rows for name in kept))
        partial = self.path.with_suffix(".partial")
        with partial.open("w", newline="") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(rows)
        partial.replace(self.path)
