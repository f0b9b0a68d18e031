"""Every head with GRU and with LSTM on strips of one to eight digits: what each reads, inside and beyond that length.

All are trained by `glyphline.training.loop` on the same strips, as many for each, exported, and read by the recogniser
that serves them. The flatten head, which learns a place of the canvas at a time, is trained once more until its
validation stops improving.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from glyphline.models.error_rate import evaluate_pairs
from glyphline.models.image import GreyImage
from glyphline.models.recognizer import Recognizer, load_recognizer
from glyphline.training.config import CharactersConfig, StripSetConfig
from glyphline.training.datasets.build import build_set
from glyphline.training.datasets.samples import Sample
from glyphline.training.errors import TrainingError
from glyphline.training.export import export_run
from glyphline.training.loop import train
from glyphline.training.metrics_log import MetricsLog
from glyphline.training.studies.study import Study, StudyOptions, Table, Tell

HEADS = ("ctc", "attention", "pooled-state", "image-first", "flatten")
CELLS = ("gru", "lstm")
LENGTHS = ((1, 8), (9, 16), (17, 32))
CANVAS = 384
"""Width of the flatten head's canvas, in pixels: eight wide digits. What is wider, it refuses."""

EPOCHS, STRIPS_PER_EPOCH = 5, 20_480
PATIENT_EPOCHS = 40

CONFIGURATION = """\
name = "{name}"
seed = {seed}
alphabet = "0123456789"
max_output_length = 40

[image]
height = 32
max_width = {max_width}

[network]
heads = ["{head}"]
channels = [24, 48, 96, 128]
encoder_cell = "{cell}"
encoder_size = 96
encoder_layers = 1
decoder_cell = "{cell}"
canvas_width = {canvas}

[loop]
epochs = {epochs}
strips_per_epoch = {strips}
batch_columns = 6144
learning_rate = 1.5e-3
validate_every = 1
patience = {patience}
workers = 0

[[sources]]
kind = "composed"
longest = 8
marks = 0.0
touching = 0.15
wear = {{ slant = 0.15, rotation = 0.02, elastic = 0.015, lines = 0.0, grime = 0.2, loose = 0.6 }}
characters = {{ reader = "mnist", path = "mnist", folds = 10, fold = 7 }}

[validation.strips]
kind = "strips"
longest = 8
count = {count}
seed = 2
characters = {{ reader = "mnist", path = "mnist", folds = 10, fold = 7, held_out = true }}
"""


@dataclass(frozen=True, slots=True)
class LengthFigures:
    """What was read of strips of some lengths.

    Attributes:
        shortest: Least number of digits.
        longest: Greatest number of digits.
        strips: Number of strips.
        exact: Share read without any error; a strip that is refused as too wide is an error.
        cer: Character error rate; a refused strip counts as read as nothing.
        refused: Strips refused as too wide.
    """

    shortest: int
    longest: int
    strips: int
    exact: float
    cer: float
    refused: int


@dataclass(frozen=True, slots=True)
class HeadRecord:
    """One trained recogniser.

    Attributes:
        head: Its head.
        cell: Cell of encoder and decoder.
        patient: Whether it was trained until its validation stopped improving.
        parameters: Number of weights.
        strips_seen: Strips it was trained on.
        training_seconds: CPU time of its training.
        images_per_second: Strips of one to eight digits that the exported recogniser reads in a second of CPU time.
        lengths: What it reads.
    """

    head: str
    cell: str
    patient: bool
    parameters: int
    strips_seen: int
    training_seconds: float
    images_per_second: float
    lengths: tuple[LengthFigures, ...]

    @property
    def label(self) -> str:
        """Head and cell in words."""
        return f"{self.head}, {self.cell.upper()}" + (", until it stops improving" if self.patient else "")


@dataclass(frozen=True, slots=True)
class HeadFindings:
    """All recognisers of the study."""

    records: tuple[HeadRecord, ...]


def compose_sets(data_root: Path, count: int) -> list[list[Sample]]:
    """Composes test strips of unseen writers, one set for each range of lengths."""
    characters = CharactersConfig(reader="mnist", path="mnist", folds=10, fold=7, held_out=True)
    return [
        build_set(
            StripSetConfig(
                kind="strips", characters=characters, shortest=shortest, longest=longest, count=count, seed=3
            ),
            data_root,
        )
        for shortest, longest in LENGTHS
    ]


def read_lengths(recognizer: Recognizer, sets: list[list[Sample]]) -> tuple[LengthFigures, ...]:
    """Reads each set greedily."""
    figures = []
    for (shortest, longest), samples in zip(LENGTHS, sets, strict=True):
        outcomes = recognizer.recognize([GreyImage(sample.pixels) for sample in samples])
        texts = ["" if isinstance(outcome, Exception) else outcome.text for outcome in outcomes]
        rates = evaluate_pairs([(sample.text, text) for sample, text in zip(samples, texts, strict=True)])
        refused = sum(isinstance(outcome, Exception) for outcome in outcomes)
        figures.append(LengthFigures(shortest, longest, len(samples), rates.exact, rates.cer, refused))
    return tuple(figures)


def measure_speed(recognizer: Recognizer, samples: list[Sample]) -> float:
    """Returns strips a second of CPU time, the better of two turns."""
    images = [GreyImage(sample.pixels) for sample in samples]
    seconds = []
    for _ in range(2):
        began = time.process_time()
        recognizer.recognize(images)
        seconds.append(time.process_time() - began)
    return len(images) / min(seconds)


def train_head(
    head: str, cell: str, seed: int, data_root: Path, folder: Path, *, patient: bool = False, quick: bool = False
) -> HeadRecord:
    """Trains, exports and measures one recogniser.

    Args:
        head: Head.
        cell: Cell of encoder and decoder.
        seed: Seed of everything random.
        data_root: Folder that holds `mnist`.
        folder: Folder for run and bundle.
        patient: Train until validation stops improving instead of for the fixed number of strips.
        quick: Tiny sizes.
    """
    name = f"{head}-{cell}"
    flat = head == "flatten"
    text = CONFIGURATION.format(
        name=name,
        seed=seed + 1,
        head=head,
        cell=cell,
        canvas=CANVAS if flat else 0,
        max_width=CANVAS if flat else 2048,
        epochs=1 if quick else PATIENT_EPOCHS if patient else EPOCHS,
        strips=128 if quick else STRIPS_PER_EPOCH,
        patience=4 if patient else 0,
        count=20 if quick else 500,
    )
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / f"{name}.toml"
    config.write_text(text, encoding="utf-8")
    run = folder / "run"
    began = time.process_time()
    train(config, data_root, run)
    seconds = time.process_time() - began
    bundle = export_run(run, folder / "bundles", name, 1, head, data_root)
    recognizer = load_recognizer(bundle)
    sets = compose_sets(data_root, 20 if quick else 1000)
    summary = recognizer.bundle.manifest.training
    parameters = summary["parameters"]
    assert isinstance(parameters, int)
    return HeadRecord(
        head,
        cell,
        patient,
        parameters,
        int(MetricsLog(run / "metrics.csv").rows()[-1]["strips"]),
        seconds,
        measure_speed(recognizer, sets[0]),
        read_lengths(recognizer, sets),
    )


def measure(options: StudyOptions, tell: Tell) -> HeadFindings:
    """Trains and measures every head with every cell.

    Raises:
        TrainingError: If no folder of data is given.
    """
    if options.data_root is None:
        raise TrainingError("this study reads MNIST: give the folder that holds mnist/ (--data-root)")
    trials = [(head, cell, False) for head in HEADS for cell in CELLS] + [("flatten", "gru", True)]
    seeds = options.seed_list(1, quick=1)
    records = []
    with tempfile.TemporaryDirectory(prefix="glyphline-heads-") as folder:
        for seed in seeds:
            for head, cell, patient in trials:
                place = Path(folder, f"{seed}-{head}-{cell}-{patient}")
                records.append(
                    train_head(head, cell, seed, options.data_root, place, patient=patient, quick=options.quick)
                )
                tell(len(records), len(trials) * len(seeds))
    return HeadFindings(tuple(records))


def tabulate(findings: HeadFindings) -> tuple[Table, ...]:
    """One row a recogniser: cost, then exact share and error rate by length."""
    lengths = [(each.shortest, each.longest) for each in findings.records[0].lengths]
    headings = ["Head and cell", "Weights", "Strips seen", "CPU min", "Images / CPU s"]
    headings += [f"{kind} {shortest}–{longest}" for shortest, longest in lengths for kind in ("Exact", "CER")]
    rows = []
    for each in findings.records:
        row = [
            each.label,
            f"{each.parameters:,}",
            f"{each.strips_seen:,}",
            f"{each.training_seconds / 60:.1f}",
            f"{each.images_per_second:,.0f}",
        ]
        for part in each.lengths:
            row += [f"{part.exact:.1%}", f"{part.cer:.1%}" + (" (refused)" if part.refused == part.strips else "")]
        rows.append(tuple(row))
    return (Table("Trained on strips of 1–8 MNIST digits, read on unseen writers", tuple(headings), tuple(rows)),)


def draw(findings: HeadFindings) -> Figure:
    """Draws the exact share by length, one group of bars a length."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.subplots()
    records = findings.records
    width = 0.8 / len(records)
    for index, each in enumerate(records):
        places = [place + (index - len(records) / 2 + 0.5) * width for place in range(len(each.lengths))]
        axes.bar(places, [100 * part.exact for part in each.lengths], width, label=each.label)
    names = [f"{part.shortest}–{part.longest} digits" for part in records[0].lengths]
    axes.set_xticks(range(len(names)), names)
    axes.set(title="Trained on 1–8 digits", ylabel="strips read exactly, %")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=7, ncols=2)
    return figure


STUDY = Study(
    "heads",
    "What each head reads, within the lengths it was trained on and beyond",
    measure,
    tabulate,
    draw,
    needs_data=True,
)
