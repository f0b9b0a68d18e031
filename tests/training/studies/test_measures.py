import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from glyphline.training.studies import StudyOptions, copying, forget_gate, gate_trace, gradient, jacobian, memory
from glyphline.training.studies.cells import VARIANTS, StackedCells, State, lstm_step
from glyphline.training.studies.study import tell_nobody


@given(st.floats(0.01, 0.9999))
def test_after_its_half_life_a_memory_is_halved(gate: float) -> None:
    assert gate ** forget_gate.half_life(gate) == pytest.approx(0.5)


def test_the_forget_gate_starts_where_its_bias_puts_it() -> None:
    records = forget_gate.measure(StudyOptions(seeds=4), tell_nobody).records
    for each in records[1:]:
        assert each.bias is not None
        assert each.gate == pytest.approx(1 / (1 + math.exp(-2 * each.bias)), abs=0.015)
        assert each.gate_low <= each.gate <= each.gate_high
    half_lives = {each.bias: each.half_life for each in records}
    assert half_lives[None] == pytest.approx(1.0, abs=0.05)
    assert half_lives[1.0] == pytest.approx(5.2, abs=0.4)
    assert half_lives[3.0] == pytest.approx(257, rel=0.1)


def test_the_gradient_vanishes_unless_the_gate_is_open() -> None:
    at_eighty = {each.name: float(gradient.first_gradients(each, 80, (0, 1)).log().mean().exp()) for each in VARIANTS}
    for collapsed in ("RNN", "LSTM default", "GRU default"):
        assert at_eighty[collapsed] < 1e-12
    assert 1e-5 < at_eighty["LSTM bias 1"] < 1e-1
    assert at_eighty["LSTM bias 3"] > 1e-2
    assert at_eighty["GRU opened"] > 1e-8


def test_sequences_differ_in_nothing_but_the_seed() -> None:
    first, again, other = (memory.SequenceSource([seed], 6, 0.5).draw(50) for seed in (1, 1, 2))
    assert torch.equal(first[0], again[0])
    assert not torch.equal(first[0], other[0])
    sequences, positive = first
    assert sequences.shape == (1, 50, 6, 1)
    assert torch.equal(sequences[:, :, 0, 0], torch.where(positive, 1.0, -1.0))
    assert sequences[:, :, 1:].std() == pytest.approx(0.5, abs=0.1)


def test_a_network_learns_the_same_in_any_company() -> None:
    training = memory.Training(epochs=1, sequences=60, batch=20, size=6)
    alone, together = (
        memory.train_networks("lstm", biases, [5], 4, training, lambda: None) for biases in ([1.0], [None, 1.0])
    )
    for own, both in zip(alone.parameters(), together.parameters(), strict=True):
        torch.testing.assert_close(own[0], both[1])


def test_a_short_memory_is_learnt_by_all() -> None:
    training = memory.Training(epochs=3, sequences=1000, batch=50, rate=1e-2, size=8)
    findings = memory.measure_memory((3,), (0, 1), training, tell_nobody, VARIANTS[:2])
    assert [each.solved for each in findings.records] == [2, 2]
    assert memory.tabulate(findings)[0].rows == (("RNN", "2/2"), ("LSTM default", "2/2"))


@pytest.fixture(scope="module")
def strip() -> torch.Tensor:
    """A small strip of random columns."""
    return torch.randn(20, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_the_strip_is_standardised_and_in_order() -> None:
    pytest.importorskip("sklearn")
    strip = jacobian.digit_strip(3)
    assert strip.shape == (24, 8)
    assert strip.mean() == pytest.approx(0, abs=1e-12)
    assert strip.std() == pytest.approx(1)
    from sklearn.datasets import load_digits  # noqa: PLC0415

    column = torch.as_tensor(load_digits().images[1][:, 3])  # of the second digit
    values = strip[11] * (column.max() - column.min()) / (strip[11].max() - strip[11].min())
    torch.testing.assert_close(values - values.min(), column - column.min())


def test_gradients_through_time_are_autograds(strip: torch.Tensor) -> None:
    assert jacobian.check_gradients(strip).difference < 1e-15
    for cell in ("rnn", "gru", "lstm"):
        assert jacobian.check_cell(cell, strip, size=6).difference < 1e-14


def test_jacobians_are_autograds(strip: torch.Tensor) -> None:
    networks = StackedCells("lstm", 8, 4, [2], [0.5], torch.float64)
    jacobians, direct = jacobian.lstm_jacobians(networks, strip)
    state = State(*(part[0] for part in networks.start(1)))
    for step in range(3):
        projected = networks.project(strip.view(1, 1, *strip.shape))[step].detach()

        def advance(before: torch.Tensor, projected: torch.Tensor = projected) -> torch.Tensor:
            after = lstm_step(projected, State(before[None, None, :4], before[None, None, 4:]), networks.weights)
            return torch.cat((after.hidden.flatten(), after.memory.flatten()))

        before = torch.cat((state.hidden.flatten(), state.memory.flatten()))
        right = torch.func.jacrev(advance)(before)
        torch.testing.assert_close(jacobians[step], right)
        torch.testing.assert_close(jacobians[step][4:, 4:].diagonal(), direct[step])
        after = advance(before).detach()
        state = State(after[None, :4], after[None, 4:])


def test_a_linear_network_has_the_rate_of_its_spectral_radius(strip: torch.Tensor) -> None:
    record = jacobian.measure_radius(torch.cat([strip] * 6), 0.9, (1, 2), 16)
    assert record.linear_error < 1e-3
    assert record.tanh < record.linear
    assert jacobian.rate([0.5**step for step in range(1, 40)]) == pytest.approx(0.5)


def test_short_strings_are_copied() -> None:
    training = copying.Training(longest=2, updates=300, batch=32, rate=1e-2, size=24, lengths=(1, 2), tests=50)
    for attention in (False, True):
        networks = copying.train_networks("gru", (0, 1), training, tell_nobody, attention=attention)
        assert min(copying.exact_copies(networks, 1, 50)) > 0.9


def test_copying_step_by_step_is_what_was_trained() -> None:
    networks = copying.CopyNetworks("lstm", 8, (0, 1), attention=True)
    digits = torch.randint(10, (2, 3, 4), generator=torch.Generator().manual_seed(0))
    written = networks.copy(digits)
    encoded, state = networks.encode(digits)
    inputs = torch.cat((torch.full_like(digits[:, :, :1], copying.START), written[:, :, :-1]), dim=2)
    scores, _ = networks.decode(inputs, encoded, state)
    assert torch.equal(scores.argmax(dim=3), written)


def test_a_trace_begins_with_the_sign() -> None:
    findings = gate_trace.measure(StudyOptions(quick=True), tell_nobody)
    assert findings.positive.sequence == (1.0, *findings.negative.sequence[1:])
    assert findings.negative.sequence[0] == -1.0
    assert findings.untrained.sequence == findings.positive.sequence
    apart = [one - other for one, other in zip(findings.positive.memory[-1], findings.negative.memory[-1], strict=True)]
    assert apart == sorted(apart, reverse=True)
    assert len(gate_trace.tabulate(findings)[0].rows) == 4
    assert replace(findings, accuracy=1.0) != findings
