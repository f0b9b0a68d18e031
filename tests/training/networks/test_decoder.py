"""What all step-wise heads share: padding, teacher forcing, scheduled sampling, cuts of the gradient, layers."""

from __future__ import annotations

import pytest
import torch

from glyphline.training.config import NetworkConfig
from glyphline.training.networks.decoder import StepDecoder
from glyphline.training.networks.masking import valid_mask
from glyphline.training.networks.recogniser import make_decoder, make_encoder

SIZES = {
    "channels": (2, 2, 2, 3),
    "encoder_size": 3,
    "encoder_layers": 1,
    "decoder_size": 8,
    "attention_size": 7,
    "embedding_size": 4,
    "dropout": 0.0,
}
HEADS: list[dict[str, object]] = [
    {"heads": ("attention",), "carries_state": True},
    {"heads": ("flatten",), "canvas_width": 36},
    {"heads": ("image-first",)},
    {"heads": ("image-first",), "image_every_step": True},
    {"heads": ("pooled-state",)},
]
CELLS = ["rnn", "gru", "lstm"]
every_head = pytest.mark.parametrize("settings", HEADS, ids=lambda settings: "-".join(map(str, settings.values())))
every_cell = pytest.mark.parametrize("cell", CELLS)


def make_head(settings: dict[str, object], cell: str, layers: int = 2) -> StepDecoder:
    """A head for six symbols over frames of six features, three of which are read backwards."""
    torch.manual_seed(0)
    config = NetworkConfig.model_validate(SIZES | settings | {"decoder_cell": cell, "decoder_layers": layers})
    head = make_decoder(config, make_encoder(config, 16), 6)
    assert head is not None
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter, 0, 0.5)
    return head


def make_memory() -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.tensor([9, 2, 5])
    return torch.randn(3, 9, 6) * valid_mask(lengths, 9).unsqueeze(2), lengths


@every_head
@every_cell
@torch.no_grad()
def test_a_row_gives_the_same_alone_and_in_a_padded_batch(settings: dict[str, object], cell: str) -> None:
    head = make_head(settings, cell)
    memory, lengths = make_memory()
    inputs = torch.tensor([[head.start, 1, 4, 2]] * 3)
    together = head(torch.nn.functional.pad(memory, (0, 0, 0, 4)), lengths, inputs)
    assert together.shape == (3, 4, 6)
    for row, length in enumerate(lengths.tolist()):
        alone = head(memory[row : row + 1, :length], lengths[row : row + 1], inputs[:1])
        torch.testing.assert_close(together[row : row + 1], alone, atol=1e-6, rtol=0)


@every_head
@every_cell
@torch.no_grad()
def test_reading_step_by_step_is_teacher_forcing_on_its_own_output(settings: dict[str, object], cell: str) -> None:
    head = make_head(settings, cell)
    memory, lengths = make_memory()
    for row, symbols in enumerate(head.greedy(memory, lengths, 9)):
        inputs = torch.tensor([[head.start, *symbols]])
        best = head(memory[row : row + 1], lengths[row : row + 1], inputs).argmax(2)[0].tolist()
        assert best[: len(symbols)] == symbols
        assert len(symbols) == 9 or best[len(symbols)] == head.end


@every_head
@torch.no_grad()
def test_full_sampling_feeds_the_head_its_own_symbols(settings: dict[str, object]) -> None:
    head = make_head(settings, "gru")
    memory, lengths = make_memory()
    start = torch.full((3, 1), head.start)
    label = torch.tensor([[1, 2, 3, 4, 5]] * 3)
    sampled = head(memory, lengths, torch.cat((start, label), dim=1), sampling=1.0)
    inputs = start
    for step in range(1, 6):
        scores = head(memory, lengths, inputs)
        torch.testing.assert_close(sampled[:, :step], scores)
        inputs = torch.cat((inputs, scores[:, -1:, 1:].argmax(2) + 1), dim=1)  # the end is no input
    assert not torch.equal(sampled, head(memory, lengths, torch.cat((start, label), dim=1)))


@torch.no_grad()
def test_sampling_follows_from_the_seed_and_draws_nothing_when_it_is_off() -> None:
    head = make_head(HEADS[0], "gru")
    memory, lengths = make_memory()
    inputs = torch.tensor([[head.start, 1, 2, 3, 4, 5]] * 3)
    results = []
    for _ in range(2):
        torch.manual_seed(5)
        results.append(head(memory, lengths, inputs, sampling=0.5))
    assert torch.equal(*results)
    assert not torch.equal(results[0], head(memory, lengths, inputs))
    before = torch.get_rng_state()
    head(memory, lengths, inputs)
    assert torch.equal(torch.get_rng_state(), before)


@every_head
@every_cell
def test_a_cut_stops_the_gradient_and_changes_no_value(settings: dict[str, object], cell: str) -> None:
    head = make_head(settings, cell)
    memory, lengths = make_memory()
    inputs = torch.tensor([[head.start, 1, 2, 3, 4, 5]] * 3)  # every symbol once: its embedding tells its step
    torch.testing.assert_close(head(memory, lengths, inputs, cut=2), head(memory, lengths, inputs))
    reached = {}
    for cut in (0, 2):
        head.zero_grad()
        head(memory, lengths, inputs, cut=cut)[0, 5].sum().backward()  # the last step, of the piece of steps 4 and 5
        assert head.embedding.weight.grad is not None
        norms = head.embedding.weight.grad.abs().sum(dim=1)
        reached[cut] = [bool(norms[int(symbol)] > 0) for symbol in inputs[0]]
    assert reached[0] == [True] * 6
    assert reached[2] == [False] * 4 + [True] * 2


def test_an_image_shown_at_every_step_is_reached_across_cuts_and_one_shown_once_is_not() -> None:
    memory, lengths = make_memory()
    memory.requires_grad_()
    for settings, expected in ((HEADS[2], False), (HEADS[3], True)):
        head = make_head(settings, "lstm")
        inputs = torch.tensor([[head.start, 1, 2]] * 3)
        [gradient] = torch.autograd.grad(
            head(memory, lengths, inputs, cut=2)[0, 2].sum(), memory, materialize_grads=True
        )
        assert bool(gradient.any()) is expected


@torch.no_grad()
def test_show_and_tell_is_the_image_and_then_the_words_through_one_network() -> None:
    head = make_head(HEADS[2], "lstm", layers=2)
    memory, lengths = make_memory()
    network = torch.nn.LSTM(4, 8, num_layers=2, batch_first=True)
    cells = [head.get_submodule("cell"), head.get_submodule("upper.0")]
    for layer, cell in enumerate(cells):
        for name, parameter in cell.named_parameters():
            getattr(network, f"{name}_l{layer}").copy_(parameter)
    inputs = torch.tensor([[head.start, 3, 1]] * 3)
    mean = torch.stack([memory[row, :length].mean(dim=0) for row, length in enumerate(lengths.tolist())])
    image = torch.nn.functional.linear(mean, *head.get_submodule("image").parameters())
    hidden, _ = network(torch.cat((image.unsqueeze(1), head.embedding(inputs)), dim=1))
    expected = torch.nn.functional.linear(hidden[:, 1:], *head.get_submodule("project").parameters())
    torch.testing.assert_close(head(memory, lengths, inputs), expected)


@torch.no_grad()
def test_the_pooled_state_is_where_each_direction_ends() -> None:
    head = make_head(HEADS[4], "gru", layers=1)
    memory, lengths = make_memory()
    _, [state] = head.begin(memory, lengths)
    for row, length in enumerate(lengths.tolist()):
        ends = torch.cat((memory[row, length - 1, :3], memory[row, 0, 3:]))
        linear = torch.nn.functional.linear(ends, *head.get_submodule("initial").parameters())
        torch.testing.assert_close(state[row], torch.tanh(linear))


@pytest.mark.parametrize(
    ("cell", "layers", "names"),
    [
        ("rnn", 1, ["hidden"]),
        ("lstm", 2, ["hidden", "cell", "hidden_2", "cell_2"]),
        ("gru", 3, ["hidden", "hidden_2", "hidden_3"]),
    ],
)
def test_states_are_named(cell: str, layers: int, names: list[str]) -> None:
    assert make_head(HEADS[4], cell, layers).state_names == names
    assert make_head(HEADS[0], cell, layers).state_names == [*names, "previous", "covered"]
    assert make_head(HEADS[3], cell, layers).state_names == [*names, "image"]
