"""What the gates of a trained LSTM do along a sequence: how it latches a sign and keeps it through noise."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor

from glyphline.training.studies.cells import LstmStep
from glyphline.training.studies.forget_gate import half_life
from glyphline.training.studies.memory import SequenceSource, SignNetworks, Training, test_accuracy, train_networks
from glyphline.training.studies.study import Study, StudyOptions, Table, Tell

LENGTH = 40

Rows = tuple[tuple[float, ...], ...]
"""One row a step, one value a unit."""


@dataclass(frozen=True, slots=True)
class SequenceTrace:
    """What happened along one sequence, units in the order of `TraceFindings`.

    Attributes:
        sequence: The input at each step.
        probability: What the network thinks after each step of the first input's having been +1.
        input_gate: How open each unit is to what it hears.
        forget_gate: How much each unit keeps.
        output_gate: How much each unit shows.
        memory: Cell states.
    """

    sequence: tuple[float, ...]
    probability: tuple[float, ...]
    input_gate: Rows
    forget_gate: Rows
    output_gate: Rows
    memory: Rows


@dataclass(frozen=True, slots=True)
class TraceFindings:
    """Traces of a trained LSTM, its units sorted by how differently they end after +1 and after -1.

    Attributes:
        accuracy: Share of new sequences whose sign the network gives.
        untrained: Trace of the network before training, first input +1.
        positive: Trace of the trained network, first input +1.
        negative: The same sequence with -1 at first.
    """

    accuracy: float
    untrained: SequenceTrace
    positive: SequenceTrace
    negative: SequenceTrace


@torch.no_grad()
def trace_sequence(networks: SignNetworks, sequence: Tensor, order: Tensor) -> SequenceTrace:
    """Traces the first network along a sequence `(time,)`, units in the order given."""

    def rows(values: list[Tensor]) -> Rows:
        stacked = torch.stack([value[0, 0] for value in values])  # (time, size)
        return tuple(tuple(round(value, 4) for value in row) for row in stacked[:, order].tolist())

    steps: list[LstmStep] = networks.cells.trace(sequence.view(1, 1, -1, 1))
    probabilities = [float(networks.readout(step.hidden).sigmoid()) for step in steps]
    return SequenceTrace(
        tuple(round(value, 4) for value in sequence.tolist()),
        tuple(round(value, 4) for value in probabilities),
        rows([step.input_gate for step in steps]),
        rows([step.forget_gate for step in steps]),
        rows([step.output_gate for step in steps]),
        rows([step.memory for step in steps]),
    )


def measure(options: StudyOptions, tell: Tell) -> TraceFindings:
    """Trains an LSTM of bias 1 on the memory task and traces it along a sequence and its twin."""
    training = Training(epochs=1, sequences=100, size=8) if options.quick else Training()
    length = 5 if options.quick else LENGTH
    done = 0

    def tell_update() -> None:
        nonlocal done
        done += 1
        tell(done, training.updates)

    raw = SignNetworks("lstm", training.size, [0], [1.0])
    networks = train_networks("lstm", [1.0], [0], length, training, tell_update)
    accuracy = float(test_accuracy(networks, [0], length, training.noise))
    sequence = SequenceSource([0], length, training.noise, stream=2).draw(1)[0].flatten()
    positive, negative = sequence.clone(), sequence.clone()
    positive[0], negative[0] = 1.0, -1.0
    with torch.no_grad():
        last = [networks.cells.trace(each.view(1, 1, -1, 1))[-1].memory[0, 0] for each in (positive, negative)]
    order = (last[0] - last[1]).argsort(descending=True)
    return TraceFindings(
        accuracy,
        trace_sequence(raw, positive, order),
        trace_sequence(networks, positive, order),
        trace_sequence(networks, negative, order),
    )


def _mean(values: tuple[float, ...]) -> float:
    return sum(values) / len(values)


def _keepers(findings: TraceFindings, share: int = 4) -> list[int]:
    """Returns the units, one of `share`, whose memory at the end differs most between the two signs."""
    last = zip(findings.positive.memory[-1], findings.negative.memory[-1], strict=True)
    apart = [abs(one - other) for one, other in last]
    return sorted(range(len(apart)), key=lambda unit: -apart[unit])[: max(1, len(apart) // share)]


def tabulate(findings: TraceFindings) -> tuple[Table, ...]:
    """Gates before and after training, of all units and of those that keep the sign."""
    keepers = _keepers(findings)
    rows = []
    for name, trace in (("before training", findings.untrained), ("after training", findings.positive)):
        for which, units in (("all units", list(range(len(trace.memory[0])))), ("the keepers", keepers)):
            first_in = _mean(tuple(trace.input_gate[0][unit] for unit in units))
            later_in = _mean(tuple(row[unit] for row in trace.input_gate[1:] for unit in units))
            forget = _mean(tuple(row[unit] for row in trace.forget_gate[1:] for unit in units))
            rows.append(
                (f"{name}, {which}", f"{first_in:.2f}", f"{later_in:.2f}", f"{forget:.3f}", f"{half_life(forget):.1f}")
            )
    title = (
        f"Gates of an LSTM along {len(findings.positive.sequence)} steps of the memory task; "
        f"trained, it gives {findings.accuracy:.1%} of the signs; keepers are the quarter whose memory tells them apart"
    )
    headings = ("Network", "Input gate, first step", "Input gate, later", "Forget gate, later", "Half-life")
    return (Table(title, headings, tuple(rows)),)


_PANELS = (("input gate", "input_gate"), ("forget gate", "forget_gate"), ("output gate", "output_gate"))


def _draw_sequence(axes: Axes, trace: SequenceTrace, until: int) -> None:
    steps = range(1, until + 1)
    axes.bar(steps, trace.sequence[:until], color=["tab:red", *["lightgrey"] * (until - 1)], width=0.8)
    axes.plot(steps, [2 * value - 1 for value in trace.probability[:until]], color="tab:blue", linewidth=1.5)
    axes.set(xlim=(0.5, len(trace.sequence) + 0.5), ylim=(-3, 3), yticks=[-1, 1])


def _draw(findings: TraceFindings, until: int | None = None) -> Figure:
    """Draws all panels up to a step."""
    columns = (
        ("untrained, first +1", findings.untrained),
        ("trained, first +1", findings.positive),
        ("trained, first -1", findings.negative),
    )
    figure = Figure(figsize=(10, 7.5), layout="constrained")
    grid = figure.subplots(5, 3, sharex=True, squeeze=False, height_ratios=[0.7, 1, 1, 1, 1])
    steps = len(findings.positive.sequence)
    seen = steps if until is None else until
    for column, (title, trace) in enumerate(columns):
        _draw_sequence(grid[0, column], trace, seen)
        grid[0, column].set_title(title, fontsize=10)
        for row, (name, field) in enumerate((*_PANELS, ("cell state", "memory")), start=1):
            values = np.array(getattr(trace, field)).T.copy()  # (units, time)
            values[:, seen:] = np.nan
            signed = field == "memory"
            image = grid[row, column].imshow(
                values,
                aspect="auto",
                interpolation="nearest",
                cmap="RdBu_r" if signed else "viridis",
                vmin=-2 if signed else 0,
                vmax=2 if signed else 1,
                extent=(0.5, steps + 0.5, len(values) + 0.5, 0.5),
            )
            if column == 0:
                grid[row, 0].set_ylabel(f"{name}\nunit", fontsize=9)
            if column == len(columns) - 1:
                figure.colorbar(image, ax=grid[row, :].tolist(), pad=0.01)
        grid[-1, column].set_xlabel("step")
    grid[0, 0].set_ylabel("input (bars)\nbelief (line)", fontsize=9)
    return figure


def draw(findings: TraceFindings) -> Figure:
    """Draws gates and cell states as heat maps: before training, and after it for both signs."""
    return _draw(findings)


def animate(findings: TraceFindings, path: Path) -> None:
    """Draws the same step by step, as a GIF that runs for ever."""
    frames = []
    for until in range(1, len(findings.positive.sequence) + 1):
        buffer = io.BytesIO()
        _draw(findings, until).savefig(buffer, format="png", dpi=60)
        frames.append(Image.open(buffer).convert("P", palette=Image.Palette.ADAPTIVE, colors=64))
    durations = [150] * (len(frames) - 1) + [2000]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=durations, loop=0, optimize=True)


STUDY = Study("gate-trace", "What gates of a trained LSTM do along a sequence", measure, tabulate, draw, animate)
