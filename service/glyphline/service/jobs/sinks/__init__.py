"""Where rows go: JSON Lines, CSV, Parquet, and PAGE or ALTO with the texts filled in."""

from __future__ import annotations

from pathlib import Path

from glyphline.service.jobs.disk import Disk
from glyphline.service.jobs.sinks.filled import write_filled
from glyphline.service.jobs.sinks.layout import FORMATS, Format, Layout, choose_format, guess_format
from glyphline.service.jobs.sinks.parquet import check_parquet, write_parquet
from glyphline.service.jobs.sinks.table import write_csv

__all__ = ["FORMATS", "Format", "Layout", "check_parquet", "choose_format", "guess_format", "publish"]


def publish(layout: Layout, part: int, disk: Disk) -> None:
    """Gives the rows of a part their place in the output; done twice, it comes to the same."""
    segment: Path = layout.segment(part)
    target = layout.published(part)
    if not segment.exists() and target.exists():
        return  # renamed before the crash
    if layout.format == "csv":
        write_csv(segment, target, disk)
    elif layout.format == "parquet":
        write_parquet(segment, target, disk)
    else:
        if layout.format == "xml":
            write_filled(segment, layout.output, disk)
        disk.replace(segment, target)
