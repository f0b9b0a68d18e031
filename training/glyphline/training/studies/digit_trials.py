"""Trials on strips of one to eight digits: a recogniser is trained, exported, and reads inside and beyond that length.

What the studies of heads and of lengths share. A trial keeps its run, its bundle and what it found in a folder, so that
a study that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from matplotlib.axes import Axes
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
from glyphline.training.studies.study import StudyOptions, Table, Tell

LENGTHS = ((1, 8), (9, 16), (17, 32))
CANVAS = 384
"""Width of the flatten head's canvas, in pixels: eight wide digits. What is wider, it refuses."""

EPOCHS, STRIPS_PER_EPOCH = 5, 20_480

LABEL_LETTERS = 34
"""Letters after which a recogniser's name is broken in the picture."""

CONFIGURATION = """\
name = "{name}"
seed = {seed}
alphabet = "0123456789"
max_output_length = 40

[image]
height = 32
max_width = {max_width}

[network]
heads = {heads}
channels = [24, 48, 96, 128]
encoder_cell = "{cell}"
encoder_size = 96
encoder_layers = {encoder_layers}
decoder_cell = "{cell}"
canvas_width = {canvas}
{network}
[loop]
epochs = {epochs}
strips_per_epoch = {strips}
batch_columns = 6144
learning_rate = {learning_rate}
validate_every = 1
patience = {patience}
workers = 0
{loop}
[[sources]]
kind = "composed"
longest = 8
marks = 0.0
touching = 0.15
{source}
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
class Trial:
    """One recogniser to train.

    Attributes:
        label: What it is, for people.
        head: The head that reads.
        cell: Cell of encoder and decoder.
        beside: A head trained with it on one encoder, if any.
        encoder_layers: Recurrent layers of the encoder.
        carries_state: Whether an attention head carries its state on.
        attention_reach: Frames from the last place within which an attention head looks next; 0 is anywhere.
        network: Further lines for the network's configuration.
        loop: Further lines for the loop.
        source: Further lines for the source of its strips.
        epochs: Epochs of training; as many at most where it is patient.
        patience: Epochs without a better validation after which it stops; 0 trains for all epochs.
        learning_rate: Peak learning rate.
        after: Another trial whose weights it starts from.
    """

    label: str
    head: str
    cell: str = "gru"
    beside: str = ""
    encoder_layers: int = 1
    carries_state: bool = True
    attention_reach: int = 0
    network: str = ""
    loop: str = ""
    source: str = ""
    epochs: int = EPOCHS
    patience: int = 0
    learning_rate: str = "1.5e-3"
    after: Trial | None = None

    @property
    def folder(self) -> str:
        """The label as the name of a folder."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.label.lower())

    def _attention(self) -> str:
        return f"carries_state = {json.dumps(self.carries_state)}\nattention_reach = {self.attention_reach}\n"

    def configuration(self, seed: int, *, quick: bool = False) -> str:
        """Returns the configuration file of its training."""
        flat = self.head == "flatten"
        heads = [head for head in (self.beside, self.head) if head]
        return CONFIGURATION.format(
            name=self.folder,
            seed=seed + 1,
            heads=json.dumps(heads),
            cell=self.cell,
            encoder_layers=self.encoder_layers,
            canvas=CANVAS if flat else 0,
            max_width=CANVAS if flat else 2048,
            network=self.network + (self._attention() if self.head == "attention" else ""),
            loop=self.loop,
            source=self.source,
            epochs=1 if quick else self.epochs,
            strips=128 if quick else STRIPS_PER_EPOCH,
            patience=self.patience,
            learning_rate=self.learning_rate,
            count=20 if quick else 500,
        )


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
class TrialRecord:
    """One trained recogniser.

    Attributes:
        label: What it is.
        seed: Its seed.
        parameters: Number of weights.
        strips_seen: Strips it was trained on.
        images_per_second: Strips of one to eight digits that the exported recogniser reads in a second of CPU time.
        lengths: What it reads.
    """

    label: str
    seed: int
    parameters: int
    strips_seen: int
    images_per_second: float
    lengths: tuple[LengthFigures, ...]


@dataclass(frozen=True, slots=True)
class TrialFindings:
    """All recognisers of a study."""

    records: tuple[TrialRecord, ...]


Read = Callable[[Recognizer, list[Sample]], list[str | None]]
"""Reads strips; None for one that is refused."""


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


def read_greedily(recognizer: Recognizer, samples: list[Sample]) -> list[str | None]:
    """Reads strips as they are served by default."""
    outcomes = recognizer.recognize([GreyImage(sample.pixels) for sample in samples])
    return [None if isinstance(outcome, Exception) else outcome.text for outcome in outcomes]


def measure_lengths(texts: Iterable[list[str | None]], sets: list[list[Sample]]) -> tuple[LengthFigures, ...]:
    """Compares what was read of each set with what is written there."""
    figures = []
    for (shortest, longest), samples, read in zip(LENGTHS, sets, texts, strict=True):
        rates = evaluate_pairs([(sample.text, text or "") for sample, text in zip(samples, read, strict=True)])
        figures.append(LengthFigures(shortest, longest, len(samples), rates.exact, rates.cer, read.count(None)))
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


def train_trial(trial: Trial, seed: int, data_root: Path, folder: Path, *, head: str = "", quick: bool = False) -> Path:
    """Trains and exports a recogniser, or goes on where that was stopped. So is before it the one that it starts from.

    Args:
        trial: The recogniser.
        seed: Seed of everything random.
        data_root: Folder that holds `mnist`.
        folder: Folder for its run and its bundles.
        head: Head to export; the one that reads where none is given.
        quick: Tiny sizes.

    Returns:
        Folder of the head's bundle.

    Raises:
        TrainingError: If the folder holds a trial of other settings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "trial.toml"
    text = trial.configuration(seed, quick=quick)
    if config.exists() and config.read_text(encoding="utf-8") != text:
        raise TrainingError(f"{folder} holds a trial of other settings: remove it, or choose another --output")
    config.write_text(text, encoding="utf-8")
    head = head or trial.head
    bundle = folder / "bundles" / head / "1"
    if not bundle.exists():
        before: Path | None = None
        if trial.after is not None:
            before = folder.with_name(f"{trial.after.folder}-{seed}")
            train_trial(trial.after, seed, data_root, before, quick=quick)
        train(config, data_root, folder / "run", start_from=before and before / "run")
        export_run(folder / "run", folder / "bundles", head, 1, head, data_root)
    return bundle


def strips_seen(trial: Trial, seed: int, folder: Path) -> int:
    """Counts the strips that a trial was trained on, with those of the trials that it starts from."""
    before = trial.after
    earlier = 0 if before is None else strips_seen(before, seed, folder.with_name(f"{before.folder}-{seed}"))
    return earlier + int(MetricsLog(folder / "run" / "metrics.csv").rows()[-1]["strips"])


def run_trial(trial: Trial, seed: int, data_root: Path, folder: Path, *, quick: bool = False) -> TrialRecord:
    """Trains, exports and measures one recogniser; see `train_trial`."""
    bundle = train_trial(trial, seed, data_root, folder, quick=quick)
    kept = folder / "record.json"
    if kept.exists():
        values = json.loads(kept.read_text(encoding="utf-8"))
        lengths = tuple(LengthFigures(**part) for part in values.pop("lengths"))
        return TrialRecord(**values, lengths=lengths)
    recognizer = load_recognizer(bundle)
    sets = compose_sets(data_root, 20 if quick else 1000)
    parameters = recognizer.bundle.manifest.training["parameters"]
    assert isinstance(parameters, int)
    record = TrialRecord(
        trial.label,
        seed,
        parameters,
        strips_seen(trial, seed, folder),
        measure_speed(recognizer, sets[0]),
        measure_lengths((read_greedily(recognizer, samples) for samples in sets), sets),
    )
    kept.write_text(json.dumps(asdict(record)), encoding="utf-8")
    return record


def run_trials(trials: tuple[Trial, ...], options: StudyOptions, tell: Tell) -> TrialFindings:
    """Runs all trials with all seeds.

    Raises:
        TrainingError: If no folder of data is given, or none to keep the trials in.
    """
    if options.data_root is None or options.folder is None:
        raise TrainingError("this study reads MNIST: give the folder that holds mnist/ (--data-root)")
    places = [(trial, seed) for seed in options.seed_list(1, quick=1) for trial in trials]
    records = []
    for trial, seed in places:
        folder = options.folder / f"{trial.folder}-{seed}"
        records.append(run_trial(trial, seed, options.data_root, folder, quick=options.quick))
        tell(len(records), len(places))
    return TrialFindings(tuple(records))


def tabulate_trials(findings: TrialFindings, title: str, first: str) -> Table:
    """One row a recogniser: cost, then exact share and error rate by length."""
    lengths = [(each.shortest, each.longest) for each in findings.records[0].lengths]
    headings = [first, "Weights", "Strips seen", "Images / CPU s"]
    headings += [f"{kind} {shortest}–{longest}" for shortest, longest in lengths for kind in ("Exact", "CER")]
    several = len({each.seed for each in findings.records}) > 1
    rows = []
    for each in findings.records:
        row = [
            each.label + (f" (seed {each.seed})" if several else ""),
            f"{each.parameters:,}",
            f"{each.strips_seen:,}",
            f"{each.images_per_second:,.0f}",
        ]
        for part in each.lengths:
            row += [f"{part.exact:.1%}", f"{part.cer:.1%}" + (" (refused)" if part.refused == part.strips else "")]
        rows.append(tuple(row))
    return Table(title, tuple(headings), tuple(rows))


def draw_trials(findings: TrialFindings) -> Figure:
    """Draws the exact share by length, one group of bars a recogniser."""
    records = findings.records
    figure = Figure(figsize=(9, 0.55 * len(records) + 1.5), layout="constrained")
    axes: Axes = figure.subplots()
    thick = 0.8 / len(LENGTHS)
    for index, (shortest, longest) in enumerate(LENGTHS):
        places = [place + (index - len(LENGTHS) / 2 + 0.5) * thick for place in range(len(records))]
        shares = [100 * each.lengths[index].exact for each in records]
        bars = axes.barh(places, shares, thick, label=f"{shortest}–{longest} digits")
        axes.bar_label(bars, fmt="%.0f", fontsize=7, padding=2)
    axes.set_yticks(range(len(records)), [textwrap.fill(each.label, LABEL_LETTERS) for each in records])
    axes.invert_yaxis()
    axes.set(title="Trained on 1–8 digits", xlabel="strips read exactly, %", xlim=(0, 105))
    axes.grid(axis="x", alpha=0.3)
    figure.legend(fontsize=8, ncols=len(LENGTHS), loc="outside lower center")
    return figure
