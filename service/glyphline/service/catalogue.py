"""Which models a server holds, and which of them a request means."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from glyphline.models.alphabet import Alphabet
from glyphline.models.bundle import Bundle
from glyphline.models.manifest import MANIFEST_NAME, Manifest
from glyphline.models.repository import DEFAULT_NAME
from glyphline.service.errors import UnknownModelError
from glyphline.service.messages import ModelKey

__all__ = ["Catalogue", "ServedModel", "is_version"]

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
    def key(self) -> ModelKey:
        """The model's name and version."""
        return self.manifest.name, self.manifest.version

    @property
    def name(self) -> str:
        """The model's name."""
        return self.manifest.name

    @property
    def version(self) -> int:
        """The model's version."""
        return self.manifest.version


class Catalogue:
    """The models of a server, by name, version and label. What it holds can be exchanged, all at once.

    Args:
        models: At least one; no two of one name and version.
        default_name: The name that an empty one stands for; None for the usual one.
        labels: By name of a model: the version that each label stands for, which must be among the models.
    """

    def __init__(
        self,
        models: Iterable[ServedModel],
        default_name: str | None = None,
        labels: Mapping[str, Mapping[str, int]] | None = None,
    ) -> None:
        self._wanted_default = default_name
        self.replace(models, labels or {})

    def replace(self, models: Iterable[ServedModel], labels: Mapping[str, Mapping[str, int]]) -> None:
        """Holds other models from now on; the arguments are those of the constructor."""
        self._models = {model.key: model for model in sorted(models, key=lambda model: model.key)}
        self._latest = {model.name: model for model in self._models.values()}  # the last of each name stays
        self._labels = labels
        default = DEFAULT_NAME if self._wanted_default is None else self._wanted_default
        self.default_name = default if default in self._latest else next(iter(self._latest))

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

    @property
    def health_names(self) -> Sequence[str]:
        """What health can be asked for: the names, and every model as `name:version`."""
        return *self.names, *(f"{model.name}:{model.version}" for model in self.models)

    def is_latest(self, model: ServedModel) -> bool:
        """Tells whether a model is what its bare name stands for."""
        return self._latest.get(model.name) is model

    def labels_of(self, model: ServedModel) -> Sequence[str]:
        """Returns the labels that stand for a model, sorted."""
        labels = self._labels.get(model.name, {})
        return sorted(label for label, version in labels.items() if version == model.version)

    def find(self, name: str, version: str) -> ServedModel:
        """Finds the model that a request means.

        Args:
            name: Its name; empty for the default.
            version: Its version, or a label; empty for the latest.

        Raises:
            UnknownModelError: If there is none; the message lists those there are.
        """
        name = name or self.default_name
        if not version:
            model = self._latest.get(name)
        else:
            number = int(version) if is_version(version) else self._labels.get(name, {}).get(version)
            model = None if number is None else self._models.get((name, number))
        if model is None:
            wanted = f"{name[:_SHOWN]}:{version[:_SHOWN]}" if version else name[:_SHOWN]
            there = ", ".join(self._spell(model) for model in self.models)
            raise UnknownModelError(wanted, f"this server has no model {wanted!r}; it has {there}")
        return model

    def _spell(self, model: ServedModel) -> str:
        labels = ", ".join(self.labels_of(model))
        return f"{model.name}:{model.version} ({labels})" if labels else f"{model.name}:{model.version}"


def is_version(text: str) -> bool:
    """Whether a text is the number of a version."""
    return text.isascii() and text.isdigit() and len(text) <= 18
