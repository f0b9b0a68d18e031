"""Writes a report: `report.json` for programs, `report.html`, one file that needs no other, for people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.manifest import Manifest
from glyphline.models.recognizer import Recognizer
from glyphline.training.card import NOT_STATED
from glyphline.training.report.figures import Comparison, Figures
from glyphline.training.report.measure import ACCURACIES, Measured
from glyphline.training.report.pictures import Picture, choose_worst, draw_line, visible
from glyphline.training.report.plots import FEWEST, draw_coverage, draw_groups, draw_reliability, series_number
from glyphline.training.report.statistics import compare_lines

JSON_NAME, PAGE_NAME = "report.json", "report.html"
_SHOWN = 24  # mistakes of a set and model
_SHOWN_DIFFERENCES = 8
_MATRIX = 24  # characters in a confusion table
_FREQUENT = 12  # confusions named beside it

HEADS_WITH_PLACES = frozenset({"ctc", "attention"})
"""Heads that look at frames one after another, and so know where each symbol stands."""


@dataclass(frozen=True, slots=True)
class ModelNote:
    """What a report says of a model.

    Attributes:
        label: What the report calls it.
        name: Its name.
        version: Its version.
        head: Kind of network.
        places: Whether it tells where it read each symbol; a head that looks at no frames does not.
        decoder: How its texts were searched.
        symbols: Size of its alphabet.
        parameters: Of its network; None if its manifest does not say.
        strips_seen: Strips it was trained on; None if its manifest does not say.
        created: When it was made.
        git_commit: From which source tree.
        licence: Of its weights.
        provider: What ran it.
    """

    label: str
    name: str
    version: int
    head: str
    places: bool
    decoder: str
    symbols: int
    parameters: int | None
    strips_seen: int | None
    created: str
    git_commit: str
    licence: str
    provider: str


def describe_model(label: str, recognizer: Recognizer, options: DecodingOptions) -> ModelNote:
    """Notes what is to be known of a model and of how it decoded."""
    manifest = recognizer.bundle.manifest
    resolved = options.resolve(recognizer.alphabet, manifest.decoder, manifest.max_output_length)
    return ModelNote(
        label=label,
        name=manifest.name,
        version=manifest.version,
        head=manifest.head,
        places=manifest.head in HEADS_WITH_PLACES,
        decoder=_describe_decoder(resolved.beam_width, options, own=options.leaves_guide_to(manifest.decoder)),
        symbols=len(manifest.alphabet),
        parameters=_count(manifest, "parameters"),
        strips_seen=_count(manifest, "strips_seen"),
        created=manifest.created,
        git_commit=manifest.git_commit,
        licence=manifest.licence or NOT_STATED,
        provider=recognizer.provider,
    )


def _describe_decoder(beam_width: int, options: DecodingOptions, *, own: bool) -> str:
    """Says how texts were searched, and what guided the search; `own` if that was the bundle's language model."""
    search = "greedy" if beam_width == 1 else f"beam search of width {beam_width}"
    possible = (
        ("a lexicon", options.lexicon is not None),
        ("a language model", options.language_model is not None),
        ("the language model of the bundle", own),
    )
    guides = [name for name, there in possible if there]
    return f"{search} with {' and '.join(guides)}" if guides else search


def _count(manifest: Manifest, name: str) -> int | None:
    value = manifest.training.get(name)
    return int(value) if isinstance(value, int | float) else None


def compare_models(measured: Sequence[Sequence[Measured]]) -> list[Comparison]:
    """Compares every further model with the first, on every set.

    Args:
        measured: What each model made of each set, the sets in the same order.
    """
    first, *others = measured
    return [
        Comparison(
            data_set=left.figures.data_set,
            first=left.figures.model,
            second=right.figures.model,
            difference=compare_lines([each.counts for each in left.lines], [each.counts for each in right.lines]),
        )
        for other in others
        for left, right in zip(first, other, strict=True)
    ]


def write_report(
    folder: Path, models: Sequence[ModelNote], measured: Sequence[Sequence[Measured]], command: str
) -> None:
    """Writes a report.

    Args:
        folder: Where to; made if it is not there. A report that lies there is replaced.
        models: The models.
        measured: What each of them made of each set, the sets in the same order.
        command: The command that makes the report again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    record = {
        "schema_version": 1,
        "glyphline": version("glyphline"),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "models": [asdict(model) for model in models],
        "results": [asdict(each.figures) for row in measured for each in row],
        "comparisons": [asdict(comparison) for comparison in compare_models(measured)],
    }
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
    (folder / JSON_NAME).write_text(text + "\n", encoding="utf-8")
    (folder / PAGE_NAME).write_text(_render(record, models, measured), encoding="utf-8")


def _render(record: dict[str, Any], models: Sequence[ModelNote], measured: Sequence[Sequence[Measured]]) -> str:
    environment = Environment(
        loader=PackageLoader("glyphline.training.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": _percent, "points": _points, "visible": visible}
    comparisons = compare_models(measured)
    sets = [_describe_set([row[number] for row in measured]) for number in range(len(measured[0]))]
    return environment.get_template("report.html.jinja").render(
        record=record,
        models=models,
        sets=sets,
        comparisons=comparisons,
        series=series_number,
        accuracies=ACCURACIES,
        fewest=FEWEST,
    )


def _percent(value: float, digits: int = 2) -> str:
    """A share in per cent. What is nearly all is not rounded to all, nor what is nearly none to none."""
    text = f"{value * 100:.{digits}f}"
    if value < 1 and float(text) == 100:
        text = f"{100 - 10**-digits:.{digits}f}"
    return ("< " + f"{10**-digits:.{digits}f}" if value > 0 and float(text) == 0 else text) + " %"


def _points(value: float) -> str:
    """A difference of shares, in percentage points."""
    return f"{value * 100:+.2f}".replace("-", "−")


def _describe_set(row: Sequence[Measured]) -> dict[str, Any]:
    """Draws all that the page shows of one set, for every model."""
    figures = [each.figures for each in row]
    first = figures[0]
    names = [each.model for each in figures]
    flags = [[line.counts.exact for line in each.lines] for each in row]
    sure = [[line.confidence for line in each.lines] for each in row]
    lengths = {name: each.by_length for name, each in zip(names, figures, strict=True)}
    widths = {name: each.by_width for name, each in zip(names, figures, strict=True)}
    bins = {name: each.reliability for name, each in zip(names, figures, strict=True)}
    curves = {name: (values, right) for name, values, right in zip(names, sure, flags, strict=True)}
    worst = [choose_worst(each.lines, _SHOWN) for each in row]
    return {
        "name": first.data_set,
        "first": first,
        "figures": figures,
        "lengths": Markup(draw_groups(lengths, "characters of the text")),
        "widths": Markup(draw_groups(widths, "width of the strip, in times its height")),
        "reliability": Markup(draw_reliability(bins)),
        "coverage": Markup(draw_coverage(curves, ACCURACIES)),
        "matrices": [_matrix(each) for each in figures],
        "worst": [
            ([draw_line(line, first.compare) for line in surest], [draw_line(line, first.compare) for line in furthest])
            for surest, furthest in worst
        ],
        "differences": [_differences(row[0], other) for other in row[1:]],
    }


def _differences(first: Measured, second: Measured) -> dict[str, list[Picture]]:
    """Strips that one model reads right and the other does not, as the other reads them."""
    found: dict[str, list[Picture]] = {"lost": [], "won": []}
    for left, right in zip(first.lines, second.lines, strict=True):
        if left.counts.exact == right.counts.exact:
            continue
        chosen, wrong = (found["lost"], right) if left.counts.exact else (found["won"], left)
        if len(chosen) < _SHOWN_DIFFERENCES:
            chosen.append(draw_line(wrong, first.figures.compare))
    return found


def _matrix(figures: Figures) -> dict[str, Any]:
    """Lays confusions out as a table: rows are truth, the last one what was inserted; the last column what was missed.

    Of a large alphabet only the characters with the most errors have a row and a column.
    """
    counts = {(each.truth, each.read): each.count for each in figures.confusions}
    errors: dict[str, int] = {}
    for (truth, read), count in counts.items():
        for character in {truth, read} - {""}:
            errors[character] = errors.get(character, 0) + (count if truth != read else 0)
    chosen = sorted(sorted(errors, key=lambda character: (-errors[character], character))[:_MATRIX])
    rows = []
    for truth in [*chosen, ""]:
        total = sum(count for (expected, _), count in counts.items() if expected == truth)
        cells = [
            {"truth": truth, "read": read, "count": counts.get((truth, read), 0), "total": total}
            for read in [*chosen, ""]
        ]
        rows.append({"truth": truth, "cells": cells, "total": total})
    wrong = [each for each in figures.confusions if each.truth != each.read]
    return {"columns": chosen, "rows": rows, "left_out": len(errors) - len(chosen), "frequent": wrong[:_FREQUENT]}
