"""The row that a job writes for one item."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from glyphline.service.jobs.items import Item
from glyphline.service.jobs.pictures import CutPicture
from glyphline.service.jobs.rows import Outcome, Row, printable

__all__ = ["ModelIdentity", "RowFormat"]


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """What read the images, as every row says it.

    Attributes:
        name: Name of the bundle.
        version: Its version.
        sha256: Of its manifest, which has those of all its files; None where an older server reads.
        decoder: How texts were searched, as `greedy` or `beam 10`.
    """

    name: str
    version: int
    sha256: str | None
    decoder: str


@dataclass(frozen=True, slots=True)
class RowFormat:
    """How rows look.

    Attributes:
        model: What read the images.
        alternatives: Whether to list every alternative, best first.
        tokens: Whether to list every character with its confidence and span.
    """

    model: ModelIdentity
    alternatives: bool = False
    tokens: bool = False

    def row(self, item: Item, outcome: Outcome) -> dict[str, Any]:
        """Builds a row. `place`, `crop`, `line` and `reference` are there only where there is such a thing."""
        values = Row(item.picture.source, outcome, self.model.name, self.model.version, item.reference).as_json(
            alternatives=self.alternatives, tokens=self.tokens
        )
        row: dict[str, Any] = {"id": item.id, "source": values.pop("source")}
        if place := item.picture.place():
            row["place"] = place
        if isinstance(item.picture, CutPicture):
            row["crop"] = item.picture.crop()
        if item.page is not None:
            row["line"] = {"file": printable(item.page), "number": item.line}
        return row | values | {"sha256": self.model.sha256, "decoder": self.model.decoder}

    def line(self, item: Item, outcome: Outcome) -> bytes:
        """Builds the row's line of JSON."""
        return (json.dumps(self.row(item, outcome), ensure_ascii=False, allow_nan=False) + "\n").encode()
