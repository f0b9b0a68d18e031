"""How long an untrained LSTM remembers, by its forget gate's initial bias."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from matplotlib.figure import Figure

from glyphline.training.studies.cells import StackedCells
from glyphline.training.studies.study import Study, StudyOptions, Table, Tell

SIZE, INPUTS, STEPS, SEQUENCES = 32, 16, 40, 64
BIASES: tuple[float | None, ...] = (None, 0.0, 0.5, 1.0, 2.0, 3.0)


@dataclass(frozen=True, slots=True)
class GateRecord:
    """What was measured for one bias.

    Attributes:
        bias: Value in each of the two bias vectors; None: as PyTorch draws them.
        gate: Mean forget gate.
        gate_low: Least mean of any seed.
        gate_high: Greatest mean of any seed.
        half_life: Steps after which a gate held at the mean leaves half of a memory.
        path_half_life: The same by the geometric mean of the gates, which is what a memory in fact is multiplied by.
    """

    bias: float | None
    gate: float
    gate_low: float
    gate_high: float
    half_life: float
    path_half_life: float

    @property
    def label(self) -> str:
        """The bias in words."""
        return "default" if self.bias is None else f"{self.bias:g}"


@dataclass(frozen=True, slots=True)
class GateFindings:
    """What was measured for each bias, and in how many networks."""

    networks: int
    size: int
    steps: int
    records: tuple[GateRecord, ...]


def half_life(gate: float) -> float:
    """Returns the steps after which a memory multiplied by `gate` at each step is halved: ln ½ / ln gate."""
    return math.log(0.5) / math.log(gate)


@torch.no_grad()
def measure(options: StudyOptions, tell: Tell) -> GateFindings:
    """Measures the forget gates of untrained LSTMs over steps of N(0, 1) input."""
    seeds = options.seed_list(20)
    records = []
    for done, bias in enumerate(BIASES):
        networks = StackedCells("lstm", INPUTS, SIZE, seeds, [bias] * len(seeds), torch.float64)
        generator = torch.Generator().manual_seed(1)
        inputs = torch.randn(len(seeds), SEQUENCES, STEPS, INPUTS, generator=generator, dtype=torch.float64)
        gates = torch.stack([step.forget_gate for step in networks.trace(inputs)])  # (steps, networks, batch, size)
        means = gates.mean(dim=(0, 2, 3))  # (networks,)
        records.append(
            GateRecord(
                bias,
                float(means.mean()),
                float(means.min()),
                float(means.max()),
                half_life(float(means.mean())),
                half_life(float(gates.log().mean().exp())),
            )
        )
        tell(done + 1, len(BIASES))
    return GateFindings(len(seeds), SIZE, STEPS, tuple(records))


def tabulate(findings: GateFindings) -> tuple[Table, ...]:
    """One row a bias."""
    rows = tuple(
        (
            each.label,
            "drawn" if each.bias is None else f"{2 * each.bias:g}",
            f"{each.gate:.4f}",
            f"{each.gate_low:.4f} to {each.gate_high:.4f}",
            f"{each.half_life:.1f}",
            f"{each.path_half_life:.1f}",
        )
        for each in findings.records
    )
    title = f"Forget gate of {findings.networks} untrained LSTMs, {findings.size} cells, {findings.steps} steps"
    headings = ("Bias in each vector", "In sum", "Mean gate", "Over seeds", "Half-life", "Of the path")
    return (Table(title, headings, rows),)


def draw(findings: GateFindings) -> Figure:
    """Draws what is left of a memory after so many steps, for each bias."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    for each in findings.records:
        left = [each.gate**step for step in range(findings.steps + 1)]
        style = "--" if each.bias == 0 else "-"  # which hides behind the default
        axes.plot(left, style, label=f"bias {each.label}: gate {each.gate:.3f}, half-life {each.half_life:.1f}")
    axes.axhline(0.5, color="grey", linewidth=0.8, linestyle=":")
    axes.set(title="What an untrained LSTM keeps of its memory", xlabel="steps", ylabel="share kept by the forget gate")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="lower right", bbox_to_anchor=(0.99, 0.08))
    return figure


STUDY = Study("forget-gate", "How long an untrained LSTM remembers, by its forget bias", measure, tabulate, draw)
