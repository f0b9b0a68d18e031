"""An int8 variant of a bundle's networks: made by static quantisation, and kept only if it reads as well.

Convolutions and matrix products compute in int8: activations unsigned with ranges seen on calibration strips, weights
signed with a scale for each output channel. So does what lies between convolutions (rectifiers, masks, maxima): left
in floats, every picture would go from bytes to floats and back at each of them. Recurrent layers compute in fp32 as
before: ONNX Runtime's int8 ones take the range of a whole batch, so that a strip would read differently in other
company. Their weights are kept as fp16, half the size. The decoder of a step-wise head stays as it is; its small
products gain nothing.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from glyphline.models.bundle import load_bundle
from glyphline.models.error_rate import evaluate_pairs
from glyphline.models.image import GreyImage, normalise
from glyphline.models.manifest import Manifest, Precision, Variant
from glyphline.models.recognizer import Recognizer, bucket_width
from glyphline.models.session import available_threads
from glyphline.training.amend import amended, known_samples, read_probe, rewrite
from glyphline.training.datasets.samples import Sample
from glyphline.training.errors import DataError, ExportError
from glyphline.training.evaluate import read_samples
from glyphline.training.half_weights import halve_weights

logger = logging.getLogger(__name__)

MARGIN = 0.001
"""Greatest rise of the character error rate: one character in a thousand."""

CALIBRATION_STRIPS = 256
PRECISIONS: tuple[Precision, ...] = ("fp32", "int8")
_ROLES = ("network", "encoder")
_BATCH = 16
_OPERATORS = ["Conv", "MatMul", "Gemm", "Relu", "Mul", "MaxPool", "Add"]


def quantise(
    path: Path, data_sets: Sequence[str], data_root: Path, margin: float = MARGIN, most: int = 4000
) -> Variant:
    """Adds an int8 variant to a bundle, in place of one that it may have.

    Args:
        path: Folder of the bundle.
        data_sets: Strips to calibrate on and to compare with; none means the validation sets of the run that made the
            bundle.
        data_root: Folder below which their pictures lie.
        margin: Greatest rise of the character error rate.
        most: Greatest number of strips that are compared.

    Returns:
        What was measured.

    Raises:
        DataError: If there are too few strips.
        ExportError: If the rate rises by more than the margin. The bundle is left as it was.
    """
    bundle = load_bundle(path)
    calibration, comparison = split(known_samples(bundle, list(data_sets), data_root), most)
    without = bundle.manifest.model_copy(update={"variants": {}})
    with amended(path) as folder:
        for old in bundle.manifest.variants.values():
            for name in old.graphs.values():
                (folder / name).unlink()
        graphs = {}
        for role in _ROLES:
            if role in without.graphs:
                graphs[role] = f"{Path(without.graphs[role]).stem}.int8.onnx"
                logger.info("writing %s", graphs[role])
                write_int8(path / without.graphs[role], folder / graphs[role], _batches(calibration, without))
        unknown = Variant(graphs=graphs, images=0, cer=0.0, cer_fp32=0.0, margin=margin, confidence=0.0)
        made = rewrite(folder, without.model_copy(update={"variants": {"int8": unknown}}))
        rates, probes = {}, {}
        for precision in PRECISIONS:
            recognizer = Recognizer.load(made, threads=available_threads(), precision=precision, verify_probe=False)
            readings = read_samples(recognizer, comparison)
            pairs = [(sample.text, reading.text) for sample, reading in zip(comparison, readings, strict=True)]
            rates[precision] = evaluate_pairs(pairs).cer
            probes[precision] = read_probe(recognizer)
        if not rates["int8"] <= rates["fp32"] + margin:
            raise ExportError(
                f"{path}: int8 has a character error rate of {rates['int8']:.3%} on {len(comparison)} strips, fp32 "
                f"{rates['fp32']:.3%}: that is more than {margin:.3%} above it, and no variant was written"
            )
        text, confidence = probes["int8"]
        if text != without.probe.text:
            raise ExportError(
                f"{path}: int8 reads the probe as {text!r}, fp32 as {without.probe.text!r}: no variant was written"
            )
        variant = Variant(
            graphs=graphs,
            images=len(comparison),
            cer=round(rates["int8"], 6),
            cer_fp32=round(rates["fp32"], 6),
            margin=margin,
            confidence=confidence,
        )
        finished = rewrite(folder, without.model_copy(update={"variants": {"int8": variant}}))
        Recognizer.load(finished, precision="int8")  # with its probe, as every server will
    return variant


def split(samples: Sequence[Sample], most: int) -> tuple[list[Sample], list[Sample]]:
    """Takes strips to calibrate on from all over the samples; the others are compared.

    Args:
        samples: All of them.
        most: Greatest number to compare.

    Returns:
        What to calibrate on, at most a quarter, and what to compare, no strip in both.

    Raises:
        DataError: If there are fewer than 20.
    """
    if len(samples) < 20:
        raise DataError(f"{len(samples)} strips are too few to calibrate on and to compare with; take at least 20")
    step = max(4, len(samples) // CALIBRATION_STRIPS)
    calibration = list(samples[::step])[:CALIBRATION_STRIPS]
    others = [sample for index, sample in enumerate(samples) if index % step]
    return calibration, others[:: max(1, -(-len(others) // most))]


def _batches(samples: Sequence[Sample], manifest: Manifest) -> list[dict[str, NDArray[Any]]]:
    """Makes the inputs of a network of strips, like widths together."""
    strips = sorted(
        (normalise(GreyImage(sample.pixels), manifest.image) for sample in samples), key=lambda x: x.shape[1]
    )
    batches: list[dict[str, NDArray[Any]]] = []
    for begin in range(0, len(strips), _BATCH):
        group = strips[begin : begin + _BATCH]
        widest = bucket_width(group[-1].shape[1], manifest.width_multiple)
        images = np.zeros((len(group), 1, manifest.image.height, widest), dtype=np.uint8)
        for image, strip in zip(images, group, strict=True):
            image[0, :, : strip.shape[1]] = strip
        batches.append({"images": images, "widths": np.array([strip.shape[1] for strip in group], dtype=np.int64)})
    return batches


class _Reader(CalibrationDataReader):  # type: ignore[misc]
    """Hands batches to the calibrator, which asks for one after another."""

    def __init__(self, batches: Sequence[dict[str, NDArray[Any]]]) -> None:
        self._batches: Iterator[dict[str, NDArray[Any]]] = iter(batches)

    def get_next(self) -> dict[str, NDArray[Any]] | None:
        return next(self._batches, None)


def write_int8(source: Path, target: Path, batches: Sequence[dict[str, NDArray[Any]]]) -> None:
    """Quantises one graph.

    Args:
        source: The graph.
        target: Where to write the other.
        batches: Its inputs by name, to see ranges on.
    """
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of deprecations within ONNX Runtime's own tools
        prepared = Path(folder) / "prepared.onnx"
        quant_pre_process(source, prepared, skip_symbolic_shape=True)
        quantize_static(
            prepared,
            target,
            _Reader(batches),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
            op_types_to_quantize=_OPERATORS,
        )
    halve_weights(target, exactly=False)  # what it costs is measured with the rest
