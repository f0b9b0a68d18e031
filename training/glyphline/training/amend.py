"""Changes to a finished bundle: made on a copy beside it, and put in its place whole."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from glyphline.models.bundle import Bundle, load_bundle, write_manifest
from glyphline.models.errors import ImageError
from glyphline.models.manifest import ERRORS_NAME, MANIFEST_NAME, MODEL_CARD_NAME, Manifest
from glyphline.models.recognizer import Recognizer
from glyphline.training.card import write_card
from glyphline.training.config import TrainingConfig
from glyphline.training.datasets.build import build_set
from glyphline.training.datasets.samples import Sample
from glyphline.training.errors import DataError, ExportError
from glyphline.training.evaluate import find_set


@contextmanager
def amended(path: Path) -> Iterator[Path]:
    """Lends a copy of a bundle to be changed, and takes it over if nothing was raised.

    A server that starts meanwhile finds the old bundle, a fault, or the new one, but never a mixture: the manifest,
    with the hashes of all files, comes last.

    Args:
        path: Folder of the bundle.

    Yields:
        The copy. It must be a whole bundle again in the end.
    """
    before = load_bundle(path).manifest
    folder = Path(tempfile.mkdtemp(prefix=".amended-", dir=path.parent))
    try:
        for name in (*before.files, MANIFEST_NAME):
            shutil.copy2(path / name, folder / name)
        yield folder
        after = load_bundle(folder).manifest
        for name, digest in after.files.items():
            if before.files.get(name) != digest:
                (folder / name).replace(path / name)
        (folder / MANIFEST_NAME).replace(path / MANIFEST_NAME)
        for name in before.files.keys() - after.files.keys():
            (path / name).unlink()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def rewrite(folder: Path, manifest: Manifest) -> Bundle:
    """Writes card and manifest of a bundle, and loads it."""
    card = write_card(manifest, errors=(folder / ERRORS_NAME).exists())
    (folder / MODEL_CARD_NAME).write_text(card, encoding="utf-8")
    write_manifest(folder, manifest)
    return load_bundle(folder)


def read_probe(recognizer: Recognizer) -> tuple[str, float]:
    """Reads a bundle's probe image; returns its text and the confidence, rounded as manifests have it.

    Raises:
        ExportError: If it cannot be read.
    """
    bundle = recognizer.bundle
    [reading] = recognizer.recognize([bundle.file(bundle.manifest.probe.image).read_bytes()])
    if isinstance(reading, ImageError):
        raise ExportError(f"the probe image cannot be read: {reading}")
    return reading.text, round(reading.confidence, 4)


def known_samples(bundle: Bundle, data_sets: list[str], data_root: Path) -> list[Sample]:
    """Reads strips by which a change is judged.

    Args:
        bundle: The bundle.
        data_sets: Their names; none means the validation sets of the run that made the bundle.
        data_root: Folder below which their pictures lie.

    Raises:
        DataError: If there are none, or they cannot be read.
    """
    found = [find_set(name, data_root) for name in data_sets]
    if not found:
        config = bundle.manifest.training.get("config")
        if not isinstance(config, dict):
            raise DataError(f"{bundle.path}: the bundle does not say what it was trained on; name data sets")
        found = [(settings, data_root) for settings in TrainingConfig.model_validate(config).validation.values()]
    return [sample for settings, root in found for sample in build_set(settings, root)]
