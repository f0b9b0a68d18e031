"""Bundles are found by name and version, and what is not there is named."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from glyphline.models.bundle import write_manifest
from glyphline.models.errors import BundleError, ModelNotFoundError
from glyphline.models.manifest import Manifest
from glyphline.models.repository import ModelRepository, pretrained_root


def put(root: Path, name: str, versions: Sequence[int | str]) -> None:
    for version in versions:
        folder = root / name / str(version)
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text("{}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path, "digits", [1, 2, 10])
    put(tmp_path, "amounts", [3])
    return tmp_path


def test_models_and_versions_are_listed_in_order(root: Path) -> None:
    repository = ModelRepository([root])
    assert repository.names() == ["amounts", "digits"]
    assert repository.versions("digits") == [1, 2, 10]
    assert repository.latest("digits") == 10


def test_a_model_is_found_by_name_and_version(root: Path) -> None:
    repository = ModelRepository([str(root)])
    assert repository.resolve("digits", 2) == root / "digits" / "2"
    assert repository.resolve("digits") == root / "digits" / "10"
    assert repository.resolve() == root / "digits" / "10"
    assert repository.resolve(None, 1) == root / "digits" / "1"


def test_without_digits_the_first_is_the_default(tmp_path: Path) -> None:
    put(tmp_path, "words", [1])
    put(tmp_path, "lines", [1])
    assert ModelRepository([tmp_path]).default_name == "lines"


@pytest.mark.parametrize("name", ["digit", "", "..", "../digits", "digits/1", "Digits"])
def test_an_unknown_model_is_an_error_that_lists_those_there_are(root: Path, name: str) -> None:
    with pytest.raises(ModelNotFoundError, match="amounts, digits"):
        ModelRepository([root]).resolve(name)
    with pytest.raises(ModelNotFoundError, match="amounts, digits"):
        ModelRepository([root]).versions(name)


def test_an_unknown_version_is_an_error_that_lists_those_there_are(root: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="1, 2, 10"):
        ModelRepository([root]).resolve("digits", 3)


@pytest.mark.parametrize("roots", [[], ["nowhere"]])
def test_no_models_at_all_is_an_error(roots: list[str]) -> None:
    repository = ModelRepository(roots)
    assert repository.names() == []
    with pytest.raises(ModelNotFoundError, match="no models under"):
        repository.resolve()
    with pytest.raises(ModelNotFoundError, match="none at all"):
        repository.resolve("digits")


def test_what_is_no_version_of_a_model_is_passed_over(root: Path) -> None:
    put(root, "digits", ["draft", "0", "007", "-1", "²"])
    put(root, ".cache", [1])
    (root / "digits" / "11").mkdir()  # still being copied: the manifest comes last
    (root / "notes.txt").write_text("")
    (root / "empty").mkdir()
    repository = ModelRepository([root])
    assert repository.names() == ["amounts", "digits"]
    assert repository.versions("digits") == [1, 2, 10]


def test_earlier_roots_go_first(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    put(other, "digits", [2, 11])
    repository = ModelRepository([other, root])
    assert repository.resolve("digits", 2) == other / "digits" / "2"
    assert repository.versions("digits") == [1, 2, 10, 11]


def test_a_model_put_there_later_is_found(root: Path) -> None:
    repository = ModelRepository([root])
    put(root, "digits", [11])
    assert repository.latest("digits") == 11


def test_a_bundle_in_another_s_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "digits" / "2"
    folder.mkdir(parents=True)
    for name in ("network.onnx", "model_card.md", "probe.png"):
        (folder / name).write_bytes(b"")
    record = {
        "name": "digits",
        "version": 2,
        "task": "",
        "head": "ctc",
        "alphabet": ["0", "1"],
        "max_output_length": 9,
        "pixels_per_frame": 4,
        "graphs": {"network": "network.onnx"},
        "probe": {"image": "probe.png", "text": "", "confidence": 1},
        "licence": "",
        "git_commit": "",
        "created": "",
    }
    write_manifest(folder, Manifest.model_validate(record))
    repository = ModelRepository([tmp_path])
    assert repository.load().path == folder
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"version": 1}))
    with pytest.raises(BundleError, match=r"manifest\.json: this is digits/1"):
        repository.load("digits", 2)


def test_the_package_has_a_folder_for_its_own_bundles() -> None:
    assert pretrained_root().name == "pretrained"
    assert ModelRepository([pretrained_root()]).default_name == "digits"


def test_labels_name_versions(root: Path) -> None:
    repository = ModelRepository([root])
    assert repository.labels("digits") == {}
    (root / "digits" / "labels.toml").write_text("stable = 2\ncanary-2 = 10\n")
    assert repository.labels("digits") == {"stable": 2, "canary-2": 10}
    assert repository.names() == ["amounts", "digits"]


@pytest.mark.parametrize(
    "content",
    ["stable", "1 = 2", "Stable = 2", "latest = 2", "stable = '2'", "stable = 0", "stable = true", "[a]\nb = 1"],
)
def test_what_cannot_be_labels_is_refused_by_name(root: Path, content: str) -> None:
    (root / "digits" / "labels.toml").write_text(content)
    with pytest.raises(BundleError, match=r"digits/labels\.toml"):
        ModelRepository([root]).labels("digits")


def test_what_is_passed_over_is_told_with_what_it_must_be_called(root: Path) -> None:
    put(root, "digits", ["v3", "1.0", "new", "007", ".copying"])
    put(root, ".hidden", ["v1"])
    (root / "flat").mkdir()
    (root / "flat" / "manifest.json").write_text("{}")
    (root / "digits" / "notes").mkdir()
    repository = ModelRepository([root])
    told = repository.passed_over()
    assert [line.removeprefix(f"{root}/").partition(" ")[0] for line in told] == [
        "digits/007",
        "digits/1.0",
        "digits/new",
        "digits/v3",
        "flat",
    ]
    assert told[3] == (
        f"{root}/digits/v3 is passed over: a version's folder is called by its number, as {root}/digits/3"
    )
    assert told[4] == f"{root}/flat is passed over: a version has a folder of its own, as {root}/flat/1"
    with pytest.raises(ModelNotFoundError, match=r"has no version 3; it has 1, 2, 10; .*v3 is passed over"):
        repository.resolve("digits", 3)
    with pytest.raises(ModelNotFoundError, match=r"there is amounts, digits; .*flat is passed over"):
        repository.resolve("flat")


def test_a_repository_of_such_folders_alone_says_so(tmp_path: Path) -> None:
    put(tmp_path, "digits", ["v1"])
    with pytest.raises(ModelNotFoundError, match=r"there are no models under .*; .*v1 is passed over"):
        ModelRepository([tmp_path]).resolve()
