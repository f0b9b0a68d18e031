from __future__ import annotations

import pytest
import torch

from glyphline.training.config import NetworkConfig
from glyphline.training.networks.encoder import ConvolutionalEncoder, StripEncoder
from glyphline.training.networks.recogniser import make_encoder as make_any_encoder
from glyphline.training.networks.recurrent import Cell, RecurrentLayers, open_gates, reverse_valid

SIZES = {"channels": (4, 8, 8, 12), "encoder_size": 10}


def make_encoder(**settings: object) -> StripEncoder:
    torch.manual_seed(0)
    encoder = make_any_encoder(NetworkConfig.model_validate(SIZES | settings), 16)
    if isinstance(encoder, ConvolutionalEncoder) and encoder.rows is not None:
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
    "settings",
    [
        {"encoder_cell": "rnn"},
        {"encoder_cell": "gru", "bidirectional": False},
        {"encoder_cell": "lstm", "encoder_layers": 3},
        {"encoder_layers": 0},
        {"residual_blocks": 1, "weigh_rows": True},
        {"weigh_rows": True, "column_maximum": False},
        {"encoder": "mobilenet_v3_small", "encoder_layers": 0},
        {"encoder": "mobilenet_v3_large", "encoder_layers": 1},
        {"encoder": "resnet18", "encoder_layers": 0},
        {"encoder": "resnet34", "encoder_layers": 0},
    ],
    ids=str,
)
@torch.no_grad()
def test_a_strip_reads_the_same_alone_and_in_any_batch(settings: dict[str, object]) -> None:
    encoder = make_encoder(**settings)
    random = torch.Generator().manual_seed(1)
    strips = [torch.randint(0, 256, (1, 1, 16, width), generator=random) for width in (1, 7, 32, 45, 90)]
    alone = []
    for strip in strips:
        width = strip.shape[3]
        padded = torch.nn.functional.pad(strip, (0, -width % 4))
        features, lengths = encoder(padded.to(torch.uint8), torch.tensor([width]))
        assert features.shape[2] == encoder.outputs
        alone.append(features[0, : int(lengths)])
    images = torch.stack([torch.nn.functional.pad(strip[0], (0, 128 - strip.shape[3])) for strip in strips])
    together, lengths = encoder(images.to(torch.uint8), torch.tensor([strip.shape[3] for strip in strips]))
    assert lengths.tolist() == [1, 2, 8, 12, 23]
    for row, expected in enumerate(alone):
        length = int(lengths[row])
        scale = float(expected.abs().max())  # of a backbone with random statistics it is anything
        torch.testing.assert_close(together[row, :length] / scale, expected / scale, atol=1e-5, rtol=0)
        assert not together[row, length:].any()


@torch.no_grad()
def test_what_lies_beyond_the_width_is_not_seen() -> None:
    encoder = make_encoder()
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
    sizes = SIZES | {"encoder_cell": "gru", "encoder_layers": 1}
    shallow = make_any_encoder(NetworkConfig.model_validate(sizes), 16).eval()
    deeper = NetworkConfig.model_validate(sizes | {"residual_blocks": 2, "weigh_rows": True})
    deep = make_any_encoder(deeper, 16).eval()
    deep.load_state_dict(shallow.state_dict(), strict=False)
    images, widths = torch.randint(0, 256, (2, 1, 16, 64), dtype=torch.uint8), torch.tensor([64, 33])
    torch.testing.assert_close(deep(images, widths)[0], shallow(images, widths)[0])


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_a_cut_stops_the_gradient_and_changes_no_value(cell: Cell) -> None:
    torch.manual_seed(0)
    layers = RecurrentLayers(cell, 5, 4, 2, bidirectional=False)
    lengths = torch.tensor([11, 7])
    features = torch.randn(2, 11, 5, requires_grad=True)
    whole = layers(features, lengths)
    torch.testing.assert_close(layers(features, lengths, 4), whole)
    layers(features, lengths, 4)[0, 9].sum().backward()
    assert features.grad is not None
    reached = features.grad[0].abs().sum(dim=1) > 0
    assert reached.tolist() == [False] * 8 + [True, True, False], "frames 8 to 10 are the third piece"
    features.grad = None
    layers(features, lengths)[0, 9].sum().backward()
    assert features.grad is not None
    assert (features.grad[0].abs().sum(dim=1) > 0).tolist() == [True] * 10 + [False]


def test_both_directions_are_cut_from_where_they_start() -> None:
    torch.manual_seed(0)
    layers = RecurrentLayers("gru", 5, 4, 1)
    lengths = torch.tensor([10, 6])
    features = torch.randn(2, 10, 5, requires_grad=True)
    torch.testing.assert_close(layers(features, lengths, 4), layers(features, lengths))
    layers(features, lengths, 4)[1, 3, 4:].sum().backward()  # backwards from frame 5 of the strip of six
    assert features.grad is not None
    assert (features.grad[1].abs().sum(dim=1) > 0).tolist() == [False] * 3 + [True] * 3 + [False] * 4
