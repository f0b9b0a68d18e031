"""`glyphline data convert`: from one format to another, the bytes of each picture as they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from glyphline.models.errors import ImageError
from glyphline.training.datasets.commands.inputs import Progress, silent
from glyphline.training.datasets.readers import Cut, Format, read_dataset
from glyphline.training.datasets.samples import SkipCounts
from glyphline.training.datasets.writers import Target, open_writer
from glyphline.training.errors import DataError


@dataclass(frozen=True, slots=True)
class Converted:
    """What a conversion did.

    Attributes:
        written: Number of samples that were written.
        skips: Those that were not, by reason.
    """

    written: int
    skips: SkipCounts


def convert(
    source: Path,
    output: Path,
    target: Target,
    *,
    format: Format = "auto",
    cut: Cut = "polygon",
    shard_size: int = 1000,
    skip_damaged: bool = False,
    progress: Progress = silent,
) -> Converted:
    """Writes a data set in another format. Pictures are not encoded anew; lines cut from pages become PNG.

    Args:
        source: Data set.
        output: Folder of the new one; it must not exist, or be empty.
        target: Format of the new one.
        format: Format of `source`.
        cut: How lines are cut from pages.
        shard_size: Samples in a shard of `webdataset`.
        skip_damaged: Leave out what cannot be read and count it, rather than to stop.
        progress: Is told of every picture.

    Raises:
        DataError: If `source` cannot be read, `output` is there already, or a picture is damaged.
    """
    images = read_dataset(source, format, cut=cut, missing="keep" if skip_damaged else "refuse")
    skips = SkipCounts()
    written = 0
    with open_writer(output, target, shard_size) as writer:
        for image in images:
            try:
                image.load()  # all of it: a header may be whole where the pixels are not
                writer.add(image.source, image.content(), image.text)
                written += 1
            except (DataError, ImageError) as error:
                if not skip_damaged:
                    raise DataError(f"{error} (--skip-damaged leaves such out)") from error
                skips.add("unreadable", image.source)
            progress(written + sum(skips.counts.values()), sum(skips.counts.values()))
    return Converted(written, skips)
