"""An int8 variant: made of a real bundle, kept behind its gate, found by those who ask for it."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from glyphline.models.bundle import load_bundle, write_manifest
from glyphline.models.errors import BundleError
from glyphline.models.recognizer import Recognizer
from glyphline.models.repository import pretrained_root
from glyphline.training import quantise as module
from glyphline.training.datasets.samples import Sample
from glyphline.training.errors import DataError, ExportError
from glyphline.training.quantise import quantise, split


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A copy of the shipped bundle with a CTC head, without its variant."""
    source = max((pretrained_root() / "digits-ctc").iterdir())
    copy = Path(shutil.copytree(source, tmp_path / "digits-ctc" / source.name))
    manifest = load_bundle(copy).manifest
    for variant in manifest.variants.values():
        for name in variant.graphs.values():
            (copy / name).unlink()
    write_manifest(copy, manifest.model_copy(update={"variants": {}}))
    return copy


def test_a_variant_is_added_and_read_with(bundle: Path, strips_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not load_bundle(bundle).manifest.variants
    with pytest.raises(BundleError, match="no int8 variant"):
        Recognizer.load(load_bundle(bundle), precision="int8")
    before = load_bundle(bundle).manifest.files
    # Ranges seen on blank paper let no writing through: the bundle stays as it was, with nothing beside it.
    blank = {"images": np.zeros((1, 1, 48, 64), np.uint8), "widths": np.array([64], np.int64)}
    with monkeypatch.context() as patch, pytest.raises(ExportError, match=r"error rate of .* fp32 .* no variant"):
        patch.setattr(module, "_batches", lambda *_: [blank])
        quantise(bundle, [str(strips_folder)], Path("data"))
    assert load_bundle(bundle).manifest.files == before
    assert [entry.name for entry in bundle.parent.iterdir()] == [bundle.name]

    variant = quantise(bundle, [str(strips_folder)], Path("data"), margin=0.05)
    made = load_bundle(bundle)
    assert made.manifest.variants == {"int8": variant}
    assert variant.cer <= variant.cer_fp32 + variant.margin
    assert made.graphs("int8") == {"network": "network.int8.onnx"}
    assert made.graphs() == {"network": "network.onnx"}
    sizes = [made.file(f"network{kind}.onnx").stat().st_size for kind in ("", ".int8")]
    assert sizes[1] < 0.7 * sizes[0], "a byte a weight where there were two, but for recurrent layers"
    recognizer = Recognizer.load(made, precision="int8")
    assert recognizer.provider == "CPUExecutionProvider int8"
    assert recognizer.with_confidence(temperature=1.0).provider == recognizer.provider
    made.file("network.int8.onnx").write_bytes(b"")
    with pytest.raises(BundleError, match=r"network\.int8\.onnx"):
        load_bundle(bundle)


def test_no_strip_both_calibrates_and_compares() -> None:
    samples = [Sample(np.zeros((1, 1), np.uint8), "", str(index)) for index in range(5000)]
    calibration, comparison = split(samples, 1000)
    assert len(calibration) == module.CALIBRATION_STRIPS
    assert 500 <= len(comparison) <= 1000
    assert not {sample.source for sample in calibration} & {sample.source for sample in comparison}
    with pytest.raises(DataError, match="too few"):
        split(samples[:19], 1000)
