"""Recognisers of both heads, from the bundles that come with the package, and a small bundle to spoil."""

from pathlib import Path
from typing import Any

import pytest

from glyphline.models import repository
from glyphline.models.bundle import Bundle, write_manifest
from glyphline.models.manifest import Manifest
from glyphline.models.recognizer import Recognizer


@pytest.fixture(scope="session")
def recognizers() -> dict[str, Recognizer]:
    """The shipped recogniser of each head."""
    shipped = repository.ModelRepository([repository.pretrained_root()])
    found: dict[str, Recognizer] = {}
    for name in shipped.names():
        recognizer = Recognizer.load(shipped.load(name))
        found.setdefault(recognizer.bundle.manifest.head, recognizer)
    return found


@pytest.fixture(params=["ctc", "attention"])
def recognizer(request: pytest.FixtureRequest, recognizers: dict[str, Recognizer]) -> Recognizer:
    """A recogniser, once of each head."""
    return recognizers[request.param]


@pytest.fixture
def bundle(recognizer: Recognizer) -> Bundle:
    """A bundle, once of each head."""
    return recognizer.bundle


@pytest.fixture
def record() -> dict[str, Any]:
    """What a manifest of a CTC head may say."""
    return {
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


@pytest.fixture
def attention_record(record: dict[str, Any]) -> dict[str, Any]:
    """What a manifest of an attention head may say."""
    return record | {
        "head": "attention",
        "graphs": {"encoder": "encoder.onnx", "decoder_step": "decoder_step.onnx"},
        "states": [{"name": "hidden", "kind": "fixed", "size": 8}, {"name": "coverage", "kind": "frames"}],
    }


@pytest.fixture
def folder(tmp_path: Path, record: dict[str, Any]) -> Path:
    """A small bundle whose graphs are never opened; each file's content is its name."""
    folder = tmp_path / "digits" / "3"
    folder.mkdir(parents=True)
    for name in ("network.onnx", "model_card.md", "probe.png"):
        (folder / name).write_bytes(name.encode())
    write_manifest(folder, Manifest.model_validate(record))
    return folder
