"""The sets that a run is validated on, encoded once."""

from __future__ import annotations

from pathlib import Path

from glyphline.training.config import TrainingConfig
from glyphline.training.datasets.batches import TOO_WIDE, Batch, collate, encode_sample
from glyphline.training.datasets.build import build_set
from glyphline.training.datasets.samples import SkipCounts
from glyphline.training.errors import DataError

ValidationBatches = list[tuple[Batch, list[str]]]
"""Batches with the true texts of their strips."""

ValidationSets = dict[str, ValidationBatches]
"""Batches of each set, by its name."""

BATCH = 64


def encode_validation(config: TrainingConfig, root: Path, skips: SkipCounts | None = None) -> ValidationSets:
    """Builds the validation sets, sorted by width into batches of 64.

    Args:
        config: The run.
        root: Folder below which its data are.
        skips: Counts the strips that are left out for their labels.

    Raises:
        DataError: If sets have strips that are damaged or too wide: error rates would not be those of the sets.
    """
    alphabet = config.make_alphabet()
    sets: ValidationSets = {}
    faults = []
    for name, settings in config.validation.items():
        encoded, wide = [], []
        try:
            samples = build_set(settings, root, alphabet, skips)
        except DataError as error:
            faults.append(f"validation set {name}: {error}")
            continue
        for sample in samples:
            strip = encode_sample(sample, alphabet, config.image)
            if strip is None:
                wide.append(sample.source)
            else:
                encoded.append((strip, sample.text))
        if wide:
            more = f" and {len(wide) - 5:,} more" if len(wide) > 5 else ""
            faults.append(
                f"validation set {name}: {', '.join(wide[:5])}{more}: {TOO_WIDE}, wider than image.max_width"
                f" = {config.image.max_width} at height {config.image.height}"
            )
        encoded.sort(key=lambda pair: pair[0].pixels.shape[1])
        parts = [encoded[start : start + BATCH] for start in range(0, len(encoded), BATCH)]
        sets[name] = [(collate([strip for strip, _ in part]), [text for _, text in part]) for part in parts]
    if faults:
        raise DataError("\n  ".join(faults))
    return sets
