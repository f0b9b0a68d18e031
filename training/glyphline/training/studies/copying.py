"""Reading a string of digits and writing it again: what fits through one state, and what attention adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn import functional

from glyphline.training.networks.recurrent import Cell
from glyphline.training.studies.cells import StackedCells, StackedLinear, State, clip_each, draw_uniform
from glyphline.training.studies.study import Study, StudyOptions, Table, Tell

END, START, SYMBOLS = 10, 11, 12
CELLS: tuple[Cell, ...] = ("rnn", "gru", "lstm")


@dataclass(frozen=True, slots=True)
class Training:
    """How the networks are trained.

    Attributes:
        longest: Greatest length of a string; each update is of one length.
        updates: Number of updates.
        batch: Strings an update.
        rate: Learning rate of Adam at its peak; it rises over the first tenth and falls to zero.
        size: Size of the encoder's state and of the decoder's.
        lengths: Lengths to test.
        tests: Strings a length.
    """

    longest: int = 16
    updates: int = 2000
    batch: int = 64
    rate: float = 5e-3
    size: int = 64
    lengths: tuple[int, ...] = (1, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24)
    tests: int = 200


@dataclass(frozen=True, slots=True)
class CopyRecord:
    """Networks of one kind at one length.

    Attributes:
        cell: Kind of cell.
        attention: Whether the decoder attends to the encoder's states.
        length: Length of the strings.
        exact: For each seed the share of new strings it copied without any error.
    """

    cell: Cell
    attention: bool
    length: int
    exact: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return sum(self.exact) / len(self.exact)


@dataclass(frozen=True, slots=True)
class CopyFindings:
    """How the networks were trained, and what they copy."""

    training: Training
    records: tuple[CopyRecord, ...]


class CopyNetworks(nn.Module):
    """Encoder-decoders, one of each seed; the decoder starts from the encoder's last state.

    With attention (Luong et al. 2015, "general"), the decoder's state d_t is compared with every state e_s of the
    encoder: α_ts = softmax_s(d_tᵀ A e_s), and the output sees Σ_s α_ts e_s besides d_t. Cells' gates start open.
    """

    def __init__(self, cell: Cell, size: int, seeds: Sequence[int], *, attention: bool) -> None:
        super().__init__()
        gates = [1.0] * len(seeds)
        self.encoder = StackedCells(cell, SYMBOLS, size, seeds, gates)
        self.decoder = StackedCells(cell, SYMBOLS, size, [20_000 + seed for seed in seeds], gates)
        self.output = StackedLinear(2 * size if attention else size, END + 1, seeds)
        drawn = [draw_uniform(30_000 + seed, [(size, size)], size)[0] for seed in seeds]
        self.compare = nn.Parameter(torch.stack(drawn)) if attention else None

    def encode(self, digits: Tensor) -> tuple[Tensor, State]:
        """Reads digits `(networks, batch, length)` into states `(networks, batch, length, size)` and the last one."""
        outputs, state = self.encoder(functional.one_hot(digits, SYMBOLS).to(self.encoder.weights.dtype))
        return torch.stack(outputs, dim=2), state

    def decode(self, inputs: Tensor, encoded: Tensor, state: State) -> tuple[Tensor, State]:
        """Scores the symbols after each input.

        Args:
            inputs: `(networks, batch, steps)`.
            encoded: From `encode`.
            state: State before the first step.

        Returns:
            Scores before softmax `(networks, batch, steps, 11)`, and the state after the last step.
        """
        outputs, state = self.decoder(functional.one_hot(inputs, SYMBOLS).to(self.decoder.weights.dtype), state)
        features = torch.stack(outputs, dim=2)  # (networks, batch, steps, size)
        if self.compare is not None:
            scores = (features @ self.compare.unsqueeze(1)) @ encoded.transpose(
                2, 3
            )  # (networks, batch, steps, length)
            features = torch.cat((features, scores.softmax(dim=3) @ encoded), dim=3)
        return self.output(features.flatten(1, 2)).view(*inputs.shape, -1), state

    @torch.no_grad()
    def copy(self, digits: Tensor) -> Tensor:
        """Reads digits `(networks, batch, length)` and writes as many symbols and one more, the likeliest each time."""
        encoded, state = self.encode(digits)
        symbols, written = torch.full_like(digits[:, :, :1], START), []
        for _ in range(digits.shape[2] + 1):
            scores, state = self.decode(symbols, encoded, state)
            symbols = scores.argmax(dim=3)
            written.append(symbols)
        return torch.cat(written, dim=2)


def train_networks(
    cell: Cell, seeds: Sequence[int], training: Training, tell: Tell, *, attention: bool
) -> CopyNetworks:
    """Trains encoder-decoders, for all seeds on the same strings; `tell` hears of each update."""
    networks = CopyNetworks(cell, training.size, seeds, attention=attention)
    parameters = list(networks.parameters())
    optimizer = torch.optim.Adam(parameters, training.rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, training.rate, total_steps=training.updates, pct_start=0.1, cycle_momentum=False
    )
    generator = torch.Generator().manual_seed(2)
    for update in range(training.updates):
        length = int(torch.randint(1, training.longest + 1, (), generator=generator))
        digits = torch.randint(10, (training.batch, length), generator=generator).expand(len(seeds), -1, -1)
        encoded, state = networks.encode(digits)
        edge = digits[:, :, :1]
        inputs = torch.cat((torch.full_like(edge, START), digits), dim=2)
        targets = torch.cat((digits, torch.full_like(edge, END)), dim=2)
        scores, _ = networks.decode(inputs, encoded, state)
        losses = functional.cross_entropy(scores.flatten(0, 2), targets.flatten(), reduction="none")
        optimizer.zero_grad()
        total: Tensor = losses.view(len(seeds), -1).mean(dim=1).sum()
        total.backward()  # type: ignore[no-untyped-call]
        clip_each(parameters, 1.0)
        optimizer.step()
        schedule.step()
        tell(update + 1, training.updates)
    return networks


def exact_copies(networks: CopyNetworks, length: int, tests: int) -> tuple[float, ...]:
    """Returns for each network the share of new strings of a length that it copies exactly, end included."""
    generator = torch.Generator().manual_seed(1000 + length)
    count = networks.encoder.networks
    digits = torch.randint(10, (tests, length), generator=generator).expand(count, -1, -1)
    right = torch.cat((digits, torch.full_like(digits[:, :, :1], END)), dim=2)
    return tuple((networks.copy(digits) == right).all(dim=2).double().mean(dim=1).tolist())


def measure_copying(training: Training, seeds: Sequence[int], tell: Tell) -> CopyFindings:
    """Trains every cell with and without attention, and tests every length."""
    records = []
    kinds = [(cell, attention) for attention in (False, True) for cell in CELLS]
    for index, (cell, attention) in enumerate(kinds):

        def tell_update(done: int, updates: int, before: int = index) -> None:
            tell(before * updates + done, len(kinds) * updates)

        networks = train_networks(cell, seeds, training, tell_update, attention=attention)
        for length in training.lengths:
            records.append(CopyRecord(cell, attention, length, exact_copies(networks, length, training.tests)))
    return CopyFindings(training, tuple(records))


def measure(options: StudyOptions, tell: Tell) -> CopyFindings:
    """Trains on strings of 1 to 16 digits and tests up to 24."""
    quick = Training(longest=4, updates=20, size=16, lengths=(1, 2, 4), tests=20)
    return measure_copying(quick if options.quick else Training(), options.seed_list(3), tell)


def tabulate(findings: CopyFindings) -> tuple[Table, ...]:
    """One row a kind: mean exact copies, and the range over seeds at each length."""
    lengths = findings.training.lengths
    found = {(each.cell, each.attention, each.length): each for each in findings.records}
    kinds = list(dict.fromkeys((each.cell, each.attention) for each in findings.records))
    names = [f"{cell.upper()}{' + attention' if attention else ''}" for cell, attention in kinds]
    networks = len(findings.records[0].exact)
    means, ranges = [], []
    for name, kind in zip(names, kinds, strict=True):
        mine = [found[(*kind, length)] for length in lengths]
        means.append((name, *(f"{100 * each.mean:.0f}" for each in mine)))
        ranges.append((name, *(f"{100 * min(each.exact):.0f}-{100 * max(each.exact):.0f}" for each in mine)))
    headings = ("Length", *map(str, lengths))
    trained = f"trained on 1 to {findings.training.longest} digits for {findings.training.updates:,} updates"
    return (
        Table(f"Exact copies, %, mean of {networks} seeds, {trained}", headings, tuple(means)),
        Table("The same, least and greatest seed", headings, tuple(ranges)),
    )


def draw(findings: CopyFindings) -> Figure:
    """Draws exact copies by length, every seed a thin line."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    for cell, colour in zip(CELLS, ("tab:blue", "tab:orange", "tab:green"), strict=True):
        for attention in (False, True):
            mine = [each for each in findings.records if (each.cell, each.attention) == (cell, attention)]
            lengths, style = [each.length for each in mine], "-" if attention else "--"
            for seed in range(len(mine[0].exact)):
                axes.plot(lengths, [100 * each.exact[seed] for each in mine], style, color=colour, alpha=0.25)
            name = f"{cell.upper()}{' with attention' if attention else ', one state'}"
            axes.plot(lengths, [100 * each.mean for each in mine], style, color=colour, marker="o", ms=4, label=name)
    axes.axvline(findings.training.longest, color="grey", linewidth=0.8, linestyle=":")
    axes.text(findings.training.longest, 103, "longest in training", ha="center", fontsize=8, color="grey")
    axes.set(title="Copying strings of digits", xlabel="length", ylabel="exact copies, %", ylim=(-3, 110))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return figure


STUDY = Study("copy", "What fits through one state, and what attention adds: copying digits", measure, tabulate, draw)
