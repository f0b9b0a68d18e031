"""The bundle: the folder that carries a trained recogniser from training to wherever it reads.

A bundle holds `manifest.json`, the networks as ONNX graphs, a model card and a probe image with the text it must give.
The manifest names every other file with its sha256, so that a bundle is either whole or refused. Names that start with
a dot are left alone: file managers and volume mounts put such things where they please, and no bundle file has one.
"""

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from glyphline.models.errors import BundleError
from glyphline.models.manifest import MANIFEST_NAME, Manifest, Precision, explain, read_manifest

__all__ = ["Bundle", "load_bundle", "write_manifest"]


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle whose files have been verified.

    Attributes:
        path: The folder.
        manifest: Its manifest.
    """

    path: Path
    manifest: Manifest

    def file(self, name: str) -> Path:
        """Returns the path of one of its files."""
        return self.path / name

    def without(self, role: str) -> "Bundle":
        """Returns the same bundle as it would be without one of its graphs that are optional.

        Args:
            role: Role of the graph, such as `decode`; a bundle that has none of it stays as it is.
        """
        graphs = {each: file for each, file in self.manifest.graphs.items() if each != role}
        return replace(self, manifest=self.manifest.model_copy(update={"graphs": graphs}))

    def graphs(self, precision: Precision = "fp32") -> dict[str, str]:
        """Returns the file of each graph, by role.

        Raises:
            BundleError: If the bundle has no variant of that precision.
        """
        graphs: dict[str, str] = dict(self.manifest.graphs)
        if precision == "fp32":
            return graphs
        variant = self.manifest.variants.get(precision)
        if variant is None:
            raise BundleError(
                f"{self.path}: the bundle has no {precision} variant; `glyphline quantise` makes one, or use fp32"
            )
        return graphs | variant.graphs


def load_bundle(path: Path | str) -> Bundle:
    """Opens a bundle and verifies that it is whole.

    Args:
        path: The folder that holds `manifest.json`.

    Returns:
        The bundle. Its probe is not read yet: that takes a recogniser.

    Raises:
        BundleError: If the manifest is missing, malformed or of a newer schema, or if a file is missing, unlisted or
            changed. The message names the file.
    """
    folder = Path(path)
    manifest = read_manifest(folder / MANIFEST_NAME)
    _verify_files(folder, manifest)
    return Bundle(path=folder, manifest=manifest)


def write_manifest(path: Path | str, manifest: Manifest) -> Manifest:
    """Completes a bundle: hashes the files of its folder and writes `manifest.json`.

    The manifest is put in place in one step, so that a reader sees the old one or the new one and no half of either.

    Args:
        path: The folder, with every other file in place.
        manifest: What to write; its `files` are replaced.

    Returns:
        The manifest as written.

    Raises:
        BundleError: If a file that the manifest names is missing, or the folder holds something it may not.
    """
    folder = Path(path)
    names = _list_files(folder)
    missing = sorted(manifest.required_files - names)
    if missing:
        raise BundleError(f"{folder / missing[0]}: the bundle needs this file")
    files = {name: _hash(folder / name) for name in sorted(names)}
    # Through validation, unlike `model_copy`: a name that loading would refuse must not be written.
    try:
        complete = Manifest.model_validate({**manifest.model_dump(), "files": files})
    except ValidationError as error:
        raise BundleError(f"{folder / MANIFEST_NAME}: {explain(error)}") from error
    text = json.dumps(complete.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
    descriptor, temporary = tempfile.mkstemp(prefix=".manifest-", dir=folder)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(folder / MANIFEST_NAME)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return complete


def _verify_files(folder: Path, manifest: Manifest) -> None:
    listed = set(manifest.files)
    unlisted = sorted(manifest.required_files - listed)
    if unlisted:
        raise BundleError(f"{folder / MANIFEST_NAME}: files has no hash of {unlisted[0]}")
    present = _list_files(folder)
    missing = sorted(listed - present)
    if missing:
        raise BundleError(f"{folder / missing[0]}: the manifest lists this file but it is missing")
    extra = sorted(present - listed)
    if extra:
        raise BundleError(f"{folder / extra[0]}: the manifest does not list this file")
    for name, expected in manifest.files.items():
        found = _hash(folder / name)
        if found != expected:
            raise BundleError(f"{folder / name}: sha256 is {found}, the manifest says {expected}; the file was changed")


def _list_files(folder: Path) -> set[str]:
    """Names in the folder besides the manifest and hidden ones."""
    try:
        entries = list(folder.iterdir())
    except OSError as error:
        raise BundleError(f"{folder}: {error.strerror}") from error
    names = set()
    for entry in entries:
        if entry.name.startswith(".") or entry.name == MANIFEST_NAME:
            continue
        if not entry.is_file():
            raise BundleError(f"{entry}: a bundle holds plain files only")
        names.add(entry.name)
    return names


def _hash(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise BundleError(f"{file}: {error.strerror}") from error
