from __future__ import annotations

from typing import Literal

import pytest
import torch

from glyphline.training.networks.attention import AttentionHead
from glyphline.training.networks.decoder import decoder_loss
from glyphline.training.networks.masking import valid_mask

Cell = Literal["gru", "lstm"]


def make_head(cell: Cell, filters: int = 8, reach: int = 0) -> AttentionHead:
    torch.manual_seed(0)
    head = AttentionHead(6, 5, cell, size=8, attention=7, filters=filters, reach=reach, embedding=4).eval()
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter, 0, 0.5)
    return head


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@torch.no_grad()
def test_padding_changes_nothing(cell: Cell) -> None:
    head = make_head(cell)
    memory = torch.randn(1, 5, 6)
    inputs = torch.tensor([[head.start, 1, 4, 2]])
    alone = head(memory, torch.tensor([5]), inputs)
    padded = torch.nn.functional.pad(memory, (0, 0, 0, 11))
    torch.testing.assert_close(head(padded, torch.tensor([5]), inputs), alone, atol=1e-6, rtol=0)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@torch.no_grad()
def test_reading_step_by_step_is_teacher_forcing_on_its_own_output(cell: Cell) -> None:
    head = make_head(cell)
    memory, lengths = torch.randn(3, 6, 6), torch.tensor([6, 2, 4])
    memory = memory * valid_mask(lengths, 6).unsqueeze(2)
    for row, symbols in enumerate(head.greedy(memory, lengths, 9)):
        inputs = torch.tensor([[head.start, *symbols]])
        best = head(memory[row : row + 1], lengths[row : row + 1], inputs).argmax(2)[0].tolist()
        assert best[: len(symbols)] == symbols
        assert len(symbols) == 9 or best[len(symbols)] == head.end


@torch.no_grad()
def test_a_row_without_frames_gives_numbers() -> None:
    head = make_head("gru")
    scores = head(torch.zeros(2, 3, 6), torch.tensor([0, 3]), torch.tensor([[head.start], [head.start]]))
    assert torch.isfinite(scores).all()


@torch.no_grad()
def test_weights_are_over_valid_frames_and_the_decoder_knows_where_it_looked() -> None:
    head = make_head("lstm")
    memory, lengths = torch.randn(2, 4, 6), torch.tensor([4, 2])
    mask = valid_mask(lengths, 4)
    keys, state = head.begin(memory, lengths)
    assert head.state_names == ["hidden", "cell", "previous", "covered"]
    total = torch.zeros(2, 4)
    for symbol in (head.start, 1, 2):
        _, weights, state = head.step(torch.full((2,), symbol), memory, keys, mask, state)
        total += weights
        torch.testing.assert_close(weights.sum(1), torch.ones(2))
        assert not weights[1, 2:].any()
        assert torch.equal(state[2], weights)
        torch.testing.assert_close(state[3], total)


@torch.no_grad()
def test_without_location_filters_where_it_looked_changes_nothing() -> None:
    memory, lengths, mask = torch.randn(1, 6, 6), torch.tensor([6]), torch.ones(1, 6, dtype=torch.bool)
    elsewhere = torch.nn.functional.one_hot(torch.tensor([4]), 6).float()
    for filters, same in ((0, True), (8, False)):
        head = make_head("gru", filters)
        keys, state = head.begin(memory, lengths)
        start = torch.tensor([head.start])
        _, nowhere, _ = head.step(start, memory, keys, mask, state)
        _, after, _ = head.step(start, memory, keys, mask, [state[0], elsewhere, elsewhere])
        assert torch.equal(nowhere, after) is same


@torch.no_grad()
def test_it_looks_within_reach_of_the_last_place_and_first_anywhere() -> None:
    head = make_head("gru", reach=2)
    memory, lengths, mask = torch.randn(2, 9, 6), torch.tensor([9, 6]), valid_mask(torch.tensor([9, 6]), 9)
    keys, state = head.begin(memory, lengths)
    start = torch.full((2,), head.start)
    _, free, _ = head.step(start, memory, keys, mask, state)
    assert (free[0] > 0).all()
    last = torch.nn.functional.one_hot(torch.tensor([3, 5]), 9).float()
    _, near, _ = head.step(start, memory, keys, mask, [state[0], last, last])
    assert [torch.nonzero(row).flatten().tolist() for row in near] == [[1, 2, 3, 4, 5], [3, 4, 5]]
    torch.testing.assert_close(near.sum(1), torch.ones(2))


@torch.no_grad()
def test_cells_that_start_anew_keep_where_they_looked() -> None:
    head = make_head("lstm")
    memory, lengths, mask = torch.randn(1, 6, 6), torch.tensor([6]), torch.ones(1, 6, dtype=torch.bool)
    inputs = torch.tensor([[head.start, 1, 2]])
    keys, state = head.begin(memory, lengths)
    cells = state[:2]
    expected = []
    for symbol in inputs[0]:
        scores, _, state = head.step(symbol[None], memory, keys, mask, [*cells, *state[2:]])
        expected.append(scores)
    always = head(memory, lengths, inputs, restarts=1.0 - 1e-9)
    torch.testing.assert_close(always, torch.stack(expected, dim=1))
    assert not torch.allclose(always, head(memory, lengths, inputs))
    head.carries_state = False
    torch.testing.assert_close(head(memory, lengths, inputs), always)


def test_the_loss_counts_the_end_and_not_the_padding() -> None:
    torch.manual_seed(0)
    scores = torch.randn(2, 4, 5)
    labels, lengths = torch.tensor([[1, 2, 3], [4, 0, 0]]), torch.tensor([3, 1])
    log = torch.log_softmax(scores, dim=2)
    expected = -(log[0, 0, 1] + log[0, 1, 2] + log[0, 2, 3] + log[0, 3, 0] + log[1, 0, 4] + log[1, 1, 0]) / 6
    assert float(decoder_loss(scores, labels, lengths, 0.0)) == pytest.approx(float(expected))
    empty = decoder_loss(scores[1:], labels[1:], torch.tensor([0]), 0.0)
    assert float(empty) == pytest.approx(-float(log[1, 0, 0]))
