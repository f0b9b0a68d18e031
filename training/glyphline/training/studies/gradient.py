"""How much gradient reaches the first step of a sequence, by its length."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from matplotlib.figure import Figure

from glyphline.training.studies.cells import VARIANTS, StackedCells, Variant
from glyphline.training.studies.study import Study, StudyOptions, Table, Tell

SIZE, INPUTS, SEQUENCES = 32, 1, 32
LENGTHS = (5, 10, 20, 40, 80, 160)


@dataclass(frozen=True, slots=True)
class GradientRecord:
    """The gradient of one kind of network at one length.

    Attributes:
        variant: Its name.
        length: Steps of the sequence.
        norm: Norm of the gradient of the last hidden state's sum by the first input: geometric mean over seeds.
        low: Least of any seed.
        high: Greatest of any seed.
    """

    variant: str
    length: int
    norm: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class GradientFindings:
    """All gradients, and of how many networks each is."""

    networks: int
    records: tuple[GradientRecord, ...]


def first_gradients(variant: Variant, length: int, seeds: tuple[int, ...]) -> torch.Tensor:
    """Returns for each network the mean over sequences of ‖∂ Σ h_T / ∂ x_1‖ `(networks,)`."""
    networks = StackedCells(variant.cell, INPUTS, SIZE, seeds, [variant.bias] * len(seeds), torch.float64)
    generator = torch.Generator().manual_seed(length)
    inputs = torch.randn(len(seeds), SEQUENCES, length, INPUTS, generator=generator, dtype=torch.float64)
    inputs.requires_grad_()
    _, state = networks(inputs)
    (gradient,) = torch.autograd.grad(state.hidden.sum(), inputs)
    norms: torch.Tensor = gradient[:, :, 0].norm(dim=-1).mean(dim=1)
    return norms


def measure(options: StudyOptions, tell: Tell) -> GradientFindings:
    """Measures the gradient at the first step of untrained networks."""
    seeds = options.seed_list(10)
    lengths = LENGTHS[:3] if options.quick else LENGTHS
    records = []
    for variant in VARIANTS:
        for length in lengths:
            norms = first_gradients(variant, length, seeds)
            mean = float(norms.log().mean().exp())
            records.append(GradientRecord(variant.name, length, mean, float(norms.min()), float(norms.max())))
            tell(len(records), len(VARIANTS) * len(lengths))
    return GradientFindings(len(seeds), tuple(records))


def tabulate(findings: GradientFindings) -> tuple[Table, ...]:
    """One row a kind, one column a length."""
    lengths = sorted({each.length for each in findings.records})
    rows = tuple(
        (variant.name, *(f"{each.norm:.0e}" for each in findings.records if each.variant == variant.name))
        for variant in VARIANTS
    )
    title = f"Norm of the gradient at the first step, {findings.networks} untrained networks each"
    return (Table(title, ("Length", *map(str, lengths)), rows),)


def draw(findings: GradientFindings) -> Figure:
    """Draws the norm against the length, with the range over seeds."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for variant in VARIANTS:
        mine = [each for each in findings.records if each.variant == variant.name]
        lengths = [each.length for each in mine]
        (line,) = axes.plot(lengths, [each.norm for each in mine], marker="o", markersize=4, label=variant.name)
        axes.fill_between(
            lengths, [each.low for each in mine], [each.high for each in mine], color=line.get_color(), alpha=0.15
        )
    axes.set(
        title="Gradient that reaches the first step", xlabel="length of the sequence", ylabel="norm of the gradient"
    )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    ticks = sorted({each.length for each in findings.records})
    axes.set_xticks(ticks, labels=[str(tick) for tick in ticks])
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return figure


STUDY = Study("gradient", "How much gradient reaches the first step of a sequence", measure, tabulate, draw)
