"""A server holds the latest version that can be used, and those with labels; what it cannot use changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from glyphline.models.errors import BundleError, ModelNotFoundError
from glyphline.models.repository import LABELS_NAME, ModelRepository
from glyphline.service.errors import StartError
from glyphline.service.selection import Choice, Selection


def put(root: Path, name: str, *versions: int) -> None:
    for version in versions:
        folder = root / name / str(version)
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text("{}")


def label(root: Path, name: str, content: str) -> None:
    (root / name / LABELS_NAME).write_text(content)


def select(root: Path, *wanted: str) -> Selection:
    return Selection(ModelRepository([root]), wanted or None)


def chosen(choice: Choice) -> list[str]:
    return sorted(f"{name}:{version}" for name, version in choice.folders)


def hold(root: Path, *models: str) -> dict[tuple[str, int], Path]:
    """Returns what is held, wherever it lies."""
    pairs = [model.split(":") for model in models]
    return {(name, int(version)): root / name / version for name, version in pairs}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path, "digits", 1, 2, 10)
    put(tmp_path, "letters", 3)
    return tmp_path


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([], ["digits:10", "letters:3"]),
        (["digits"], ["digits:10"]),
        (["digits:1", "digits:2"], ["digits:1", "digits:2"]),
        (["digits", "digits:1"], ["digits:1", "digits:10"]),
    ],
)
def test_the_latest_version_or_those_that_are_named(root: Path, wanted: list[str], expected: list[str]) -> None:
    selection = select(root, *wanted)
    choice = selection.choose({}, {})
    selection.check(choice)
    assert chosen(choice) == expected
    assert not choice.problems


def test_versions_with_labels_are_held_too(root: Path) -> None:
    label(root, "digits", "stable = 2\ncanary = 10\n")
    choice = select(root).choose({}, {})
    assert chosen(choice) == ["digits:10", "digits:2", "letters:3"]
    assert choice.labels["digits"] == {"stable": 2, "canary": 10}


def test_what_is_not_there_is_named(root: Path) -> None:
    with pytest.raises(StartError, match="number"):
        select(root, "digits:one")
    for wanted in ("words", "digits:3"):
        selection = select(root, wanted)
        with pytest.raises(ModelNotFoundError):
            selection.check(selection.choose({}, {}))


def test_complaint_28_what_cannot_be_used_leaves_the_version_before_it(root: Path) -> None:
    """A version that was refused is not tried again until its files change, or until that is asked for."""
    selection = select(root, "digits")
    held = hold(root, "digits:2")
    selection.refuse(("digits", 10), root / "digits" / "10", BundleError("bad"))
    assert chosen(selection.choose(held, {})) == ["digits:2"]
    (root / "digits" / "10" / "manifest.json").write_text("{ }")
    assert chosen(selection.choose(held, {})) == ["digits:10"]
    selection.refuse(("digits", 10), root / "digits" / "10", BundleError("bad"))
    assert chosen(selection.choose(held, {})) == ["digits:2"]
    selection.forgive()
    assert chosen(selection.choose(held, {})) == ["digits:10"]


def test_at_the_start_an_earlier_version_stands_in(root: Path) -> None:
    selection = select(root, "digits")
    for version in (10, 2):
        selection.refuse(("digits", version), root / "digits" / str(version), BundleError(f"{version} is bad"))
    choice = selection.choose({}, {})
    selection.check(choice)
    assert chosen(choice) == ["digits:1"]
    selection.refuse(("digits", 1), root / "digits" / "1", BundleError("1 is bad"))
    with pytest.raises(BundleError, match="10 is bad"):
        selection.check(selection.choose({}, {}))
    named = select(root, "digits:2")
    named.refuse(("digits", 2), root / "digits" / "2", BundleError("2 is bad"))
    with pytest.raises(BundleError, match="2 is bad"):
        named.check(named.choose({}, {}))


def test_removing_a_version_goes_back_and_removing_a_model_removes_it(root: Path) -> None:
    held = hold(root, "digits:11", "words:1")
    assert chosen(select(root).choose(held, {})) == ["digits:10", "letters:3"]


def test_a_model_that_was_asked_for_is_never_given_up(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    held = hold(root, "words:1", "digits:7")
    choice = select(root, "words", "digits:7").choose(held, {})
    assert chosen(choice) == ["digits:7", "words:1"]
    assert len(choice.problems) == 1
    empty = tmp_path_factory.mktemp("empty")
    choice = select(empty).choose(held, {})
    assert chosen(choice) == ["digits:7", "words:1"]
    assert choice.problems


@pytest.mark.parametrize(
    ("content", "labels"),
    [
        ("stable = 10\n", {"stable": 10}),
        ("", {}),
        ("stable = 4\n", {"stable": 1}),  # there is no version 4: it stays
        ("canary = 4\n", {}),
        ("stable = ", {"stable": 1}),  # cannot be read: all stay
        ("stable = '2'\n", {"stable": 1}),
    ],
)
def test_labels_move_only_to_what_can_be_used(root: Path, content: str, labels: Mapping[str, int]) -> None:
    label(root, "digits", content)
    choice = select(root, "digits").choose(hold(root, "digits:1"), {"digits": {"stable": 1}})
    assert choice.labels["digits"] == labels
    assert set(chosen(choice)) == {"digits:10", *(f"digits:{version}" for version in labels.values())}
    assert bool(choice.problems) == (content not in ("", "stable = 10\n"))


def test_what_is_passed_over_is_a_problem_that_is_told(root: Path) -> None:
    (root / "digits" / "10").rename(root / "digits" / "v10")
    choice = select(root).choose({}, {})
    assert chosen(choice) == ["digits:2", "letters:3"]
    (problem,) = choice.problems
    assert problem.endswith(
        "v10 is passed over: a version's folder is called by its number, as " + str(root / "digits/10")
    )
