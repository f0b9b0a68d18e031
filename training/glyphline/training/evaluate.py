"""Evaluation of a bundle on labelled strips, through the very recogniser that serves it. Needs no torch."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from PIL import Image, ImageDraw

from glyphline.models.bundle import MODEL_CARD_NAME, Evaluation, write_manifest
from glyphline.models.decoding.confidence import coverage_at_accuracy, expected_calibration_error
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.decoding.readings import Reading
from glyphline.models.error_rate import evaluate_pairs
from glyphline.models.image import GreyImage
from glyphline.models.recognizer import Recognizer, load_recognizer
from glyphline.models.session import available_threads
from glyphline.training.card import write_card
from glyphline.training.config import EvaluationSet, FolderSetConfig, read_evaluation_sets
from glyphline.training.datasets.build import build_set
from glyphline.training.datasets.samples import Sample
from glyphline.training.errors import DataError

EVALUATION_SETS = Path(__file__).parent / "configs" / "evaluation.toml"


@dataclass(frozen=True, slots=True)
class LengthResult:
    """Exact readings among strips of one length.

    Attributes:
        length: Characters of the true text.
        images: Strips of that length.
        exact: Share read without any error.
    """

    length: int
    images: int
    exact: float


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """How a recogniser reads one data set.

    Attributes:
        data_set: Name or folder of the set.
        images: Number of strips.
        exact: Share read without any error.
        exact_interval: Its 95 % interval.
        cer: Character error rate: all edits over all true characters.
        cer_interval: Its 95 % interval.
        insertions: Characters that are not there.
        deletions: Characters that were missed.
        substitutions: Characters read as others.
        seconds: Time that reading took.
        by_length: Exact readings by length of the true text.
        calibration_error: Expected calibration error of the lines' confidences.
        coverage: Share of strips that can go straight through, by confidence, at 99.9 % exact.
        worst: The most confident wrong readings: source, true text, reading, confidence.
    """

    data_set: str
    images: int
    exact: float
    exact_interval: tuple[float, float]
    cer: float
    cer_interval: tuple[float, float]
    insertions: int
    deletions: int
    substitutions: int
    seconds: float
    by_length: tuple[LengthResult, ...]
    calibration_error: float
    coverage: float
    worst: tuple[tuple[str, str, str, float], ...]


def read_samples(
    recognizer: Recognizer, samples: Sequence[Sample], options: DecodingOptions | None = None
) -> list[Reading]:
    """Reads samples.

    Raises:
        ImageError: If one cannot be read at all, as where it is too wide.
    """
    outcomes = recognizer.recognize([GreyImage(sample.pixels) for sample in samples], options or DecodingOptions())
    readings = []
    for outcome in outcomes:
        if not isinstance(outcome, Reading):
            raise outcome
        readings.append(outcome)
    return readings


def compared(text: str, compare: str) -> str:
    """Returns what of a text is compared: all of it, or its digits."""
    return "".join(character for character in text if character in "0123456789") if compare == "digits" else text


def evaluate(
    recognizer: Recognizer,
    samples: Sequence[Sample],
    data_set: str,
    options: DecodingOptions | None = None,
    compare: str = "all",
) -> EvaluationResult:
    """Evaluates a recogniser.

    Args:
        recognizer: The recogniser.
        samples: Labelled strips.
        data_set: Name for the report.
        options: Decoding.
        compare: `all` characters, or `digits` alone.

    Returns:
        Rates, intervals, calibration, and the most confident errors.
    """
    began = time.perf_counter()
    readings = read_samples(recognizer, samples, options)
    seconds = time.perf_counter() - began
    pairs = [
        (compared(sample.text, compare), compared(reading.text, compare))
        for sample, reading in zip(samples, readings, strict=True)
    ]
    rates = evaluate_pairs(pairs)
    right = [reference == text for reference, text in pairs]
    confidences = [reading.confidence for reading in readings]
    lengths: dict[int, list[bool]] = {}
    for (reference, _), correct in zip(pairs, right, strict=True):
        lengths.setdefault(len(reference), []).append(correct)
    wrong = sorted((index for index, correct in enumerate(right) if not correct), key=lambda i: -confidences[i])
    return EvaluationResult(
        data_set=data_set,
        images=len(pairs),
        exact=rates.exact,
        exact_interval=rates.exact_interval(),
        cer=rates.cer,
        cer_interval=rates.cer_interval(),
        insertions=rates.insertions,
        deletions=rates.deletions,
        substitutions=rates.substitutions,
        seconds=seconds,
        by_length=tuple(LengthResult(n, len(c), sum(c) / len(c)) for n, c in sorted(lengths.items())),
        calibration_error=expected_calibration_error(confidences, right),
        coverage=coverage_at_accuracy(confidences, right).share,
        worst=tuple((samples[i].source, *pairs[i], round(confidences[i], 4)) for i in wrong[:100]),
    )


def find_set(name: str, data_root: Path | None) -> tuple[EvaluationSet, Path]:
    """Finds an evaluation set: a folder with `labels.tsv`, or a name in the shipped list.

    Args:
        name: Folder or name.
        data_root: Folder below which the paths of named sets lie.

    Returns:
        The set and the folder that its paths are relative to.

    Raises:
        DataError: If there is neither.
    """
    if (Path(name) / "labels.tsv").exists():
        return FolderSetConfig(kind="folder", path=name), Path()
    sets = read_evaluation_sets(EVALUATION_SETS)
    if name not in sets:
        raise DataError(f"{name} is neither a folder with labels.tsv nor one of {', '.join(sorted(sets))}")
    if data_root is None:
        raise DataError(f"{name} is read from below the folder of the data: give --data-root")
    return sets[name], data_root


def evaluate_command(
    model: str,
    data_sets: list[str],
    data_root: Path | None,
    options: DecodingOptions,
    limit: int | None,
    output: Path | None,
    record: bool = False,
) -> list[EvaluationResult]:
    """Evaluates a bundle on several sets.

    Args:
        model: Name of a bundle, or its folder.
        data_sets: Folders or names.
        data_root: Folder below which named sets lie.
        options: Decoding.
        limit: Greatest number of strips of each set.
        output: Folder for a report: `report.json`, and for each set with errors a sheet of the worst.
        record: Write the figures into the bundle's manifest and card, in place of those of the same sets.

    Returns:
        One result a set.

    Raises:
        DataError: If a set is not found or not readable.
        BundleError: If the bundle does not load.
    """
    recognizer = load_recognizer(model, threads=available_threads())
    results = []
    for name in data_sets:
        settings, root = find_set(name, data_root)
        samples = build_set(settings, root)[:limit]
        compare = settings.compare if isinstance(settings, FolderSetConfig) else "all"
        result = evaluate(recognizer, samples, name, options, compare)
        results.append(result)
        if output is not None and result.worst:
            output.mkdir(parents=True, exist_ok=True)
            draw_worst(result, samples, output / f"worst-{Path(name).name}.png")
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        report = json.dumps([asdict(result) for result in results], indent=1, ensure_ascii=False)
        (output / "report.json").write_text(report + "\n", encoding="utf-8")
    if record:
        record_results(recognizer, results, options)
    return results


def record_results(recognizer: Recognizer, results: list[EvaluationResult], options: DecodingOptions) -> None:
    """Writes results into a bundle's manifest and card; results of other sets stay."""
    bundle = recognizer.bundle
    decoder = f" --decoder {options.decoder}" if options.decoder else ""
    names = " ".join(result.data_set for result in results)
    command = f"glyphline evaluate {names} --model {bundle.manifest.name}{decoder} --data-root DATA"
    rows = {row.data_set: row for row in bundle.manifest.evaluation}
    for result in results:
        rows[result.data_set] = Evaluation(
            data_set=result.data_set,
            images=result.images,
            exact=round(result.exact, 5),
            exact_interval=(round(result.exact_interval[0], 5), round(result.exact_interval[1], 5)),
            cer=round(result.cer, 6),
            cer_interval=(round(result.cer_interval[0], 6), round(result.cer_interval[1], 6)),
            command=command,
        )
    manifest = bundle.manifest.model_copy(update={"evaluation": list(rows.values())})
    (bundle.path / MODEL_CARD_NAME).write_text(write_card(manifest), encoding="utf-8")
    write_manifest(bundle.path, manifest)


def draw_worst(result: EvaluationResult, samples: Sequence[Sample], path: Path) -> None:
    """Draws a sheet of the most confident errors: each strip over its true text and its reading."""
    by_source = {sample.source: sample for sample in samples}
    cell, tall, columns = 300, 84, 4
    rows = -(-len(result.worst) // columns)
    sheet = Image.new("RGB", (cell * columns, tall * rows), "white")
    pen = ImageDraw.Draw(sheet)
    for index, (source, reference, text, confidence) in enumerate(result.worst):
        x, y = index % columns * cell + 4, index // columns * tall + 4
        strip = Image.fromarray(by_source[source].pixels)
        strip.thumbnail((cell - 8, 44))
        sheet.paste(strip, (x, y))
        pen.text((x, y + 46), f"true {reference}", fill="green")
        pen.text((x, y + 60), f"read {text}  ({confidence:.3f})", fill="red")
    sheet.save(path)
