"""Which versions of which models a server should hold, by what lies in its repository.

Of a model that is wanted, that is the latest version that can be used and every version that has a label; or, if
versions are wanted, those. What could not be used is not tried again until its files change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from glyphline.models.errors import BundleError, GlyphlineError
from glyphline.models.repository import ModelRepository
from glyphline.service.catalogue import is_version
from glyphline.service.errors import SettingError
from glyphline.service.messages import ModelKey

__all__ = ["Choice", "Selection", "Signature", "signature"]

Signature = tuple[tuple[str, int, int], ...]  # path, size and time of change of every file


@dataclass(frozen=True, slots=True)
class Choice:
    """What a server should hold.

    Attributes:
        folders: Where each version lies. Of one that is held and has vanished it is where it lay.
        labels: By name of a model: the version that each label stands for.
        problems: What is not as it should be, for the log.
    """

    folders: Mapping[ModelKey, Path]
    labels: Mapping[str, Mapping[str, int]]
    problems: Sequence[str]


class Selection:
    """Looks at a repository and decides.

    Args:
        repository: The repository.
        wanted: `name` or `name:version` of each model; None for all.

    Raises:
        SettingError: If a version is no number.
    """

    def __init__(self, repository: ModelRepository, wanted: Sequence[str] | None) -> None:
        self._repository = repository
        self._wanted: dict[str, set[int | None]] = {}  # None stands for the latest version and those with labels
        self._refused: dict[ModelKey, tuple[Signature, GlyphlineError]] = {}
        for entry in wanted or ():
            name, separator, version = entry.partition(":")
            if separator and not is_version(version):
                raise SettingError(f"model {entry!r}: the version must be a number, as in digits:1")
            self._wanted.setdefault(name, set()).add(int(version) if separator else None)

    def refuse(self, key: ModelKey, folder: Path, error: GlyphlineError) -> None:
        """Takes note that a version cannot be used as it is."""
        self._refused[key] = signature(folder), error

    def forgive(self) -> None:
        """Has everything tried again."""
        self._refused.clear()

    def choose(self, held: Mapping[ModelKey, Path], labels: Mapping[str, Mapping[str, int]]) -> Choice:
        """Decides what to hold.

        Args:
            held: Where the versions lie that are held now. They are used as long as they are wanted.
            labels: The labels of now. One that would stand for what cannot be used stays where it is.
        """
        present = self._repository.folders()
        folders: dict[ModelKey, Path] = {}
        chosen_labels: dict[str, Mapping[str, int]] = {}
        problems = self._repository.passed_over()
        for name in self._wanted or sorted({*present, *(name for name, _ in held)}):
            kept = {version: folder for (of, version), folder in held.items() if of == name}
            there = present.get(name, {})
            usable = {version: kept.get(version, folder) for version, folder in there.items()}
            for version, folder in there.items():
                if version not in kept and not self._may_be_tried((name, version), folder):
                    del usable[version]
            before = labels.get(name, {})
            named = self._read_labels(name, before, problems) if there else before
            versions = self._choose_versions(name, usable, kept, named)
            if not versions and (there or name in self._wanted):  # it is not given up for want of a usable version
                problems.append(f"no version of {name} in the repository can be used; what is held stays")
                versions = kept
            chosen_labels[name] = _place_labels(name, named, before, versions, kept, problems)
            labelled = {version: kept[version] for version in chosen_labels[name].values() if version in kept}
            folders |= {(name, version): folder for version, folder in {**versions, **labelled}.items()}
        if held and not folders:
            return Choice(held, labels, [*problems, "no model in the repository can be used; what is held stays"])
        return Choice(folders, chosen_labels, problems)

    def check(self, choice: Choice) -> None:
        """Makes sure that a choice has all that a server is started for.

        Raises:
            ModelNotFoundError: If a wanted model is not there.
            GlyphlineError: If nothing of a model can be used, or its labels cannot be read; the error says why.
        """
        wanted = self._wanted or {name: {None} for name in self._repository.names()}
        for name, versions in wanted.items():
            self._repository.labels(name)
            for version in versions:
                folder = self._repository.resolve(name, version)
                chosen = [number for of, number in choice.folders if of == name]
                if not chosen or (version is not None and version not in chosen):
                    raise self._refused[name, int(folder.name)][1]

    def _choose_versions(
        self, name: str, usable: Mapping[int, Path], kept: Mapping[int, Path], labels: Mapping[str, int]
    ) -> Mapping[int, Path]:
        """Chooses versions of one model among those that are held or can be used."""
        wanted = self._wanted.get(name, {None})
        versions = {version: folder for version, folder in {**kept, **usable}.items() if version in wanted}
        if None in wanted and usable:
            versions |= {version: usable[version] for version in {max(usable), *labels.values()} if version in usable}
        return versions

    def _may_be_tried(self, key: ModelKey, folder: Path) -> bool:
        refused = self._refused.get(key)
        return refused is None or refused[0] != signature(folder)

    def _read_labels(self, name: str, before: Mapping[str, int], problems: list[str]) -> Mapping[str, int]:
        try:
            return self._repository.labels(name)
        except BundleError as error:
            problems.append(f"labels stay as they are: {error}")
            return before


def _place_labels(
    name: str,
    named: Mapping[str, int],
    before: Mapping[str, int],
    versions: Mapping[int, Path],
    kept: Mapping[int, Path],
    problems: list[str],
) -> Mapping[str, int]:
    """Tells what each label of a model stands for: what its file says if that can be used, else what it stood for."""
    placed = {}
    for label, version in named.items():
        if version in versions:
            placed[label] = version
        elif (old := before.get(label)) in kept and old is not None:
            placed[label] = old
            problems.append(f"label {label!r} of {name} stays with version {old}: version {version} cannot be used")
        else:
            problems.append(f"label {label!r} of {name} stands for nothing: version {version} cannot be used")
    return placed


def signature(folder: Path) -> Signature:
    """Returns what changes when a file below a folder does."""
    found = []
    for path in folder.rglob("*"):
        try:
            status = path.stat()
        except OSError:  # gone in this moment
            continue
        found.append((str(path.relative_to(folder)), status.st_size, status.st_mtime_ns))
    return tuple(sorted(found))
