"""A bundle is whole or refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glyphline.models.bundle import Bundle, load_bundle, write_manifest
from glyphline.models.errors import BundleError
from glyphline.models.manifest import Manifest, read_manifest

FILES = ("network.onnx", "model_card.md", "probe.png")


def test_a_bundle_comes_back_as_it_was_written(folder: Path, record: dict[str, Any]) -> None:
    bundle = load_bundle(folder)
    written = Manifest.model_validate(record)
    assert bundle == Bundle(path=folder, manifest=written.model_copy(update={"files": bundle.manifest.files}))
    assert set(bundle.manifest.files) == set(FILES)
    assert bundle.file("probe.png").read_bytes() == b"probe.png"
    assert load_bundle(str(folder)) == bundle


def test_the_manifest_is_readable_json_with_one_line_end(folder: Path) -> None:
    content = (folder / "manifest.json").read_bytes()
    assert "é".encode() in content
    assert content.endswith(b"}\n")
    assert b"\r" not in content
    assert sorted(path.name for path in folder.iterdir()) == sorted([*FILES, "manifest.json"])


def test_an_attention_bundle_lists_its_states(tmp_path: Path, attention_record: dict[str, Any]) -> None:
    for name in ("encoder.onnx", "decoder_step.onnx", "model_card.md", "probe.png"):
        (tmp_path / name).write_bytes(name.encode())
    written = write_manifest(tmp_path, Manifest.model_validate(attention_record))
    assert load_bundle(tmp_path).manifest == written
    assert [state.name for state in written.states] == ["hidden", "coverage"]


@pytest.mark.parametrize("name", FILES)
def test_one_changed_byte_is_an_error_that_names_the_file(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[-1] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(BundleError, match=rf"{name}.*changed"):
        load_bundle(folder)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_changed_byte_of_the_manifest_does_more_than_change_a_value(
    folder: Path, record: dict[str, Any], data: st.DataObject
) -> None:
    write_manifest(folder, Manifest.model_validate(record))
    content = bytearray((folder / "manifest.json").read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] = data.draw(st.integers(0, 255))
    (folder / "manifest.json").write_bytes(content)
    try:
        load_bundle(folder)  # a figure or a licence may read differently: nothing vouches for the manifest itself
    except BundleError as error:
        assert str(folder) in str(error)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(BundleError, match=rf"{name}.*missing"):
        load_bundle(folder)


def test_an_extra_file_is_named(folder: Path) -> None:
    (folder / "weights.data").write_bytes(b"")
    with pytest.raises(BundleError, match=r"weights\.data.*does not list"):
        load_bundle(folder)


def test_a_folder_inside_a_bundle_is_refused(folder: Path) -> None:
    (folder / "more").mkdir()
    with pytest.raises(BundleError, match=r"more.*plain files"):
        load_bundle(folder)


def test_hidden_files_are_left_alone(folder: Path) -> None:
    (folder / ".DS_Store").write_bytes(b"droppings")
    load_bundle(folder)


def test_a_file_that_is_needed_has_a_hash(folder: Path) -> None:
    file = folder / "manifest.json"
    record = json.loads(file.read_text(encoding="utf-8")) | {"graphs": {"network": "other.onnx"}}
    file.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(BundleError, match=r"manifest\.json: .*no hash of other\.onnx"):
        load_bundle(folder)


def test_a_folder_without_manifest_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"manifest\.json: no such file"):
        load_bundle(tmp_path)
    with pytest.raises(BundleError, match="nowhere"):
        load_bundle(tmp_path / "nowhere")


def test_writing_refuses_what_loading_would(tmp_path: Path, record: dict[str, Any]) -> None:
    manifest = Manifest.model_validate(record)
    with pytest.raises(BundleError, match=r"model_card\.md"):
        write_manifest(tmp_path, manifest)
    for name in FILES:
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "a b.txt").write_bytes(b"")
    with pytest.raises(BundleError, match=r"manifest\.json"):
        write_manifest(tmp_path, manifest)
    assert not (tmp_path / "manifest.json").exists()


def test_writing_again_follows_the_files(folder: Path) -> None:
    (folder / "network.onnx").write_bytes(b"a better graph")
    write_manifest(folder, read_manifest(folder / "manifest.json"))
    load_bundle(folder)
