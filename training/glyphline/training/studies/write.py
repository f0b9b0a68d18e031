"""Runs a study and writes what it found: a table, a picture and JSON."""

from __future__ import annotations

import io
import json
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from PIL import Image

from glyphline.training.studies.study import Study, StudyOptions, Table, Tell


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a study came to.

    Attributes:
        name: The study's name.
        title: What it shows.
        options: How large it was made.
        seconds: How long it took.
        tables: What was found, as tables.
        findings: What was found, whole, as JSON knows it.
        files: The files that were written.
    """

    name: str
    title: str
    options: StudyOptions
    seconds: float
    tables: tuple[Table, ...]
    findings: dict[str, Any]
    files: tuple[Path, ...]

    def to_json(self) -> str:
        """Writes all but the files as one JSON object."""
        values = {key: value for key, value in asdict(self).items() if key != "files"}
        for name in ("data_root", "folder"):  # where the files lay is nobody else's matter
            values["options"].pop(name)
        return json.dumps(values | {"seconds": round(self.seconds, 1)}, ensure_ascii=False, allow_nan=False)


def _save(figure: Figure, path: Path) -> None:
    """Saves a figure as a PNG of 256 colours, which is a third of the size."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=80)
    with Image.open(buffer) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def run_study(study: Study[Any], options: StudyOptions, tell: Tell, output: Path, *, animate: bool = False) -> Outcome:
    """Runs a study and writes `<name>.md`, `<name>.png` and `<name>.json`.

    What a long study trains is kept in `trials`: run again, it goes on from there.

    Args:
        study: The study.
        options: How large it is made.
        tell: Is told how it gets on.
        output: Folder for the files; it is made.
        animate: Write `<name>.gif`, too, if the study can be animated.
    """
    started = time.perf_counter()
    findings = study.run(replace(options, folder=output / "trials"), tell)
    seconds = time.perf_counter() - started
    output.mkdir(parents=True, exist_ok=True)
    table, picture, record, film = (output / f"{study.name}.{ending}" for ending in ("md", "png", "json", "gif"))
    files = [table, picture, record]
    _save(study.draw(findings), picture)
    if animate and study.animate is not None:
        study.animate(findings, film)
        files.append(film)
    outcome = Outcome(study.name, study.title, options, seconds, study.tables(findings), asdict(findings), tuple(files))
    table.write_text("\n\n".join(each.to_markdown() for each in outcome.tables) + "\n", encoding="utf-8")
    record.write_text(outcome.to_json() + "\n", encoding="utf-8")
    return outcome
