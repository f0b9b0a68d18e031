"""Which models a server holds, and which of them a request means."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from glyphline.models.alphabet import Alphabet
from glyphline.models.bundle import MANIFEST_NAME, Bundle, Manifest
from glyphline.models.repository import ModelRepository, pretrained_root
from glyphline.service.errors import StartError, UnknownModelError

__all__ = ["Catalogue", "ServedModel", "load_catalogue"]

_SHOWN = 100  # characters of a caller's name that a message repeats


@dataclass(frozen=True, slots=True, eq=False)
class ServedModel:
    """A model as the front process knows it: all but the networks.

    Attributes:
        path: Folder of the bundle.
        manifest: Its manifest.
        alphabet: Its alphabet.
        manifest_sha256: Hash of the manifest, hence of everything in the bundle.
    """

    path: Path
    manifest: Manifest
    alphabet: Alphabet
    manifest_sha256: str

    @classmethod
    def of(cls, bundle: Bundle) -> ServedModel:
        """Describes a verified bundle."""
        return cls(
            path=bundle.path,
            manifest=bundle.manifest,
            alphabet=Alphabet(bundle.manifest.alphabet),
            manifest_sha256=hashlib.sha256(bundle.file(MANIFEST_NAME).read_bytes()).hexdigest(),
        )

    @property
    def name(self) -> str:
        """The model's name."""
        return self.manifest.name

    @property
    def version(self) -> int:
        """The model's version."""
        return self.manifest.version


class Catalogue:
    """The models of a server, by name and version.

    Args:
        models: At least one; no two of one name and version.
        default_name: The name that an empty one stands for.
    """

    def __init__(self, models: Iterable[ServedModel], default_name: str) -> None:
        self._models = {
            (model.name, model.version): model
            for model in sorted(models, key=lambda model: (model.name, model.version))
        }
        self._latest = {model.name: model for model in self._models.values()}  # the last of each name stays
        self.default_name = default_name

    def __len__(self) -> int:
        return len(self._models)

    @property
    def models(self) -> Sequence[ServedModel]:
        """All models, by name and then version."""
        return tuple(self._models.values())

    @property
    def names(self) -> Sequence[str]:
        """The names, sorted."""
        return tuple(self._latest)

    def is_latest(self, model: ServedModel) -> bool:
        """Tells whether a model is what its bare name stands for."""
        return self._latest[model.name] is model

    def find(self, name: str, version: str) -> ServedModel:
        """Finds the model that a request means.

        Args:
            name: Its name; empty for the default.
            version: Its version; empty for the latest.

        Raises:
            UnknownModelError: If there is none; the message lists those there are.
        """
        name = name or self.default_name
        if not version:
            model = self._latest.get(name)
        else:
            model = self._models.get((name, int(version))) if _is_number(version) else None
        if model is None:
            wanted = f"{name[:_SHOWN]}:{version[:_SHOWN]}" if version else name[:_SHOWN]
            there = ", ".join(f"{model.name}:{model.version}" for model in self.models)
            raise UnknownModelError(wanted, f"this server has no model {wanted!r}; it has {there}")
        return model


def _is_number(version: str) -> bool:
    return version.isascii() and version.isdigit() and len(version) <= 18


def load_catalogue(root: Path | None, wanted: Sequence[str] | None) -> Catalogue:
    """Finds and verifies the models to serve.

    Args:
        root: The model repository; None for the models that come with Glyphline.
        wanted: `name` or `name:version` of each model; None for the latest version of all.

    Raises:
        StartError: If there is nothing to serve, or a version is no number.
        ModelNotFoundError: If a wanted model is not there.
        BundleError: If a bundle is damaged.
    """
    repository = ModelRepository([root or pretrained_root()])
    if not repository.names():
        raise StartError(f"{root or pretrained_root()}: no model here; a repository has <name>/<version>/manifest.json")
    models: dict[tuple[str, int], ServedModel] = {}
    for entry in wanted or repository.names():
        name, separator, version = entry.partition(":")
        if separator and not _is_number(version):
            raise StartError(f"model {entry!r}: the version must be a number, as in digits:1")
        model = ServedModel.of(repository.load(name, int(version) if separator else None))
        models[model.name, model.version] = model
    first = next(iter(models.values())).name
    names = {model.name for model in models.values()}
    default = first if wanted or repository.default_name not in names else repository.default_name
    return Catalogue(models.values(), default)
