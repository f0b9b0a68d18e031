from __future__ import annotations

import pytest
import torch

from glyphline.training.networks.encoder import Encoder
from glyphline.training.networks.recurrent import Cell, open_gates, reverse_valid


def make_encoder(cell: Cell, layers: int = 2, residual_blocks: int = 0, rows: int = 0) -> Encoder:
    torch.manual_seed(0)
    encoder = Encoder((4, 8, 8, 12), cell, 10, layers, residual_blocks=residual_blocks, rows=rows)
    if encoder.rows is not None:
        encoder.rows.weight.data.normal_(0, 0.3)
    for module in encoder.modules():
        if isinstance(module, torch.nn.BatchNorm2d):  # as after training: no statistic is trivial
            assert module.running_mean is not None
            assert module.running_var is not None
            module.running_mean.normal_(0, 0.3)
            module.running_var.uniform_(0.5, 2)
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.normal_(0, 0.5)
    return encoder.eval()


@pytest.mark.parametrize(
    ("cell", "residual_blocks", "rows"), [("rnn", 0, 0), ("gru", 0, 0), ("lstm", 0, 0), ("lstm", 1, 2)]
)
@torch.no_grad()
def test_a_strip_reads_the_same_alone_and_in_any_batch(cell: Cell, residual_blocks: int, rows: int) -> None:
    encoder = make_encoder(cell, residual_blocks=residual_blocks, rows=rows)
    random = torch.Generator().manual_seed(1)
    strips = [torch.randint(0, 256, (1, 1, 16, width), generator=random) for width in (1, 7, 32, 45, 90)]
    alone = []
    for strip in strips:
        width = strip.shape[3]
        padded = torch.nn.functional.pad(strip, (0, -width % 4))
        features, lengths = encoder(padded.to(torch.uint8), torch.tensor([width]))
        alone.append(features[0, : int(lengths)])
    images = torch.stack([torch.nn.functional.pad(strip[0], (0, 128 - strip.shape[3])) for strip in strips])
    together, lengths = encoder(images.to(torch.uint8), torch.tensor([strip.shape[3] for strip in strips]))
    assert lengths.tolist() == [1, 2, 8, 12, 23]
    for row, expected in enumerate(alone):
        length = int(lengths[row])
        torch.testing.assert_close(together[row, :length], expected, atol=1e-5, rtol=0)
        assert not together[row, length:].any()


@torch.no_grad()
def test_what_lies_beyond_the_width_is_not_seen() -> None:
    encoder = make_encoder("lstm")
    images = torch.zeros(1, 1, 16, 64, dtype=torch.uint8)
    images[..., :40] = torch.randint(0, 256, (16, 40))
    dirty = images.clone()
    dirty[..., 40:] = 255
    clean, _ = encoder(images, torch.tensor([40]))
    other, _ = encoder(dirty, torch.tensor([40]))
    assert torch.equal(clean, other)


def test_reversal_within_lengths_is_its_own_inverse() -> None:
    features = torch.arange(24.0).reshape(2, 6, 2)
    lengths = torch.tensor([6, 3])
    reversed_ = reverse_valid(features, lengths)
    assert reversed_[1, :, 0].tolist() == [16, 14, 12, 18, 20, 22]
    assert torch.equal(reverse_valid(reversed_, lengths), features)


def test_gates_start_open() -> None:
    lstm = torch.nn.LSTM(3, 4)
    open_gates(lstm, 1.0)
    biases = dict(lstm.named_parameters())
    assert (biases["bias_ih_l0"] + biases["bias_hh_l0"]).tolist() == [0.0] * 4 + [1.0] * 4 + [0.0] * 8, (
        "the forget gate is the second of i, f, g, o"
    )
    gru = torch.nn.GRUCell(3, 4)
    open_gates(gru, 2.0)
    assert (gru.bias_ih + gru.bias_hh).tolist() == [0.0] * 4 + [2.0] * 4 + [0.0] * 4, "update is the second of r, z, n"


@torch.no_grad()
def test_new_depth_and_new_weights_of_rows_change_nothing_at_first() -> None:
    shallow = Encoder((4, 8, 8, 12), "gru", 10, 1).eval()
    deep = Encoder((4, 8, 8, 12), "gru", 10, 1, residual_blocks=2, rows=2).eval()
    deep.load_state_dict(shallow.state_dict(), strict=False)
    images, widths = torch.randint(0, 256, (2, 1, 16, 64), dtype=torch.uint8), torch.tensor([64, 33])
    torch.testing.assert_close(deep(images, widths)[0], shallow(images, widths)[0])
