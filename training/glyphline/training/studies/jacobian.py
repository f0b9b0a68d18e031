"""How fast a change dies out from step to step on a real strip, and whether gradients written out are right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from glyphline.training.networks.recurrent import CELLS, Cell
from glyphline.training.studies.cells import StackedCells, State, lstm_step
from glyphline.training.studies.study import Study, StudyOptions, Table, Tell

SIZE = 64
RADII = (0.5, 0.8, 0.9, 1.0, 1.1)


@dataclass(frozen=True, slots=True)
class RadiusRecord:
    """Rates of plain networks whose recurrent weights have one spectral radius.

    Attributes:
        radius: The spectral radius.
        linear: Rate a step of the linear network, mean over seeds.
        linear_error: Greatest relative difference from the radius of any seed.
        tanh: Rate of the same network with tanh, mean over seeds.
        tanh_high: The greatest of any seed.
    """

    radius: float
    linear: float
    linear_error: float
    tanh: float
    tanh_high: float


@dataclass(frozen=True, slots=True)
class LstmRecord:
    """Rates of LSTMs whose forget gates have one bias in sum.

    Attributes:
        bias: The bias, in sum of the two vectors.
        rate: Rate a step of the whole state's Jacobian, mean over seeds.
        rate_low: Least of any seed.
        rate_high: Greatest of any seed.
        early: The same rate in the first quarter of the steps, before the slowest direction has prevailed.
        direct: Rate of the direct path, the product of the forget gates: of the unit that keeps longest.
        gate: Geometric mean of all forget gates: the direct path of a middling unit.
        norms: Norm of the Jacobian across so many steps, from 1, of the first seed.
        direct_norms: The same of the direct path.
    """

    bias: float
    rate: float
    rate_low: float
    rate_high: float
    early: float
    direct: float
    gate: float
    norms: tuple[float, ...]
    direct_norms: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Check:
    """How far something written out is from PyTorch's, relative to the greatest value or norm."""

    what: str
    difference: float


@dataclass(frozen=True, slots=True)
class JacobianFindings:
    """Rates on a strip of so many steps, for so many networks each, and checks."""

    networks: int
    steps: int
    radii: tuple[RadiusRecord, ...]
    lstms: tuple[LstmRecord, ...]
    checks: tuple[Check, ...]


def digit_strip(digits: int = 16) -> Tensor:
    """Returns scikit-learn's 8×8 digits side by side, standardised, column after column `(8 * digits, 8)`."""
    from sklearn.datasets import load_digits  # noqa: PLC0415  (no other study needs it, and it takes a second)

    images = torch.as_tensor(load_digits().images[:digits], dtype=torch.float64)  # (digits, rows, columns)
    columns = images.transpose(1, 2).reshape(-1, images.shape[1])
    return (columns - columns.mean()) / columns.std()


def product_norms(jacobians: Sequence[Tensor]) -> list[float]:
    """Returns the spectral norm of the product of the last 1, 2, … all Jacobians of steps, each `(size, size)`."""
    product = torch.eye(jacobians[0].shape[0], dtype=jacobians[0].dtype)
    norms = []
    for jacobian in reversed(jacobians):
        product = product @ jacobian
        norms.append(float(torch.linalg.matrix_norm(product, 2)))
    return norms


def slope(norms: Sequence[float]) -> float:
    """Returns the rate a step of norms of ever longer products: the slope of their logarithms by least squares."""
    logarithms = torch.tensor([math.log(norm) for norm in norms], dtype=torch.float64)
    steps = torch.arange(len(norms), dtype=torch.float64)
    steps = steps - steps.mean()
    return math.exp(float((steps * logarithms).sum() / steps.square().sum()))


def rate(norms: Sequence[float]) -> float:
    """Returns the rate a step of norms of products of 1, 2, … Jacobians, the first quarter left out."""
    return slope(norms[len(norms) // 4 :])


def plain_jacobians(strip: Tensor, weights: Tensor, input_weights: Tensor, *, linear: bool) -> list[Tensor]:
    """Returns ∂h_t/∂h_{t-1} of every step of a plain network: W, or diag(1 - h_t²) W with tanh."""
    hidden = strip.new_zeros(weights.shape[0])
    jacobians = []
    for column in strip:
        hidden = weights @ hidden + input_weights @ column
        hidden = hidden if linear else torch.tanh(hidden)
        jacobians.append(weights if linear else (1 - hidden.square()).unsqueeze(1) * weights)
    return jacobians


def lstm_jacobians(networks: StackedCells, strip: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Returns the Jacobians of every step of the first network, written out.

    Returns:
        ∂(h_t, c_t)/∂(h_{t-1}, c_{t-1}), each `(2 * size, 2 * size)`, and their direct paths f_t, each `(size,)`.
    """
    state = State(*(part[:1] for part in networks.start(1)))
    blocks = networks.weights[:1].squeeze(0).T.chunk(4)  # of the gates i, f, g, o, each (size, size)
    jacobians, direct = [], []
    for projected in networks.project(strip.expand(networks.networks, 1, *strip.shape)):
        after = lstm_step(projected[:1], state, networks.weights[:1])
        memory, ingoing, forget, candidate, outgoing = (part.flatten() for part in after[1:])
        past, shown = state.memory.flatten(), torch.tanh(memory)
        slopes = (
            candidate * ingoing * (1 - ingoing),
            past * forget * (1 - forget),
            ingoing * (1 - candidate.square()),
        )
        memory_by_hidden = sum(
            (slope.unsqueeze(1) * block for slope, block in zip(slopes, blocks, strict=False)),
            torch.zeros_like(blocks[0]),
        )
        memory_by_memory = torch.diag(forget)
        passing = (outgoing * (1 - shown.square())).unsqueeze(1)  # ∂h_t/∂c_t
        hidden_by_hidden = passing * memory_by_hidden + (shown * outgoing * (1 - outgoing)).unsqueeze(1) * blocks[3]
        above = torch.cat((hidden_by_hidden, passing * memory_by_memory), dim=1)
        jacobians.append(torch.cat((above, torch.cat((memory_by_hidden, memory_by_memory), dim=1))))
        direct.append(forget)
        state = State(after.hidden, after.memory)
    return jacobians, direct


def written_gradients(strip: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """Back-propagation through time written out, for a tanh network that foretells the next column.

    With a_t = W h_{t-1} + U x_t + b, h_t = tanh(a_t), y_t = V h_t + c and the loss Σ_t ½ ‖y_t - x_{t+1}‖², errors flow
    back by δ_t = (Vᵀ (y_t - x_{t+1}) + Wᵀ δ_{t+1}) (1 - h_t²).

    Args:
        strip: `(time, rows)`.
        parameters: W `(size, size)`, U `(size, rows)`, b `(size,)`, V `(rows, size)`, c `(rows,)`.

    Returns:
        The loss's gradient by each parameter.
    """
    weights, input_weights, bias, output_weights, output_bias = parameters
    states = [strip.new_zeros(weights.shape[0])]
    for column in strip[:-1]:
        states.append(torch.tanh(weights @ states[-1] + input_weights @ column + bias))
    gradients = [torch.zeros_like(parameter) for parameter in parameters]
    error = torch.zeros_like(bias)  # δ_{t+1}
    for step in range(len(states) - 1, 0, -1):
        missed = output_weights @ states[step] + output_bias - strip[step]
        gradients[3] += torch.outer(missed, states[step])
        gradients[4] += missed
        error = (output_weights.T @ missed + weights.T @ error) * (1 - states[step].square())
        gradients[0] += torch.outer(error, states[step - 1])
        gradients[1] += torch.outer(error, strip[step - 1])
        gradients[2] += error
    return gradients


def autograd_gradients(strip: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """The same gradients as `written_gradients`, by autograd."""
    leaves = [parameter.clone().requires_grad_() for parameter in parameters]
    weights, input_weights, bias, output_weights, output_bias = leaves
    hidden, loss = strip.new_zeros(weights.shape[0]), strip.new_zeros(())
    for step in range(len(strip) - 1):
        hidden = torch.tanh(weights @ hidden + input_weights @ strip[step] + bias)
        loss = loss + 0.5 * (output_weights @ hidden + output_bias - strip[step + 1]).square().sum()
    return list(torch.autograd.grad(loss, leaves))


def check_gradients(strip: Tensor) -> Check:
    """Compares the written-out gradients with autograd's, as ‖difference‖ / ‖gradient‖ over all parameters."""
    generator = torch.Generator().manual_seed(0)
    rows = strip.shape[1]
    shapes = [(SIZE, SIZE), (SIZE, rows), (SIZE,), (rows, SIZE), (rows,)]
    parameters = [torch.randn(shape, generator=generator, dtype=strip.dtype) / math.sqrt(SIZE) for shape in shapes]
    written, right = written_gradients(strip, parameters), autograd_gradients(strip, parameters)
    flat = torch.cat([gradient.flatten() for gradient in right])
    difference = torch.cat([gradient.flatten() for gradient in written]) - flat
    return Check("Gradients through time against autograd's", float(difference.norm() / flat.norm()))


@torch.no_grad()
def check_cell(cell: Cell, strip: Tensor, size: int = SIZE) -> Check:
    """Compares a written-out cell's hidden states along the strip with those of torch's own layer."""
    written = StackedCells(cell, strip.shape[1], size, [0], dtype=strip.dtype)
    layer: nn.RNNBase = CELLS[cell](strip.shape[1], size, batch_first=True, dtype=strip.dtype)
    values = (written.input_weights[0].T, written.weights[0].T, written.input_bias.flatten(), written.bias.flatten())
    for parameter, value in zip(layer.parameters(), values, strict=True):
        parameter.copy_(value)
    right = layer(strip.unsqueeze(0))[0].squeeze(0)
    outputs = torch.stack(written(strip.expand(1, 1, *strip.shape))[0]).view_as(right)
    return Check(
        f"{cell.upper()} against torch.nn.{cell.upper()}", float((outputs - right).abs().max() / right.abs().max())
    )


def measure_radius(strip: Tensor, radius: float, seeds: Sequence[int], size: int) -> RadiusRecord:
    """Measures plain networks whose recurrent weights are scaled to a spectral radius."""
    linear, tanh = [], []
    for seed in seeds:
        generator = torch.Generator().manual_seed(seed)
        weights = torch.randn(size, size, generator=generator, dtype=strip.dtype)
        weights *= radius / torch.linalg.eigvals(weights).abs().max()
        inputs = torch.randn(size, strip.shape[1], generator=generator, dtype=strip.dtype) / math.sqrt(size)
        linear.append(rate(product_norms(plain_jacobians(strip, weights, inputs, linear=True))))
        tanh.append(rate(product_norms(plain_jacobians(strip, weights, inputs, linear=False))))
    error = max(abs(value / radius - 1) for value in linear)
    return RadiusRecord(radius, fmean(linear), error, fmean(tanh), max(tanh))


@torch.no_grad()
def measure_lstm(strip: Tensor, bias: float, seeds: Sequence[int], size: int) -> LstmRecord:
    """Measures LSTMs whose forget gates start with a bias, in sum of the two vectors."""
    curves, early, gates = [], [], []
    for seed in seeds:
        networks = StackedCells("lstm", strip.shape[1], size, [seed], [bias / 2], strip.dtype)
        jacobians, direct = lstm_jacobians(networks, strip)
        logarithms = torch.stack(direct).log()  # (steps, size)
        paths = logarithms.flip(0).cumsum(dim=0).exp().amax(dim=1)  # the norm of a diagonal matrix
        curves.append((product_norms(jacobians), paths.tolist()))
        early.append(slope(curves[-1][0][: len(strip) // 4]))
        gates.append(math.exp(float(logarithms.mean())))
    rates = [rate(norms) for norms, _ in curves]
    direct_rates = [rate(paths) for _, paths in curves]
    return LstmRecord(
        bias,
        fmean(rates),
        min(rates),
        max(rates),
        fmean(early),
        fmean(direct_rates),
        fmean(gates),
        *(tuple(curve) for curve in curves[0]),
    )


def measure(options: StudyOptions, tell: Tell) -> JacobianFindings:
    """Measures all rates on the strip, and checks what is written out."""
    seeds = options.seed_list(5)
    strip, size = (digit_strip(4), 16) if options.quick else (digit_strip(), SIZE)
    steps = len(RADII) + 2 + 4
    radii, lstms, checks = [], [], []
    for radius in RADII:
        radii.append(measure_radius(strip, radius, seeds, size))
        tell(len(radii), steps)
    for bias in (0.0, 1.0):
        lstms.append(measure_lstm(strip, bias, seeds, size))
        tell(len(radii) + len(lstms), steps)
    checks = [check_gradients(strip), *(check_cell(cell, strip) for cell in CELLS)]
    tell(steps, steps)
    return JacobianFindings(len(seeds), len(strip), tuple(radii), tuple(lstms), tuple(checks))


def tabulate(findings: JacobianFindings) -> tuple[Table, ...]:
    """Rates of plain networks, of LSTMs, and the checks."""
    radii = tuple(
        (
            f"{each.radius:g}",
            f"{each.linear:.4f}",
            f"{each.linear_error:.3%}",
            f"{each.tanh:.3f}",
            f"{each.tanh_high:.3f}",
        )
        for each in findings.radii
    )
    lstms = tuple(
        (
            f"{each.bias:g}",
            f"{each.rate:.2f}",
            f"{each.rate_low:.2f} to {each.rate_high:.2f}",
            f"{each.early:.2f}",
            f"{each.direct:.2f}",
            f"{each.gate:.2f}",
        )
        for each in findings.lstms
    )
    checks = tuple((each.what, f"{each.difference:.1e}") for each in findings.checks)
    of = f"{findings.networks} networks each, {findings.steps} steps"
    return (
        Table(
            f"Rate a step of plain networks, {of}",
            ("Spectral radius", "Linear", "Greatest error", "tanh", "Greatest"),
            radii,
        ),
        Table(
            f"Rate a step of LSTMs, {of}",
            (
                "Forget bias, in sum",
                "Whole state",
                "Over seeds",
                "First quarter",
                "Direct path, slowest unit",
                "Mean forget gate",
            ),
            lstms,
        ),
        Table("What is written out against PyTorch, float64", ("Check", "Relative difference"), checks),
    )


def draw(findings: JacobianFindings) -> Figure:
    """Draws the rates of plain networks, and how the norms of an LSTM's Jacobians fall."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    plain, lstm = figure.subplots(1, 2)
    radii = [each.radius for each in findings.radii]
    plain.plot(radii, radii, color="grey", linewidth=0.8, linestyle=":", label="spectral radius")
    plain.plot(radii, [each.linear for each in findings.radii], "o", label="linear")
    plain.plot(radii, [each.tanh for each in findings.radii], "s-", label="tanh")
    plain.set(title="Plain networks", xlabel="spectral radius of the weights", ylabel="rate a step")
    for each in findings.lstms:
        steps = range(1, len(each.norms) + 1)
        (line,) = lstm.plot(steps, each.norms, label=f"bias {each.bias:g}: {each.rate:.2f} a step")
        lstm.plot(
            steps,
            each.direct_norms,
            color=line.get_color(),
            linestyle="--",
            label=f"its direct path: {each.direct:.2f} a step",
        )
    lstm.set(title="LSTM, 1 network", xlabel="steps across", ylabel="norm of the Jacobian", yscale="log")
    for axes in (plain, lstm):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    return figure


STUDY = Study("jacobian", "How fast a change dies out along a strip of digits", measure, tabulate, draw)
