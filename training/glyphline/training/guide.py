"""A language model of its own for a bundle: taken up only if the bundle reads better with it."""

from __future__ import annotations

import gzip
import logging
import lzma
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from glyphline.models.bundle import Bundle, load_bundle
from glyphline.models.decoding.language_model import CharacterModel
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.error_rate import evaluate_pairs
from glyphline.models.errors import OptionsError
from glyphline.models.manifest import DecoderDefaults
from glyphline.models.recognizer import Recognizer
from glyphline.models.session import available_threads
from glyphline.training.amend import amended, known_samples, read_probe, rewrite
from glyphline.training.calibrate import calibrate
from glyphline.training.datasets.samples import Sample
from glyphline.training.errors import DataError, ExportError
from glyphline.training.evaluate import read_samples

logger = logging.getLogger(__name__)

LANGUAGE_MODEL_NAME = "language_model.arpa.xz"


@dataclass(frozen=True, slots=True)
class Guided:
    """What was measured before a language model was taken up.

    Attributes:
        images: Strips that were read both ways.
        cer: Character error rate with it.
        cer_without: The same of the greedy search.
    """

    images: int
    cer: float
    cer_without: float


def guide(
    path: Path,
    language_model: Path,
    data_sets: Sequence[str],
    data_root: Path,
    *,
    weight: float,
    length_bonus: float,
    beam_width: int = 10,
    most: int = 4000,
) -> Guided:
    """Gives a bundle a language model that its search is guided by from then on, where callers ask for nothing else.

    Confidences are calibrated anew, as the search may find other texts.

    Args:
        path: Folder of the bundle.
        language_model: ARPA file of characters, packed by gzip or not.
        data_sets: Strips to measure on; none means the validation sets of the run that made the bundle.
        data_root: Folder below which their pictures lie.
        weight: What the language model counts for, beside the network's 1.
        length_bonus: What every symbol adds to a text's score.
        beam_width: Hypotheses of the search.
        most: Greatest number of strips that are read.

    Returns:
        What was measured.

    Raises:
        DataError: If there are no strips, or the language model does not suit.
        ExportError: If the bundle reads no better with it. The bundle is left as it was.
    """
    bundle = load_bundle(path)
    samples = known_samples(bundle, list(data_sets), data_root)
    samples = samples[:: max(1, -(-len(samples) // most))]
    try:
        model = CharacterModel.read(language_model)
        recognizer = Recognizer.load(bundle, threads=available_threads())
        model.bind(recognizer.alphabet)
        options = DecodingOptions(
            "beam",
            beam_width,
            language_model=model,
            language_model_weight=weight,
            length_bonus=length_bonus,
        )
        options.validate(recognizer.alphabet)
    except OptionsError as error:
        raise DataError(f"{error.field.replace('_', ' ')}: {error.message}") from error

    def rate(options: DecodingOptions) -> float:
        readings = read_samples(recognizer, samples, options)
        return evaluate_pairs((s.text, r.text) for s, r in zip(samples, readings, strict=True)).cer

    logger.info("reading %s strips without and with the language model", f"{len(samples):,}")
    result = Guided(len(samples), rate(options), rate(DecodingOptions("greedy")))
    if not result.cer < result.cer_without:
        raise ExportError(
            f"{path}: with the language model the character error rate on {len(samples):,} strips is {result.cer:.3%}, "
            f"without {result.cer_without:.3%}: it does not help, and the bundle is as it was. "
            "Try another --weight, or a model of texts that are more like those of the strips"
        )
    decoder = DecoderDefaults(
        name="beam",
        beam_width=beam_width,
        length_penalty=bundle.manifest.decoder.length_penalty,
        language_model=LANGUAGE_MODEL_NAME,
        language_model_weight=weight,
        length_bonus=length_bonus,
    )
    _take_up(bundle, language_model.read_bytes(), decoder, samples)
    return result


def _pack(content: bytes) -> bytes:
    """Packs an ARPA file by xz, which makes it a third smaller than gzip does."""
    if content.startswith(b"\xfd7zXZ\x00"):
        return content
    plain = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    return lzma.compress(plain, preset=9 | lzma.PRESET_EXTREME)


def _take_up(bundle: Bundle, content: bytes, decoder: DecoderDefaults, samples: list[Sample]) -> None:
    """Puts a language model into a bundle, calibrates the confidences, and notes what the probe gives from now on."""
    path, manifest = bundle.path, bundle.manifest
    with amended(path) as folder:
        if manifest.decoder.language_model is not None:
            (folder / manifest.decoder.language_model).unlink()
        (folder / LANGUAGE_MODEL_NAME).write_bytes(_pack(content))
        # What was recorded before is of another search.
        manifest = manifest.model_copy(update={"decoder": decoder, "evaluation": []})
        recognizer = Recognizer.load(rewrite(folder, manifest), threads=available_threads(), verify_probe=False)
        logger.info("calibrating the confidence")
        calibrated = calibrate(recognizer, samples)
        text, sure = read_probe(calibrated)
        probe = manifest.probe.model_copy(update={"text": text, "confidence": sure})
        manifest = calibrated.bundle.manifest.model_copy(update={"probe": probe})
        variants = {}
        for precision, variant in manifest.variants.items():
            other = Recognizer.load(rewrite(folder, manifest), precision=precision, verify_probe=False)
            read, sure = read_probe(other)
            if read != text:
                raise ExportError(f"{path}: {precision} reads the probe as {read!r}, fp32 as {text!r}")
            variants[precision] = variant.model_copy(update={"confidence": sure})
        Recognizer.load(rewrite(folder, manifest.model_copy(update={"variants": variants})))
