"""Evaluation of bundles on labelled strips, through the very recogniser that serves them. Needs no torch."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path, PurePath

from glyphline.models.alphabet import Alphabet
from glyphline.models.bundle import write_manifest
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.decoding.readings import Reading
from glyphline.models.image import GreyImage
from glyphline.models.manifest import ERRORS_NAME, MODEL_CARD_NAME, Evaluation, LengthScore, Precision
from glyphline.models.recognizer import Recognizer, load_recognizer
from glyphline.models.repository import pretrained_root
from glyphline.models.session import Provider, available_threads
from glyphline.training.card import write_card
from glyphline.training.config import EvaluationSet, FolderSetConfig, read_config, read_evaluation_sets
from glyphline.training.datasets.build import build_set
from glyphline.training.datasets.samples import Sample
from glyphline.training.errors import DataError
from glyphline.training.report.figures import Figures
from glyphline.training.report.measure import Line, Measured, measure
from glyphline.training.report.statistics import group_quantiles, rates_of

EVALUATION_SETS = Path(__file__).parent / "configs" / "evaluation.toml"
LENGTH_GROUPS = 6
"""Groups of lengths in a model card."""

DATA_ROOT = Path("data")
"""Where data are looked for if nothing else is said."""


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


def find_set(name: str, data_root: Path = DATA_ROOT) -> tuple[EvaluationSet, Path]:
    """Finds an evaluation set: strips in any format, a configuration's validation set, or a name in the shipped list.

    Args:
        name: Path, `CONFIG.toml:SET` or name. A folder of that name counts only if it has a `labels.tsv`, where the
            list has the name too.
        data_root: Folder below which the paths of named sets lie.

    Returns:
        The set and the folder that its paths are relative to.

    Raises:
        DataError: If there is neither.
    """
    config, colon, held_out = name.rpartition(":")
    if colon and config.endswith(".toml"):
        there = read_config(Path(config)).validation
        if held_out not in there:
            raise DataError(f"{config} has no validation set {held_out!r}; it has {', '.join(sorted(there))}")
        return there[held_out], data_root
    sets = read_evaluation_sets(EVALUATION_SETS)
    if (Path(name) / "labels.tsv").exists() or (name not in sets and Path(name).exists()):
        return FolderSetConfig(kind="folder", path=name), Path()
    if name not in sets:
        raise DataError(f"{name} is neither a folder or file of strips nor one of {', '.join(sorted(sets))}")
    return sets[name], data_root


def evaluate_command(
    models: Sequence[str],
    data_sets: Sequence[str],
    data_root: Path,
    options: DecodingOptions,
    limit: int | None = None,
    report: Path | None = None,
    record: bool = False,
    provider: Provider = "onnxruntime",
    precision: Precision = "fp32",
    command: str = "",
) -> list[Figures]:
    """Evaluates bundles on several sets.

    Args:
        models: Names of bundles, or their folders.
        data_sets: Paths or names; see `find_set`.
        data_root: Folder below which named sets lie.
        options: Decoding.
        limit: Greatest number of strips of each set.
        report: Folder for a report: `report.html` to look at and `report.json`.
        record: Write the figures into the bundles' manifests and cards, in place of those of the same sets.
        provider: What runs the networks.
        precision: Which variant of the networks.
        command: What the report gives as the command that makes it again, as it was typed; where there is none,
            `portable_command`.

    Returns:
        The figures of every model on every set, model by model.

    Raises:
        DataError: If a set is not found or not readable.
        BundleError: If a bundle does not load.
    """
    recognizers = [
        load_recognizer(model, threads=available_threads(), provider=provider, precision=precision) for model in models
    ]
    labels = label_models(recognizers)
    found = [find_set(name, data_root) for name in data_sets]
    measured: list[list[Measured]] = [[] for _ in recognizers]
    for name, (settings, root) in zip(data_sets, found, strict=True):
        samples = build_set(settings, root, common_alphabet(recognizers))[:limit]
        compare = settings.compare
        for row, recognizer, label in zip(measured, recognizers, labels, strict=True):
            row.append(
                measure(
                    recognizer, samples, name, options, compare, model=label, compare_confidences=report is not None
                )
            )
    if report is not None:
        # What draws pages is loaded only where one is wanted.
        from glyphline.training.report.write import describe_model, write_report  # noqa: PLC0415

        notes = [describe_model(label, each, options) for label, each in zip(labels, recognizers, strict=True)]
        write_report(report, notes, measured, command or portable_command(recognizers, data_sets, options, limit))
    if record:
        shown = [settings.shown for settings, _ in found]
        for recognizer, row in zip(recognizers, measured, strict=True):
            record_results(recognizer, row, options, limit, shown)
    return [each.figures for row in measured for each in row]


def common_alphabet(recognizers: Sequence[Recognizer]) -> Alphabet:
    """Returns what all of several models read: a set that skips unknown characters skips what one of them cannot."""
    first, *others = [recognizer.alphabet for recognizer in recognizers]
    common = [symbol for symbol in first.symbols if all(symbol in other.symbols for other in others)]
    return Alphabet(common) if common else first


def label_models(recognizers: Sequence[Recognizer]) -> list[str]:
    """Names models for a report: by name and version, and by folder too where that is not enough."""
    labels = [f"{each.bundle.manifest.name} {each.bundle.manifest.version}" for each in recognizers]
    return [
        label if labels.count(label) == 1 else f"{label} ({each.bundle.path})"
        for label, each in zip(labels, recognizers, strict=True)
    ]


def portable_name(data_set: str) -> str:
    """Returns a data set's name without what is true on this machine only: `DATA` stands for where its folder lies."""
    path = PurePath(data_set)
    return str(PurePath("DATA", path.name)) if path.is_absolute() or ".." in path.parts else data_set


def portable_model(recognizer: Recognizer) -> str:
    """Returns what `--model` is given elsewhere: the name of a model of Glyphline's own, else its place in `MODELS`."""
    bundle = recognizer.bundle
    if bundle.path.resolve().is_relative_to(pretrained_root().resolve()):
        return bundle.manifest.name
    return f"MODELS/{bundle.manifest.name}/{bundle.manifest.version}"


def portable_command(
    recognizers: Sequence[Recognizer], data_sets: Sequence[str], options: DecodingOptions, limit: int | None = None
) -> str:
    """Returns a command that measures the same on another machine.

    `MODELS` and `DATA` stand for the folders of models and of data there. That of a report is what was typed.

    Args:
        recognizers: The models.
        data_sets: The data sets, by path or name.
        options: Decoding.
        limit: Greatest number of strips of each set.
    """
    words = ["glyphline", "evaluate"]
    for name in data_sets:
        config, colon, held_out = name.rpartition(":")
        is_config = bool(colon) and config.endswith(".toml")
        words.append(f"{PurePath(config).name}:{held_out}" if is_config else portable_name(name))
    for each in recognizers:
        words += ["--model", portable_model(each)]
    if options.decoder:
        words += ["--decoder", options.decoder]
    if options.decoder == "beam" and options.beam_width != DecodingOptions().beam_width:
        words += ["--beam-width", str(options.beam_width)]
    if any(each.provider.startswith("OpenVINO") for each in recognizers):
        words += ["--provider", "openvino"]
    if any(each.precision == "int8" for each in recognizers):
        words += ["--precision", "int8"]
    if limit:
        words += ["--limit", str(limit)]
    if not all(Path(name).exists() for name in data_sets):  # below the data root are named sets and configurations'
        words += ["--data-root", "DATA"]
    return shlex.join(words)


def record_results(
    recognizer: Recognizer,
    results: Sequence[Measured],
    options: DecodingOptions,
    limit: int | None = None,
    shown: Sequence[bool] = (),
) -> None:
    """Writes results into a bundle's manifest and card, for people elsewhere; results of other sets stay.

    Args:
        recognizer: The bundle, opened.
        results: What was measured.
        options: Decoding.
        limit: Greatest number of strips of each set.
        shown: Of each result, whether pictures of its set may be given away: the card shows its errors.
    """
    bundle = recognizer.bundle
    command = portable_command([recognizer], [each.figures.data_set for each in results], options, limit)
    rows = {row.data_set: row for row in bundle.manifest.evaluation}
    for result in results:
        row = _evaluation(result, command)
        rows[row.data_set] = row
    mistakes = [each for each, free in zip(results, shown, strict=False) if free]
    errors = bundle.file(ERRORS_NAME)
    if any(not line.counts.exact for each in mistakes for line in each.lines):
        # What draws is loaded only where something is drawn.
        from glyphline.training.report.sheet import draw_errors  # noqa: PLC0415

        draw_errors(mistakes, errors)
    manifest = bundle.manifest.model_copy(update={"evaluation": list(rows.values())})
    (bundle.path / MODEL_CARD_NAME).write_text(write_card(manifest, errors=errors.exists()), encoding="utf-8")
    write_manifest(bundle.path, manifest)


def _evaluation(measured: Measured, command: str) -> Evaluation:
    """Rounds figures to what a manifest keeps."""
    figures = measured.figures
    return Evaluation(
        data_set=portable_name(figures.data_set),
        images=figures.images,
        exact=round(figures.exact, 5),
        exact_interval=(round(figures.exact_interval[0], 5), round(figures.exact_interval[1], 5)),
        cer=round(figures.cer, 6),
        cer_interval=(round(figures.cer_interval[0], 6), round(figures.cer_interval[1], 6)),
        by_length=_by_length(measured.lines),
        calibration_error=round(figures.calibration_error, 4),
        straight_through=round(figures.coverage, 4),
        command=command,
    )


def _by_length(lines: Sequence[Line]) -> list[LengthScore]:
    """Groups lines by the length of their text into a few groups of about equal size."""
    lengths = [len(line.truth) for line in lines]
    scores = []
    for span in group_quantiles(lengths, LENGTH_GROUPS):
        low, high = min(lengths[index] for index in span.members), max(lengths[index] for index in span.members)
        rates = rates_of([lines[index].counts for index in span.members])
        label = str(low) if low == high else f"{low}–{high}"
        scores.append(
            LengthScore(length=label, images=len(span.members), exact=round(rates.exact, 4), cer=round(rates.cer, 4))
        )
    return scores
