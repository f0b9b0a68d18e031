"""Where bundles lie: folders `<root>/<name>/<version>/`, several models in several versions side by side.

Beside a model's versions may lie `labels.toml`, which gives some of them names: `stable = 3`.
"""

import glob
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from glyphline.models.bundle import Bundle, load_bundle
from glyphline.models.errors import BundleError, ModelNotFoundError
from glyphline.models.manifest import MANIFEST_NAME

__all__ = ["DEFAULT_NAME", "LABELS_NAME", "ModelRepository", "pretrained_root", "read_labels"]

DEFAULT_NAME = "digits"
LABELS_NAME = "labels.toml"
_VERSION = re.compile("[1-9][0-9]*")
_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,31}")


def pretrained_root() -> Path:
    """Returns the folder of the bundles that come with the package."""
    return Path(__file__).parent / "pretrained"


class ModelRepository:
    """Finds bundles by name and version under one or more roots.

    Every call looks at the disk, so that a model put there later is found. Anything else that lies about, and versions
    still being copied (they get their manifest last), are passed over. Where two roots hold the same version of a
    model, the earlier root counts.
    """

    def __init__(self, roots: Sequence[Path | str]) -> None:
        """Takes the roots; they need not exist yet.

        Args:
            roots: Folders that hold one folder for each model.
        """
        self.roots = tuple(Path(root) for root in roots)

    @property
    def default_name(self) -> str:
        """The model meant where none is named: `digits` if there is one, else the first by name.

        Raises:
            ModelNotFoundError: If there is no model at all.
        """
        names = self.names()
        if not names:
            raise ModelNotFoundError(
                "; ".join([f"there are no models under {self._spell_roots()}", *self.passed_over()])
            )
        return DEFAULT_NAME if DEFAULT_NAME in names else names[0]

    def names(self) -> list[str]:
        """Returns the names of all models that have a version, sorted."""
        return sorted(self._scan())

    def folders(self) -> Mapping[str, Mapping[int, Path]]:
        """Returns the folder of every version, by name and version."""
        return self._scan()

    def passed_over(self, name: str = "*") -> list[str]:
        """Says of each bundle that lies where none is looked for what it must be called.

        Args:
            name: Of the model; all models for `*`.
        """
        told = []
        for root in self.roots:
            for manifest in sorted({*root.glob(f"{name}/{MANIFEST_NAME}"), *root.glob(f"{name}/*/{MANIFEST_NAME}")}):
                folder = manifest.parent
                if folder.parent == root:
                    told.append(f"{folder} is passed over: a version has a folder of its own, as {folder / '1'}")
                elif not _VERSION.fullmatch(folder.name) and not any(
                    part.startswith(".") for part in folder.relative_to(root).parts
                ):
                    number = re.search(r"[1-9][0-9]*", folder.name)
                    meant = folder.with_name(number[0] if number else "1")
                    told.append(f"{folder} is passed over: a version's folder is called by its number, as {meant}")
        return told

    def labels(self, name: str) -> dict[str, int]:
        """Returns the labels of a model, with the version that each stands for.

        Args:
            name: Of the model.

        Raises:
            BundleError: If a file of labels cannot be read or says what labels cannot be.
        """
        labels: dict[str, int] = {}
        for root in reversed(self.roots):
            labels.update(read_labels(root / name / LABELS_NAME))
        return labels

    def versions(self, name: str) -> list[int]:
        """Returns the versions of a model, rising.

        Args:
            name: Of the model.

        Raises:
            ModelNotFoundError: If no model has the name.
        """
        return sorted(self._find(name))

    def latest(self, name: str) -> int:
        """Returns the highest version of a model.

        Args:
            name: Of the model.

        Raises:
            ModelNotFoundError: If no model has the name.
        """
        return self.versions(name)[-1]

    def resolve(self, name: str | None = None, version: int | None = None) -> Path:
        """Finds the folder of a bundle.

        Args:
            name: Of the model; None means the default one.
            version: Of the model; None means the latest.

        Returns:
            The folder. Whether its bundle is whole is for `load_bundle` to say.

        Raises:
            ModelNotFoundError: If there is no such model or version. The message lists those that exist.
        """
        if name is None:
            name = self.default_name
        versions = self._find(name)
        if version is None:
            version = max(versions)
        if version not in versions:
            known = "; ".join([", ".join(map(str, sorted(versions))), *self.passed_over(glob.escape(name))])
            raise ModelNotFoundError(f"model {name!r} has no version {version}; it has {known}")
        return versions[version]

    def load(self, name: str | None = None, version: int | None = None) -> Bundle:
        """Finds a bundle and verifies it.

        Args:
            name: Of the model; None means the default one.
            version: Of the model; None means the latest.

        Returns:
            The bundle.

        Raises:
            ModelNotFoundError: If there is no such model or version.
            BundleError: If it is damaged, or lies in a folder of another name or version than its own.
        """
        folder = self.resolve(name, version)
        bundle = load_bundle(folder)
        own = f"{bundle.manifest.name}/{bundle.manifest.version}"
        if own != f"{folder.parent.name}/{folder.name}":
            raise BundleError(f"{folder / MANIFEST_NAME}: this is {own}, which is not what its folder says")
        return bundle

    def _find(self, name: str) -> dict[int, Path]:
        models = self._scan()
        if name not in models:
            known = "; ".join([", ".join(sorted(models)) or "none at all", *self.passed_over()])
            raise ModelNotFoundError(f"no model {name!r} under {self._spell_roots()}; there is {known}")
        return models[name]

    def _scan(self) -> dict[str, dict[int, Path]]:
        """Lists the folder of every version of every model."""
        models: dict[str, dict[int, Path]] = {}
        for root in self.roots:
            for manifest in root.glob(f"*/*/{MANIFEST_NAME}"):
                folder = manifest.parent
                name, version = folder.parent.name, folder.name
                if name.startswith(".") or not _VERSION.fullmatch(version):
                    continue
                models.setdefault(name, {}).setdefault(int(version), folder)
        return models

    def _spell_roots(self) -> str:
        return ", ".join(map(str, self.roots)) or "no folder"


def read_labels(file: Path) -> dict[str, int]:
    """Reads a file of labels: TOML with lines such as `stable = 3`.

    Args:
        file: The file. None need be there.

    Returns:
        The version that each label stands for.

    Raises:
        BundleError: If it cannot be read, or a label is none that could be told from a version.
    """
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise BundleError(f"{file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BundleError(f"{file}: this is not TOML: {error}") from error
    for label, version in content.items():
        if not _LABEL.fullmatch(label) or label == "latest":
            raise BundleError(
                f"{file}: {label!r} cannot be a label: up to 32 of a-z, 0-9, - and _, a letter first, and not 'latest'"
            )
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise BundleError(f"{file}: label {label!r} must stand for the number of a version, not {version!r}")
    return content
