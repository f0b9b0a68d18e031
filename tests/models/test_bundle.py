"""A bundle is whole or refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glyphline.models.bundle import Bundle, Manifest, load_bundle, write_manifest
from glyphline.models.errors import BundleError

FILES = {"network.onnx": b"graph", "model_card.md": b"# Card\n", "probe.png": b"image"}

RECORD: dict[str, Any] = {
    "name": "digits",
    "version": 3,
    "task": "digit strips",
    "head": "ctc",
    "alphabet": ["0", "1", "é"],
    "image": {"height": 32},
    "max_output_length": 24,
    "decoder": {"name": "beam", "beam_width": 5, "length_penalty": 0.5},
    "pixels_per_frame": 4.0,
    "width_multiple": 16,
    "temperature": 1.5,
    "graphs": {"network": "network.onnx"},
    "probe": {"image": "probe.png", "text": "01", "confidence": 0.9},
    "training": {"epochs": 3, "optimiser": {"name": "adamw"}},
    "evaluation": [
        {
            "data_set": "mnist:test",
            "images": 1000,
            "exact": 0.99,
            "exact_interval": [0.98, 0.995],
            "cer": 0.002,
            "cer_interval": [0.001, 0.003],
            "command": "glyphline evaluate",
        }
    ],
    "licence": "Apache-2.0",
    "data": [{"name": "MNIST", "licence": "MIT", "use": "training"}],
    "git_commit": "0" * 40,
    "created": "2026-01-01T00:00:00Z",
}

ATTENTION: dict[str, Any] = {
    "head": "attention",
    "graphs": {"encoder": "encoder.onnx", "decoder_step": "decoder_step.onnx"},
    "states": [{"name": "hidden", "kind": "fixed", "size": 8}, {"name": "coverage", "kind": "frames"}],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small bundle whose graphs are never opened."""
    return write_bundle(tmp_path / "digits" / "3")


def write_bundle(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    write_manifest(folder, Manifest.model_validate(RECORD))
    return folder


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    file = folder / "manifest.json"
    record = json.loads(file.read_text(encoding="utf-8"))
    change(record)
    file.write_text(json.dumps(record), encoding="utf-8")


def test_a_bundle_comes_back_as_it_was_written(folder: Path) -> None:
    bundle = load_bundle(folder)
    written = Manifest.model_validate(RECORD)
    assert bundle == Bundle(path=folder, manifest=written.model_copy(update={"files": bundle.manifest.files}))
    assert set(bundle.manifest.files) == set(FILES)
    assert bundle.file("probe.png").read_bytes() == b"image"
    assert load_bundle(str(folder)) == bundle


def test_the_manifest_is_readable_json_with_one_line_end(folder: Path) -> None:
    content = (folder / "manifest.json").read_bytes()
    assert "é".encode() in content
    assert content.endswith(b"}\n")
    assert b"\r" not in content
    assert sorted(path.name for path in folder.iterdir()) == sorted([*FILES, "manifest.json"])


def test_an_attention_bundle_lists_its_states(tmp_path: Path) -> None:
    for name in ("encoder.onnx", "decoder_step.onnx", "model_card.md", "probe.png"):
        (tmp_path / name).write_bytes(name.encode())
    written = write_manifest(tmp_path, Manifest.model_validate(RECORD | ATTENTION))
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
def test_no_changed_byte_of_the_manifest_does_more_than_change_a_value(tmp_path: Path, data: st.DataObject) -> None:
    folder = write_bundle(tmp_path)
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


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"schema_version": 1'])
def test_a_manifest_that_is_not_json_is_an_error(folder: Path, content: bytes) -> None:
    (folder / "manifest.json").write_bytes(content)
    with pytest.raises(BundleError, match=r"manifest\.json: not JSON"):
        load_bundle(folder)


@pytest.mark.parametrize("content", ["[]", "3", '"text"', "null"])
def test_a_manifest_must_be_an_object(folder: Path, content: str) -> None:
    (folder / "manifest.json").write_text(content)
    with pytest.raises(BundleError, match="not a JSON object"):
        load_bundle(folder)


def test_a_folder_without_manifest_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"manifest\.json: no such file"):
        load_bundle(tmp_path)
    with pytest.raises(BundleError, match="nowhere"):
        load_bundle(tmp_path / "nowhere")


def test_a_newer_schema_asks_for_an_upgrade(folder: Path) -> None:
    rewrite(folder, lambda record: record.update(schema_version=2, novelty=True))
    with pytest.raises(BundleError, match="schema version 2 is newer"):
        load_bundle(folder)


def test_the_schema_version_must_be_there(folder: Path) -> None:
    rewrite(folder, lambda record: record.pop("schema_version"))
    with pytest.raises(BundleError, match="schema_version is missing"):
        load_bundle(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alphabet": ["0"]}, "alphabet has 1 symbol"),
        ({"alphabet": []}, "alphabet has 0 symbol"),
        ({"alphabet": ["0", "0"]}, "repeats"),
        ({"alphabet": ["0", "e\u0301"]}, "normal form C"),
        ({"alphabet": ["0", ""]}, "empty"),
        ({"unknown": 1}, "unknown"),
        ({"version": 0}, "version"),
        ({"version": "3"}, "version"),
        ({"schema_version": "1"}, "schema_version"),
        ({"head": "transformer"}, "head"),
        ({"head": "attention"}, "graphs"),
        ({"states": [{"name": "hidden", "kind": "fixed", "size": 8}]}, "no CTC head, lists"),
        ({"temperature": 0.0}, "temperature"),
        ({"pixels_per_frame": -1.0}, "pixels_per_frame"),
        ({"graphs": {"network": "../network.onnx"}}, "graphs"),
        ({"graphs": {"network": "/etc/passwd"}}, "graphs"),
        ({"graphs": {"network": "other.onnx"}}, r"no hash of other\.onnx"),
        ({"probe": {"image": "..", "text": "", "confidence": 1.0}}, "probe"),
        ({"probe": {"image": "probe.png", "text": "", "confidence": 1.5}}, "probe"),
        ({"files": {"../../evil": "0" * 64}}, "files"),
        ({"files": {"network.onnx\n": "0" * 64}}, "files"),
        ({"decoder": {"name": "beam", "beam_width": 0, "length_penalty": 1.0}}, "decoder"),
    ],
)
def test_a_wrong_value_is_named(folder: Path, change: dict[str, Any], message: str) -> None:
    rewrite(folder, lambda record: record.update(change))
    with pytest.raises(BundleError, match=rf"manifest\.json: .*{message}"):
        load_bundle(folder)


def test_states_must_be_sound() -> None:
    twice = {"states": [{"name": "hidden", "kind": "frames"}, {"name": "hidden", "kind": "frames"}]}
    with pytest.raises(ValueError, match="one name"):
        Manifest.model_validate(RECORD | ATTENTION | twice)
    for state in ({"name": "h", "kind": "fixed"}, {"name": "h", "kind": "frames", "size": 3}):
        with pytest.raises(ValueError, match="states its size"):
            Manifest.model_validate(RECORD | ATTENTION | {"states": [state]})


@pytest.mark.parametrize("head", ["flatten", "image-first", "pooled-state"])
def test_a_head_that_looks_at_no_frames_has_no_state_over_them(head: str) -> None:
    fixed = {"head": head, "states": [{"name": "hidden", "kind": "fixed", "size": 8}]}
    assert Manifest.model_validate(RECORD | ATTENTION | fixed).head == head
    with pytest.raises(ValueError, match="no other looks at them"):
        Manifest.model_validate(RECORD | ATTENTION | fixed | {"states": [{"name": "seen", "kind": "frames"}]})
    with pytest.raises(ValueError, match="lists its recurrent states"):
        Manifest.model_validate(RECORD | ATTENTION | fixed | {"states": []})
    with pytest.raises(ValueError, match="decoder_step"):
        Manifest.model_validate(RECORD | fixed)


def test_a_fused_graph_is_optional_and_of_step_wise_heads_only() -> None:
    fused = ATTENTION["graphs"] | {"decode": "decode.onnx"}
    manifest = Manifest.model_validate(RECORD | ATTENTION | {"graphs": fused})
    assert "decode.onnx" in manifest.required_files
    without = Bundle(Path("digits"), manifest).without("decode")
    assert without.manifest == Manifest.model_validate(RECORD | ATTENTION)
    assert without.without("decode") == without
    for record in (RECORD, RECORD | ATTENTION):
        with pytest.raises(ValueError, match="has the graphs"):
            Manifest.model_validate(record | {"graphs": {"network": "network.onnx", "decode": "decode.onnx"}})


def test_writing_refuses_what_loading_would(tmp_path: Path) -> None:
    manifest = Manifest.model_validate(RECORD)
    with pytest.raises(BundleError, match=r"model_card\.md"):
        write_manifest(tmp_path, manifest)
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "a b.txt").write_bytes(b"")
    with pytest.raises(BundleError, match=r"manifest\.json"):
        write_manifest(tmp_path, manifest)
    assert not (tmp_path / "manifest.json").exists()


def test_writing_again_follows_the_files(folder: Path) -> None:
    (folder / "network.onnx").write_bytes(b"a better graph")
    write_manifest(folder, load_manifest(folder))
    load_bundle(folder)


def load_manifest(folder: Path) -> Manifest:
    return Manifest.model_validate_json((folder / "manifest.json").read_bytes())


def test_only_a_beam_search_has_a_language_model(folder: Path) -> None:
    def name(decoder: str) -> Callable[[dict[str, Any]], object]:
        return lambda record: record["decoder"].update(name=decoder, language_model="lm.arpa.gz")

    rewrite(folder, name("greedy"))
    with pytest.raises(BundleError, match="guides a beam search"):
        load_bundle(folder)
    rewrite(folder, name("beam"))
    assert "lm.arpa.gz" in Manifest.model_validate_json((folder / "manifest.json").read_bytes()).required_files
    with pytest.raises(BundleError, match=r"lm\.arpa\.gz"):
        load_bundle(folder)
