from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.decoding.readings import Reading
from glyphline.models.recognizer import Recognizer
from glyphline.training.config import NetworkConfig
from glyphline.training.errors import DataError, ExportError, TrainingError
from glyphline.training.export import export_run
from glyphline.training.half_weights import halve_weights
from glyphline.training.loop import train
from glyphline.training.loop.folder import choose_checkpoint
from glyphline.training.networks.recogniser import RecogniserNetwork
from glyphline.training.networks.rounding import round_weights
from glyphline.training.onnx_graphs import Head, make_graphs, write_graph
from glyphline.training.parity import check_parity

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

MakeConfig = Callable[..., Path]


def random_network(cell: str, decoder_cell: str) -> RecogniserNetwork:
    """A network whose every weight and statistic matters."""
    torch.manual_seed(0)
    settings = {
        "channels": (4, 8, 8, 12),
        "encoder_cell": cell,
        "encoder_size": 10,
        "decoder_cell": decoder_cell,
        "encoder_layers": 2,
        "decoder_size": 14,
        "attention_size": 9,
    }
    network = RecogniserNetwork(NetworkConfig.model_validate(settings), 7, 40)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, 0, 0.3)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            assert module.running_var is not None
            module.running_var.uniform_(0.5, 2)
    return network.eval()


@pytest.mark.parametrize(
    ("head", "cell", "decoder_cell"),
    [
        ("ctc", "rnn", "gru"),
        ("ctc", "gru", "gru"),
        ("ctc", "lstm", "gru"),
        ("attention", "lstm", "gru"),
        ("attention", "gru", "lstm"),
    ],
)
def test_every_head_and_cell_exports_and_agrees(head: Head, cell: str, decoder_cell: str, tmp_path: Path) -> None:
    network = random_network(cell, decoder_cell)
    round_weights(network)
    for graph in make_graphs(network, head, 16):
        write_graph(graph, tmp_path / f"{graph.role}.onnx")
        size = (tmp_path / f"{graph.role}.onnx").stat().st_size
        halve_weights(tmp_path / f"{graph.role}.onnx")
        if graph.role != "decoder_step":
            assert (tmp_path / f"{graph.role}.onnx").stat().st_size < size, "rounded before, weights lose nothing by it"
        assert b"/training/networks/" not in (tmp_path / f"{graph.role}.onnx").read_bytes(), "paths of this machine"
    assert check_parity(network, head, tmp_path, 16) < 1e-5
    # The gate is no formality: a network that differs a little from its graphs does not pass.
    with torch.no_grad():
        part = network.ctc if head == "ctc" else network.decoder
        assert part is not None
        projection = part.project
        assert isinstance(projection, torch.nn.Linear)
        projection.bias[2] += 0.01
    with pytest.raises(ExportError, match="no bundle was written"):
        check_parity(network, head, tmp_path, 16)


@pytest.fixture(scope="module")
def run(data_root: Path, tmp_path_factory: pytest.TempPathFactory, make_config: MakeConfig) -> Path:
    folder = tmp_path_factory.mktemp("run")
    train(make_config(folder, epochs=2), data_root, folder / "run")
    return folder / "run"


@pytest.mark.parametrize("head", ["ctc", "attention"])
def test_a_run_becomes_a_bundle_that_reads(run: Path, head: str, data_root: Path, tmp_path: Path) -> None:
    path = export_run(run, tmp_path, "small", 3, head, data_root)
    assert path == tmp_path / "small" / "3"
    assert [folder.name for folder in (tmp_path / "small").iterdir()] == ["3"], "nothing half-written stays"
    bundle = load_bundle(path)
    assert bundle.manifest.head == head
    assert bundle.manifest.version == 3
    assert bundle.manifest.training["strips_seen"]
    checkpoint = bundle.manifest.training["checkpoint"]
    assert isinstance(checkpoint, dict)
    assert checkpoint["weights"] == "averaged"
    assert float(str(bundle.manifest.training["parity"])) < 1e-4
    card = (path / "model_card.md").read_text()
    assert "How to make it again" in card
    assert f"- Weights: the running average at the end of epoch {checkpoint['epoch']} " in card
    assert "Use and limits" in card
    assert f"with {'an attention' if head == 'attention' else 'a CTC'} head." in card
    assert "fetch_fonts.py --output DATA/fonts" in card
    recognizer = Recognizer.load(bundle)
    strip = (data_root / "strips" / "strip345.png").read_bytes()
    for decoder in ("greedy", "beam"):
        options = DecodingOptions(decoder=decoder, beam_width=4)
        [reading] = recognizer.recognize([strip], options)
        assert isinstance(reading, Reading)
        assert 0 <= reading.confidence <= 1
    with pytest.raises(TrainingError, match="exists"):
        export_run(run, tmp_path, "small", 3, head, data_root)


def test_a_head_that_was_not_trained_is_refused(data_root: Path, tmp_path: Path, make_config: MakeConfig) -> None:
    train(make_config(tmp_path, epochs=1, heads='["ctc"]'), data_root, tmp_path / "run")
    with pytest.raises(ExportError, match="no attention head"):
        export_run(tmp_path / "run", tmp_path / "out", "small", 1, "attention", data_root)
    assert not list((tmp_path / "out" / "small").iterdir())


def test_the_data_are_needed(run: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="--data-root"):
        export_run(run, tmp_path, "small", 1, "ctc", tmp_path / "none")


def test_the_best_checkpoint_is_exported_unless_the_last_is_as_good(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()

    def save(name: str, epoch: int) -> None:
        torch.save({"epoch": epoch}, tmp_path / "checkpoints" / f"{name}.ckpt")

    def log(*errors: float) -> None:
        rows = "".join(f"{epoch},{error}\n" for epoch, error in enumerate(errors))
        (tmp_path / "metrics.csv").write_text(f"epoch,validation_error\n{rows}")

    with pytest.raises(TrainingError, match="not the folder of a training run"):
        choose_checkpoint(tmp_path)
    save("last", 2)
    assert (choose_checkpoint(tmp_path).which, choose_checkpoint(tmp_path).error) == ("last", None)
    save("best-epoch=001", 1)
    log(0.5, 0.1, 0.2)
    best = choose_checkpoint(tmp_path)
    assert (best.which, best.epoch, best.error, best.path.name) == ("best", 1, 0.1, "best-epoch=001.ckpt")
    assert choose_checkpoint(tmp_path, "last").epoch == 2
    log(0.5, 0.1, 0.1)
    assert choose_checkpoint(tmp_path).which == "last"
    log(0.5, 0.1)
    assert choose_checkpoint(tmp_path).which == "best", "how good the last is, is not known"
