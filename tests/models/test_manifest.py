"""A manifest is sound or refused, and what is wrong with it is named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from glyphline.models.bundle import Bundle, load_bundle
from glyphline.models.errors import BundleError
from glyphline.models.manifest import Manifest, read_manifest


@pytest.fixture
def file(folder: Path) -> Path:
    """The manifest of a small bundle."""
    return folder / "manifest.json"


def rewrite(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    record = json.loads(file.read_text(encoding="utf-8"))
    change(record)
    file.write_text(json.dumps(record), encoding="utf-8")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"schema_version": 1'])
def test_a_manifest_that_is_not_json_is_an_error(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(BundleError, match=r"manifest\.json: not JSON"):
        read_manifest(file)


@pytest.mark.parametrize("content", ["[]", "3", '"text"', "null"])
def test_a_manifest_must_be_an_object(file: Path, content: str) -> None:
    file.write_text(content)
    with pytest.raises(BundleError, match="not a JSON object"):
        read_manifest(file)


def test_a_newer_schema_asks_for_an_upgrade(file: Path) -> None:
    rewrite(file, lambda record: record.update(schema_version=2, novelty=True))
    with pytest.raises(BundleError, match="schema version 2 is newer"):
        read_manifest(file)


def test_the_schema_version_must_be_there(file: Path) -> None:
    rewrite(file, lambda record: record.pop("schema_version"))
    with pytest.raises(BundleError, match="schema_version is missing"):
        read_manifest(file)


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
        ({"probe": {"image": "..", "text": "", "confidence": 1.0}}, "probe"),
        ({"probe": {"image": "probe.png", "text": "", "confidence": 1.5}}, "probe"),
        ({"files": {"../../evil": "0" * 64}}, "files"),
        ({"files": {"network.onnx\n": "0" * 64}}, "files"),
        ({"decoder": {"name": "beam", "beam_width": 0, "length_penalty": 1.0}}, "decoder"),
    ],
)
def test_a_wrong_value_is_named(file: Path, change: dict[str, Any], message: str) -> None:
    rewrite(file, lambda record: record.update(change))
    with pytest.raises(BundleError, match=rf"manifest\.json: .*{message}"):
        read_manifest(file)


def test_states_must_be_sound(attention_record: dict[str, Any]) -> None:
    twice = {"states": [{"name": "hidden", "kind": "frames"}, {"name": "hidden", "kind": "frames"}]}
    with pytest.raises(ValueError, match="one name"):
        Manifest.model_validate(attention_record | twice)
    for state in ({"name": "h", "kind": "fixed"}, {"name": "h", "kind": "frames", "size": 3}):
        with pytest.raises(ValueError, match="states its size"):
            Manifest.model_validate(attention_record | {"states": [state]})


@pytest.mark.parametrize("head", ["flatten", "image-first", "pooled-state"])
def test_a_head_that_looks_at_no_frames_has_no_state_over_them(
    head: str, record: dict[str, Any], attention_record: dict[str, Any]
) -> None:
    fixed = {"head": head, "states": [{"name": "hidden", "kind": "fixed", "size": 8}]}
    assert Manifest.model_validate(attention_record | fixed).head == head
    with pytest.raises(ValueError, match="no other looks at them"):
        Manifest.model_validate(attention_record | fixed | {"states": [{"name": "seen", "kind": "frames"}]})
    with pytest.raises(ValueError, match="lists its recurrent states"):
        Manifest.model_validate(attention_record | fixed | {"states": []})
    with pytest.raises(ValueError, match="decoder_step"):
        Manifest.model_validate(record | fixed)


def test_a_fused_graph_is_optional_and_of_step_wise_heads_only(
    record: dict[str, Any], attention_record: dict[str, Any]
) -> None:
    fused = attention_record["graphs"] | {"decode": "decode.onnx"}
    manifest = Manifest.model_validate(attention_record | {"graphs": fused})
    assert "decode.onnx" in manifest.required_files
    without = Bundle(Path("digits"), manifest).without("decode")
    assert without.manifest == Manifest.model_validate(attention_record)
    assert without.without("decode") == without
    for each in (record, attention_record):
        with pytest.raises(ValueError, match="has the graphs"):
            Manifest.model_validate(each | {"graphs": {"network": "network.onnx", "decode": "decode.onnx"}})


def test_only_a_beam_search_has_a_language_model(folder: Path, file: Path) -> None:
    def name(decoder: str) -> Callable[[dict[str, Any]], object]:
        return lambda record: record["decoder"].update(name=decoder, language_model="lm.arpa.gz")

    rewrite(file, name("greedy"))
    with pytest.raises(BundleError, match="guides a beam search"):
        read_manifest(file)
    rewrite(file, name("beam"))
    assert "lm.arpa.gz" in read_manifest(file).required_files
    with pytest.raises(BundleError, match=r"lm\.arpa\.gz"):
        load_bundle(folder)
