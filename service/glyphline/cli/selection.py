"""Finds the bundle that `--model`, `--model-version` and `--model-repository` mean."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from glyphline.cli.exit_codes import CommandError

if TYPE_CHECKING:
    from glyphline.models.bundle import Bundle
    from glyphline.models.repository import ModelRepository

_MANIFEST = "manifest.json"


def open_repository(root: Path | None) -> ModelRepository:
    """Opens a folder of models, by default the one that comes with Glyphline.

    Raises:
        CommandError: If the folder does not exist.
    """
    from glyphline.models.repository import ModelRepository, pretrained_root

    if root is not None and not root.is_dir():
        raise CommandError(f"{root}: no such folder; a repository holds <name>/<version>/{_MANIFEST}")
    return ModelRepository([pretrained_root() if root is None else root])


def find_bundle(model: str | None, version: int | None, root: Path | None) -> Bundle:
    """Opens a bundle by name, or the one in the folder that `model` is.

    Args:
        model: Name of a model, or the folder of a bundle, or the folder of one model's versions. None: the default.
        version: Version; None is the latest.
        root: The repository; None is the one that comes with Glyphline.

    Returns:
        The bundle, its files verified.

    Raises:
        CommandError: If a folder is given that does not exist, or a version of a single bundle.
        ModelNotFoundError: If there is no such model or version.
        BundleError: If it is damaged.
    """
    from glyphline.models.bundle import load_bundle

    if model is None or not _is_path(model):
        return open_repository(root).load(model, version)
    folder = Path(model)
    if not folder.is_dir():
        raise CommandError(f"{model}: no such folder; name a bundle's folder, or a model of `glyphline models`")
    if (folder / _MANIFEST).exists() or not _holds_versions(folder):
        if version is not None:
            raise CommandError(f"{model} is one bundle: leave out --model-version")
        return load_bundle(folder)
    folder = folder.resolve()
    return open_repository(folder.parent).load(folder.name, version)


def _is_path(model: str) -> bool:
    """Whether a folder is meant: it has a separator, or it is one with a manifest here."""
    separators = {os.sep, os.altsep} - {None}
    return any(str(separator) in model for separator in separators) or Path(model, _MANIFEST).exists()


def _holds_versions(folder: Path) -> bool:
    return any(folder.glob(f"*/{_MANIFEST}"))
