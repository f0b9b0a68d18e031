"""What a recogniser of words gains from each part of its recipe, at one budget of CPU time.

All are trained on the same sources, rendered and real, for the same seconds of one core, and read real lines that none
of them has seen. A network that costs less a strip sees more strips: what counts for who trains on a CPU is the time.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

from glyphline.models.error_rate import evaluate_pairs
from glyphline.models.image import GreyImage
from glyphline.models.recognizer import Recognizer, load_recognizer
from glyphline.training.config import TrainingConfig, read_config
from glyphline.training.datasets.batches import draw_pool, split_pool
from glyphline.training.datasets.build import build_set, build_source
from glyphline.training.datasets.samples import Sample
from glyphline.training.errors import TrainingError
from glyphline.training.export import export_run
from glyphline.training.loop import train
from glyphline.training.loop.losses import head_losses, total_loss
from glyphline.training.loop.stream import to_tensors
from glyphline.training.metrics_log import MetricsLog
from glyphline.training.networks.recogniser import RecogniserNetwork
from glyphline.training.studies.study import Study, StudyOptions, Table, Tell

CPU_SECONDS = 600
"""Time that each is trained for, on one core."""

EPOCHS = 5
CALIBRATION_STRIPS = 512
"""Strips on which the cost of one is measured."""

CONFIGURATION = """\
name = "{name}"
seed = {seed}
alphabet = " !\\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\\\]^_`abcdefghijklmnopqrstuvwxyz{{|}}~"
max_output_length = 128

[image]
height = {height}

[network]
{network}
encoder_size = 128

[loop]
epochs = {epochs}
strips_per_epoch = {strips}
batch_columns = 12288
learning_rate = 1.5e-3
warm_up = 0.05
decay = 0.6
workers = 0
{loop}
[[sources]]
kind = "rendered"
weight = 0.4
style = "scene"
fonts = ["fonts/scene", "fonts/text"]
longest = 14
texts = {{ lists = ["words/american.txt"], words = 0.7, lines = 0.05 }}

[[sources]]
kind = "rendered"
weight = 0.4
style = "print"
fonts = ["fonts/text", "fonts/typewriter", "fonts/mono"]
longest = 24
texts = {{ lists = ["words/american.txt"] }}
{real}
"""

REAL = """
[[sources]]
kind = "real"
weight = 0.2
path = "{path}"
folds = {folds}
group = "^(.*)_[0-9]+"
unknown_characters = "skip"

[validation.{name}]
kind = "folder"
path = "{path}"
folds = {folds}
held_out = true
group = "^(.*)_[0-9]+"
unknown_characters = "skip"
"""

REAL_SETS = (("print", "fondue_en_print_lines", 6), ("typescript", "tapus_typed_lines", 8))
"""Name, folder and folds of the real lines."""

BASE = ("channels = [32, 64, 96, 160]", "residual_blocks = 1", "weigh_rows = true")


@dataclass(frozen=True, slots=True)
class WordTrial:
    """One recipe.

    Attributes:
        label: What it is, for people.
        network: Lines of the network's configuration.
        height: Height of strips, in pixels.
        heads: Heads trained together.
        loop: Lines of the loop's configuration.
    """

    label: str
    network: tuple[str, ...] = (*BASE, "ctc_shortcut = true")
    height: int = 32
    heads: tuple[str, ...] = ("ctc",)
    loop: str = ""

    @property
    def folder(self) -> str:
        """The label as the name of a folder."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.label.lower())

    def configuration(self, seed: int, strips: int, epochs: int = EPOCHS) -> str:
        """Returns the configuration file of its training on so many strips an epoch."""
        return CONFIGURATION.format(
            name=self.folder,
            seed=seed + 1,
            height=self.height,
            network="\n".join((f"heads = {json.dumps(self.heads)}", *self.network)),
            loop=self.loop,
            epochs=epochs,
            strips=strips,
            real="".join(REAL.format(name=name, path=path, folds=folds) for name, path, folds in REAL_SETS),
        )


TRIALS = (
    WordTrial("CTC with shortcut, 32 pixels"),
    WordTrial("without the shortcut", BASE),
    WordTrial(
        "CTC and attention together",
        (*BASE, "ctc_shortcut = true", "encoder_layers = 2", "carries_state = true", "attention_reach = 0"),
        heads=("ctc", "attention"),
    ),
    WordTrial("column maximum alone", ("channels = [32, 64, 96, 160]", "residual_blocks = 1", "ctc_shortcut = true")),
    WordTrial("flattened columns", (*BASE, "column_maximum = false", "ctc_shortcut = true")),
    WordTrial("without residual blocks", ("channels = [32, 64, 96, 160]", "weigh_rows = true", "ctc_shortcut = true")),
    WordTrial("48 pixels", height=48),
    WordTrial("MobileNet", ('encoder = "mobilenet_v3_small"', "ctc_shortcut = true"), loop='precision = "fp32"\n'),
)


@dataclass(frozen=True, slots=True)
class SetFigures:
    """What was read of one set.

    Attributes:
        name: The set.
        lines: Number of lines.
        exact: Share read without any error.
        cer: Character error rate.
    """

    name: str
    lines: int
    exact: float
    cer: float


@dataclass(frozen=True, slots=True)
class WordRecord:
    """One trained recipe.

    Attributes:
        label: What it is.
        seed: Its seed.
        parameters: Number of weights of what is exported.
        strips_seen: Strips it was trained on.
        cpu_seconds: CPU time of its training.
        lines_per_second: Lines that the exported recogniser reads in a second of CPU time.
        sets: What it reads.
    """

    label: str
    seed: int
    parameters: int
    strips_seen: int
    cpu_seconds: float
    lines_per_second: float
    sets: tuple[SetFigures, ...]


@dataclass(frozen=True, slots=True)
class WordFindings:
    """All recipes."""

    records: tuple[WordRecord, ...]


def seconds_a_strip(config: TrainingConfig, data_root: Path, strips: int = CALIBRATION_STRIPS) -> float:
    """Measures the CPU time that drawing a strip and training on it takes, once everything is warm."""
    alphabet = config.make_alphabet()
    sources = [build_source(source, data_root, alphabet, None, config.image) for source in config.sources]
    weights = np.array([source.weight for source in config.sources])
    weights /= weights.sum()
    network = RecogniserNetwork(config.network, alphabet.size, config.image.height)
    network.to(memory_format=torch.channels_last)
    optimiser = torch.optim.AdamW(network.parameters(), 1e-4)
    bf16 = config.loop.precision != "fp32"
    seconds = 0.0
    for turn in range(2):
        began = time.process_time()
        pool = draw_pool(sources, weights, alphabet, config.image, (config.seed, turn), strips)
        trained = 0
        for batch in split_pool(pool, config.loop.batch_columns, np.random.default_rng(turn)):
            with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                loss = total_loss(head_losses(network, to_tensors(batch), config.loop), config.loop)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            trained += len(batch.widths)
        seconds = (time.process_time() - began) / trained
    return seconds


def measure_sets(recognizer: Recognizer, sets: dict[str, list[Sample]]) -> tuple[tuple[SetFigures, ...], float]:
    """Reads every set; returns its figures, and lines a second of CPU time over all."""
    figures = []
    lines, began = 0, time.process_time()
    for name, samples in sets.items():
        outcomes = recognizer.recognize([GreyImage(sample.pixels) for sample in samples])
        texts = ["" if isinstance(outcome, Exception) else outcome.text for outcome in outcomes]
        rates = evaluate_pairs([(sample.text, text) for sample, text in zip(samples, texts, strict=True)])
        figures.append(SetFigures(name, len(samples), rates.exact, rates.cer))
        lines += len(samples)
    return tuple(figures), lines / (time.process_time() - began)


def run_trial(trial: WordTrial, seed: int, data_root: Path, folder: Path, *, quick: bool = False) -> WordRecord:
    """Trains, exports and measures one recipe, or goes on where that was stopped.

    Raises:
        TrainingError: If the folder holds a trial of other settings.
    """
    kept, config, budget = folder / "record.json", folder / "trial.toml", folder / "budget.json"
    folder.mkdir(parents=True, exist_ok=True)
    epochs = 1 if quick else EPOCHS
    if not budget.exists():
        config.write_text(trial.configuration(seed, 64, epochs), encoding="utf-8")
        strip = seconds_a_strip(read_config(config), data_root, 16 if quick else CALIBRATION_STRIPS)
        strips = 64 if quick else max(1024, round(CPU_SECONDS / strip / EPOCHS / 1024) * 1024)
        config.write_text(trial.configuration(seed, strips, epochs), encoding="utf-8")
        budget.write_text(json.dumps({"seconds_a_strip": strip, "strips_per_epoch": strips}), encoding="utf-8")
    strips = int(json.loads(budget.read_text(encoding="utf-8"))["strips_per_epoch"])
    if config.read_text(encoding="utf-8") != trial.configuration(seed, strips, epochs):
        raise TrainingError(f"{folder} holds a trial of other settings: remove it, or choose another --output")
    if kept.exists():
        values = json.loads(kept.read_text(encoding="utf-8"))
        return WordRecord(**{**values, "sets": tuple(SetFigures(**part) for part in values["sets"])})
    began = time.process_time()
    train(config, data_root, folder / "run")
    spent = time.process_time() - began
    bundle = folder / "bundles" / "words" / "1"
    if not bundle.exists():
        export_run(folder / "run", folder / "bundles", "words", 1, "ctc", data_root, "last")
    recognizer = load_recognizer(bundle)
    validation = read_config(config).validation
    sets = {name: build_set(settings, data_root)[: 4 if quick else None] for name, settings in validation.items()}
    figures, rate = measure_sets(recognizer, sets)
    parameters = recognizer.bundle.manifest.training["parameters"]
    assert isinstance(parameters, int)
    seen = int(MetricsLog(folder / "run" / "metrics.csv").rows()[-1]["strips"])
    record = WordRecord(trial.label, seed, parameters, seen, round(spent, 1), rate, figures)
    kept.write_text(json.dumps(asdict(record)), encoding="utf-8")
    return record


def measure(options: StudyOptions, tell: Tell) -> WordFindings:
    """Trains and measures every recipe.

    Raises:
        TrainingError: If no folder of data is given, or none to keep the trials in.
    """
    if options.data_root is None or options.folder is None:
        raise TrainingError("this study reads fonts, word lists and real lines: give their folder (--data-root)")
    places = [(trial, seed) for seed in options.seed_list(1, quick=1) for trial in TRIALS]
    records: list[WordRecord] = []
    for trial, seed in places:
        folder = options.folder / f"words--{trial.folder}-{seed}"
        records.append(run_trial(trial, seed, options.data_root, folder, quick=options.quick))
        tell(len(records), len(places))
    return WordFindings(tuple(records))


def tabulate(findings: WordFindings) -> tuple[Table, ...]:
    """One row a recipe."""
    names = [each.name for each in findings.records[0].sets]
    several = len({each.seed for each in findings.records}) > 1
    headings = ["Recipe", "Weights", "Strips seen", "CPU s", "Lines / CPU s"]
    headings += [f"{kind} {name}" for name in names for kind in ("Exact", "CER")]
    rows = []
    for each in findings.records:
        row = [
            each.label + (f" (seed {each.seed})" if several else ""),
            f"{each.parameters:,}",
            f"{each.strips_seen:,}",
            f"{each.cpu_seconds:,.0f}",
            f"{each.lines_per_second:,.0f}",
        ]
        for part in each.sets:
            row += [f"{part.exact:.1%}", f"{part.cer:.1%}"]
        rows.append(tuple(row))
    return (Table("Trained for the same CPU time, read on real lines held out", tuple(headings), tuple(rows)),)


def draw(findings: WordFindings) -> Figure:
    """Draws the error rates, one group of bars a recipe."""
    records = findings.records
    figure = Figure(figsize=(9, 0.45 * len(records) + 1.5), layout="constrained")
    axes = figure.subplots()
    names = [each.name for each in records[0].sets]
    thick = 0.8 / len(names)
    for index, name in enumerate(names):
        places = [place + (index - len(names) / 2 + 0.5) * thick for place in range(len(records))]
        bars = axes.barh(places, [100 * each.sets[index].cer for each in records], thick, label=name)
        axes.bar_label(bars, fmt="%.1f", fontsize=7, padding=2)
    axes.set_yticks(range(len(records)), [each.label for each in records])
    axes.invert_yaxis()
    axes.set(title="At one budget of CPU time", xlabel="character error rate on real lines, %")
    axes.grid(axis="x", alpha=0.3)
    figure.legend(fontsize=8, ncols=len(names), loc="outside lower center")
    return figure


STUDY = Study(
    "words",
    "What each part of the recipe for words is worth, at one budget of CPU time",
    measure,
    tabulate,
    draw,
    needs_data=True,
)
