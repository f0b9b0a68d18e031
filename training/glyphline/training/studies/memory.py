"""Can it learn to remember? A network is told +1 or -1, hears noise, and is asked for the sign at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn import functional

from glyphline.training.networks.recurrent import Cell
from glyphline.training.studies.cells import VARIANTS, StackedCells, StackedLinear, Variant, clip_each
from glyphline.training.studies.study import Study, StudyOptions, Table, Tell

SOLVED = 0.95
"""Share of new sequences a network must get right to have solved the task; one that has not is near 0.5."""


@dataclass(frozen=True, slots=True)
class Training:
    """How the networks are trained.

    Attributes:
        epochs: Number of epochs.
        sequences: New sequences an epoch.
        batch: Sequences an update.
        rate: Learning rate of Adam.
        clip: Greatest norm of a network's gradient.
        size: Size of the state.
        noise: Standard deviation of the noise.
    """

    epochs: int = 15
    sequences: int = 2000
    batch: int = 50
    rate: float = 3e-3
    clip: float = 1.0
    size: int = 32
    noise: float = 0.1

    @property
    def updates(self) -> int:
        """Updates in all."""
        return self.epochs * self.sequences // self.batch


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """The networks of one kind at one length.

    Attributes:
        variant: Their name.
        length: Steps of a sequence.
        accuracies: For each seed the share of new sequences whose sign it gave.
        solved: How many seeds solved the task.
    """

    variant: str
    length: int
    accuracies: tuple[float, ...]
    solved: int


@dataclass(frozen=True, slots=True)
class MemoryFindings:
    """How the networks were trained, and what they learnt."""

    training: Training
    records: tuple[MemoryRecord, ...]


class SequenceSource:
    """Draws sequences, for every seed its own, the same whatever network they are for.

    Args:
        seeds: Seeds.
        length: Steps.
        noise: Standard deviation of the noise.
        stream: Number of the series; two differ in all.
    """

    def __init__(self, seeds: Sequence[int], length: int, noise: float, stream: int = 0) -> None:
        self.length = length
        self.noise = noise
        self.generators = [torch.Generator().manual_seed(1_000_003 * (stream + 1) + seed) for seed in seeds]

    def draw(self, batch: int) -> tuple[Tensor, Tensor]:
        """Returns sequences `(seeds, batch, time, 1)` and whether each began with +1 `(seeds, batch)`."""
        noise = [torch.randn(batch, self.length, generator=each) for each in self.generators]
        positive = torch.stack([torch.rand(batch, generator=each) < 0.5 for each in self.generators])
        sequences = self.noise * torch.stack(noise)
        sequences[:, :, 0] = torch.where(positive, 1.0, -1.0)
        return sequences.unsqueeze(3), positive


class SignNetworks(nn.Module):
    """Recurrent networks that give the sign's logit from their last hidden state."""

    def __init__(self, cell: Cell, size: int, seeds: Sequence[int], biases: Sequence[float | None]) -> None:
        super().__init__()
        self.cells = StackedCells(cell, 1, size, seeds, biases)
        self.readout = StackedLinear(size, 1, seeds)

    def forward(self, sequences: Tensor) -> Tensor:
        """Maps `(networks, batch, time, 1)` to `(networks, batch)`."""
        _, state = self.cells(sequences)
        logits: Tensor = self.readout(state.hidden)
        return logits.squeeze(2)


def train_networks(
    cell: Cell,
    biases: Sequence[float | None],
    seeds: Sequence[int],
    length: int,
    training: Training,
    tell_update: Callable[[], None],
) -> SignNetworks:
    """Trains networks of one kind of cell, for each bias one of every seed.

    Args:
        cell: Kind of cell.
        biases: As in `Variant.bias`.
        seeds: Seeds.
        length: Steps of a sequence.
        training: How.
        tell_update: Is called after each update.

    Returns:
        The networks, those of the first bias first.
    """
    each_seed, each_bias = list(seeds) * len(biases), [bias for bias in biases for _ in seeds]
    networks = SignNetworks(cell, training.size, each_seed, each_bias)
    parameters = list(networks.parameters())
    optimizer = torch.optim.Adam(parameters, training.rate)
    source = SequenceSource(seeds, length, training.noise)
    for _ in range(training.updates):
        sequences, positive = source.draw(training.batch)
        logits = networks(sequences.repeat(len(biases), 1, 1, 1))
        losses = functional.binary_cross_entropy_with_logits(
            logits, positive.repeat(len(biases), 1).float(), reduction="none"
        )
        optimizer.zero_grad()
        total: Tensor = losses.mean(dim=1).sum()  # a network's own gradient does not depend on its neighbours
        total.backward()  # type: ignore[no-untyped-call]
        clip_each(parameters, training.clip)
        optimizer.step()
        tell_update()
    return networks


@torch.no_grad()
def test_accuracy(networks: SignNetworks, seeds: Sequence[int], length: int, noise: float, count: int = 1000) -> Tensor:
    """Returns for each network the share of new sequences whose sign it gives `(networks,)`."""
    sequences, positive = SequenceSource(seeds, length, noise, stream=1).draw(count)
    copies = networks.cells.networks // len(seeds)
    right = (networks(sequences.repeat(copies, 1, 1, 1)) > 0) == positive.repeat(copies, 1)
    shares: Tensor = right.double().mean(dim=1)
    return shares


def measure_memory(
    lengths: Sequence[int],
    seeds: Sequence[int],
    training: Training,
    tell: Tell,
    variants: Sequence[Variant] = VARIANTS,
) -> MemoryFindings:
    """Trains every kind at every length."""
    cells: dict[Cell, list[Variant]] = {}
    for variant in variants:
        cells.setdefault(variant.cell, []).append(variant)
    steps, done = sum(lengths) * len(variants) * training.updates, 0
    records = []
    for length in lengths:
        for cell, mine in cells.items():

            def tell_update(cost: int = length * len(mine)) -> None:
                nonlocal done
                done += cost
                tell(done, steps)

            networks = train_networks(cell, [each.bias for each in mine], seeds, length, training, tell_update)
            accuracies = test_accuracy(networks, seeds, length, training.noise).view(len(mine), len(seeds)).tolist()
            for variant, values in zip(mine, accuracies, strict=True):
                solved = sum(value >= SOLVED for value in values)
                records.append(MemoryRecord(variant.name, length, tuple(values), solved))
    return MemoryFindings(training, tuple(records))


def measure(options: StudyOptions, tell: Tell) -> MemoryFindings:
    """Trains every kind of network at lengths 20, 60 and 150."""
    if options.quick:
        return measure_memory((8,), options.seed_list(5), Training(epochs=2, sequences=200, size=8), tell)
    return measure_memory((20, 60, 150), options.seed_list(5), Training(), tell)


def tabulate(findings: MemoryFindings) -> tuple[Table, ...]:
    """How many seeds solved the task, and every seed's accuracy."""
    lengths = list(dict.fromkeys(each.length for each in findings.records))
    names = list(dict.fromkeys(each.variant for each in findings.records))
    found = {(each.variant, each.length): each for each in findings.records}
    rates = tuple(
        (name, *(f"{found[name, length].solved}/{len(found[name, length].accuracies)}" for length in lengths))
        for name in names
    )
    every = tuple(
        (name, *(" ".join(f"{100 * value:.0f}" for value in found[name, length].accuracies) for length in lengths))
        for name in names
    )
    headings = ("Length", *map(str, lengths))
    how = f"{findings.training.epochs} epochs of {findings.training.sequences:,} sequences"
    return (
        Table(f"Seeds that solve the memory task after {how}", headings, rates),
        Table("Right signs of each seed, %", headings, every),
    )


def draw(findings: MemoryFindings) -> Figure:
    """Draws every seed's accuracy, a panel a length."""
    lengths = list(dict.fromkeys(each.length for each in findings.records))
    figure = Figure(figsize=(1.5 + 3 * len(lengths), 4), layout="constrained")
    panels = figure.subplots(1, len(lengths), squeeze=False, sharey=True)[0]
    for axes, length in zip(panels, lengths, strict=True):
        mine = [each for each in findings.records if each.length == length]
        for index, each in enumerate(mine):
            count = len(each.accuracies)
            places = [index + 0.12 * (seed - (count - 1) / 2) / math.sqrt(count / 5) for seed in range(count)]
            axes.plot(places, [100 * value for value in each.accuracies], "o", markersize=5, alpha=0.7)
            axes.text(index, 108, f"{each.solved}/{count}", ha="center", fontsize=9)
        axes.axhline(100 * SOLVED, color="grey", linewidth=0.8, linestyle=":")
        axes.set(title=f"{length} steps", ylim=(35, 115))
        axes.set_xticks(range(len(mine)), labels=[each.variant for each in mine], rotation=60, ha="right")
        axes.grid(alpha=0.3, axis="y")
    panels[0].set_ylabel("signs remembered, % (a dot a seed)")
    return figure


STUDY = Study("memory", "Whether networks learn to remember a sign through noise", measure, tabulate, draw)
