"""Whether a job may begin, go on or begin again, by what lies in its place already."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Literal

from glyphline.service.jobs.errors import OutputError
from glyphline.service.jobs.sinks import Layout

__all__ = ["SCHEMA", "SETTINGS", "SUMMARY", "Start", "check_place", "check_start", "stored_settings"]

Start = Literal["new", "resume", "overwrite"]
"""To begin, to go on with what there is (or to begin), or to begin again."""

SCHEMA = 1
SETTINGS = "job.json"
SUMMARY = "summary.json"


def stored_settings(layout: Layout) -> dict[str, Any] | None:
    """Reads the settings of the job that is there; None if there is none that has begun.

    Raises:
        OutputError: If they cannot be read.
    """
    path = layout.job / SETTINGS
    try:
        stored = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise OutputError(f"{path}: damaged; --overwrite starts again") from error
    if not isinstance(stored, dict) or stored.get("schema") != SCHEMA:
        raise OutputError(f"{path}: written by another version of Glyphline; --overwrite starts again")
    return stored


def check_place(layout: Layout) -> None:
    """Refuses a place where no output can be.

    Raises:
        OutputError: If its folder is missing, or something else is there.
    """
    if not layout.output.parent.is_dir():
        raise OutputError(f"{layout.output}: the folder {layout.output.parent} does not exist; create it first")
    if not os.path.lexists(layout.output):
        return
    if layout.folder and not layout.output.is_dir():
        raise OutputError(f"{layout.output}: is a file, and parts need a folder; choose another name")
    if not layout.folder and not layout.output.is_file():
        raise OutputError(f"{layout.output}: not an ordinary file; name a file or folder, or - for standard output")


def check_start(layout: Layout, settings: Mapping[str, Any], start: Start) -> None:
    """Refuses what would destroy something, and what would mix rows of two different jobs.

    Raises:
        OutputError: If there is an output or a job that may not be touched, or the job had other settings.
    """
    if start == "overwrite":
        strange = [path for path in layout.leftovers() if not layout.is_ours(path)]
        if strange and layout.format != "xml":
            raise OutputError(f"{strange[0]}: is in the way and no job's own; choose another folder")
        return
    stored = stored_settings(layout)
    if start == "resume" and stored is not None:
        _check_settings(layout, stored["settings"], settings)
    elif stored is not None and not (layout.job / SUMMARY).exists():
        raise OutputError(
            f"{layout.output}: a job for it has begun; --resume goes on with it, --overwrite begins again"
        )
    elif stored is not None or layout.leftovers():
        raise OutputError(f"{layout.output}: exists already; choose another name or pass --overwrite")


def _check_settings(layout: Layout, stored: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    before, now = _plain(stored), _plain(settings)
    changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    if changed:
        told = "; ".join(f"{name} was {before.get(name)!r} and is {now.get(name)!r}" for name in changed)
        raise OutputError(
            f"{layout.output}: the job was begun with other settings: {told}. Give the same ones to go on, or"
            " --overwrite to start again"
        )


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Brings settings to what they are after a way through JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(settings))
    return plain
