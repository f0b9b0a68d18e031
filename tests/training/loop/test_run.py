from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from glyphline.models.errors import AlphabetError
from glyphline.training.config import NetworkConfig, read_config
from glyphline.training.errors import TrainingError
from glyphline.training.loop import load_network, losses, train
from glyphline.training.loop.folder import note_start, read_start, take_weights
from glyphline.training.loop.module import RecogniserModule
from glyphline.training.metrics_log import MetricsLog
from glyphline.training.networks.ctc import ctc_loss
from glyphline.training.networks.decoder import decoder_loss
from glyphline.training.networks.recogniser import RecogniserNetwork

# The training framework warns of its own use of torch, of few workers, and of what a short run leaves out.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

MakeConfig = Callable[..., Path]


def test_a_run_leaves_its_figures_curves_and_checkpoints(
    data_root: Path, tmp_path: Path, make_config: MakeConfig
) -> None:
    run, path = tmp_path / "run", make_config(tmp_path)
    path.write_text(
        path.read_text().replace("[loop]", "[loop]\nlog_every = 1\nsampling = 0.3\ncut_steps = 2\ncut_frames = 4")
    )
    train(path, data_root, run)
    rows = MetricsLog(run / "metrics.csv").rows()
    assert [row["epoch"] for row in rows] == [0, 1]
    assert rows[1]["strips"] > rows[0]["strips"] >= 60
    for head in ("ctc", "attention"):
        assert {f"strips_{head}_exact", f"composed_{head}_cer", f"train_{head}"} <= set(rows[0])
    assert (run / "curves.png").exists()
    assert (run / "config.toml").exists()
    [steps] = run.glob("steps/*/metrics.csv")
    assert {"train/ctc", "train/attention", "train/loss", "train/learning_rate"} <= set(
        steps.read_text().splitlines()[0].split(",")
    )
    assert list(run.glob("tensorboard/*/events.out.tfevents.*"))
    config, network, strips_seen = load_network(run)
    assert config.name == "small"
    assert strips_seen == rows[-1]["strips"]
    assert not network.training


def test_a_resumed_run_is_the_run_that_was_never_stopped(
    data_root: Path, tmp_path: Path, make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_config(tmp_path, epochs=3)
    train(config, data_root, tmp_path / "whole")

    begin = RecogniserModule.on_train_epoch_start

    def cut(module: RecogniserModule) -> None:
        if module.current_epoch == 2:
            raise RuntimeError("power cut")
        begin(module)

    with monkeypatch.context() as patched:
        patched.setattr(RecogniserModule, "on_train_epoch_start", cut)
        with pytest.raises(RuntimeError, match="power cut"):
            train(config, data_root, tmp_path / "cut")
    train(config, data_root, tmp_path / "cut")

    states = [
        torch.load(tmp_path / name / "checkpoints" / "last.ckpt", weights_only=False) for name in ("whole", "cut")
    ]
    assert states[0]["epoch"] == states[1]["epoch"] == 2
    for name, tensor in states[0]["state_dict"].items():
        assert torch.equal(tensor, states[1]["state_dict"][name]), name
    assert MetricsLog(tmp_path / "whole" / "metrics.csv").rows() == MetricsLog(tmp_path / "cut" / "metrics.csv").rows()


def test_a_run_is_not_mixed_with_another_configuration(
    data_root: Path, tmp_path: Path, make_config: MakeConfig
) -> None:
    run = tmp_path / "run"
    train(make_config(tmp_path, epochs=1), data_root, run)
    other = make_config(tmp_path, epochs=1, cell="gru", name="other.toml")
    with pytest.raises(TrainingError, match="another configuration"):
        train(other, data_root, run)
    train(other, data_root, run, resume=False)
    assert load_network(run)[0].network.encoder_cell == "gru"


def test_a_run_may_start_from_the_weights_of_another(data_root: Path, tmp_path: Path, make_config: MakeConfig) -> None:
    train(make_config(tmp_path, epochs=1), data_root, tmp_path / "first")
    deeper = make_config(tmp_path, epochs=1, name="deeper.toml")
    deeper.write_text(deeper.read_text().replace("[network]", "[network]\nresidual_blocks = 1\nweigh_rows = true"))
    _, first, _ = load_network(tmp_path / "first")
    module = RecogniserModule(read_config(deeper))
    new = take_weights(module, tmp_path / "first")
    assert {name.split(".")[1] for name in new} == {"residuals", "rows"}
    for name, tensor in first.state_dict().items():
        assert torch.equal(module.network.state_dict()[name], tensor)
        assert torch.equal(module.averaged_network().state_dict()[name], tensor)
    train(deeper, data_root, tmp_path / "second", start_from=tmp_path / "first")
    assert load_network(tmp_path / "second")[1].encoder.rows is not None
    assert read_start(tmp_path / "first") == []
    runs = [{"run": name, "strips_seen": load_network(tmp_path / name)[2]} for name in ("first", "second")]
    assert read_start(tmp_path / "second") == runs[:1]
    (tmp_path / "third").mkdir()
    note_start(tmp_path / "third", tmp_path / "second")
    assert read_start(tmp_path / "third") == runs
    train(deeper, data_root, tmp_path / "second", resume=False)
    assert read_start(tmp_path / "second") == [], "begun anew, from nothing"
    with pytest.raises(TrainingError, match="does not exist"):
        take_weights(module, tmp_path)


def test_what_is_skipped_is_in_the_log_and_the_figures_of_every_epoch(
    data_root: Path, tmp_path: Path, make_config: MakeConfig, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "root"
    shutil.copytree(data_root, root)
    (root / "strips" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    shutil.copy(root / "strips" / "strip7.png", root / "strips" / "crowded.png")
    shutil.copy(root / "strips" / "strip7.png", root / "strips" / "letters.png")
    with (root / "strips" / "labels.tsv").open("a") as labels:
        labels.write(f"broken.png\t7\ncrowded.png\t{'0' * 40}\nletters.png\tseven\n")
    config = make_config(tmp_path)
    real = '[[sources]]\nkind = "real"\npath = "strips"\n'
    text = config.read_text().replace(real, f'{real}weight = 9\nunknown_characters = "skip"\n')
    text = text.replace('kind = "folder"\npath = "strips"', 'kind = "folder"\npath = "strips"\nonly = "strip"')
    config.write_text(text)
    caplog.set_level("INFO", "glyphline")
    train(config, root, tmp_path / "run")
    rows = MetricsLog(tmp_path / "run" / "metrics.csv").rows()
    for row in rows:
        assert row["skipped"] == row["skipped_unreadable"] + row["skipped_label_longer_than_its_frames"] > 0
        assert row["left_out"] == row["left_out_unknown_character"] == 1
    for epoch, row in enumerate(rows):
        assert f"{int(row['skipped_unreadable'])} skipped, unreadable (broken.png)" in caplog.text
        [line] = [record.getMessage() for record in caplog.records if f"epoch {epoch}: " in record.getMessage()]
        assert "label longer than its frames (crowded.png)" in line
    assert caplog.text.count("1 skipped, unknown character (letters.png)") == 2


def test_a_run_stops_when_validation_does_not_improve_and_stays_stopped(
    data_root: Path, tmp_path: Path, make_config: MakeConfig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "glyphline")
    config = make_config(tmp_path, epochs=9, heads='["ctc"]')
    text = config.read_text().replace("[loop]", "[loop]\nlearning_rate = 1e-9\npatience = 2")
    config.write_text(text)
    run = tmp_path / "run"
    train(config, data_root, run)
    rows = MetricsLog(run / "metrics.csv").rows()
    assert len(rows) == 3, "the first validation and two without a better one"
    assert {row["validation_error"] for row in rows} == {1.0}
    assert "going on" not in caplog.text
    assert "no checkpoint yet" not in caplog.text
    train(config, data_root, run)
    assert f"going on from {run / 'checkpoints' / 'last.ckpt'}: 3 of 9 epochs are done" in caplog.text
    assert MetricsLog(run / "metrics.csv").rows() == rows
    config.write_text(text.replace("patience = 2", "patience = 3"))
    train(config, data_root, run)
    assert len(MetricsLog(run / "metrics.csv").rows()) == 4
    shutil.rmtree(run / "checkpoints")  # as if it had been stopped before the first one
    config.write_text(text.replace("epochs = 9", "epochs = 1"))
    train(config, data_root, run)
    assert f"no checkpoint yet in {run}: starting from the beginning" in caplog.text


def test_neither_norms_nor_biases_decay(tmp_path: Path, make_config: MakeConfig) -> None:
    module = RecogniserModule(read_config(make_config(tmp_path)))
    decayed, free = module.configure_optimizers().param_groups
    assert decayed["weight_decay"] > 0
    assert free["weight_decay"] == 0
    names = {id(parameter): name for name, parameter in module.network.named_parameters()}
    norms = {
        f"{name}.{part}"
        for name, child in module.network.named_modules()
        if isinstance(child, torch.nn.BatchNorm2d)
        for part in ("weight", "bias")
    }
    without = {names[id(parameter)] for parameter in free["params"]}
    assert norms
    assert norms <= without
    assert all("bias" in name for name in without - norms)
    assert {names[id(parameter)] for parameter in decayed["params"]} | without == set(names.values())
    assert not any("bias" in names[id(parameter)] for parameter in decayed["params"])


def test_unknown_characters_stop_a_run_before_it_starts(
    data_root: Path, tmp_path: Path, make_config: MakeConfig
) -> None:
    config = make_config(tmp_path)
    config.write_text(config.read_text().replace('"0123456789.,:/-+ "', '"01234567.,:/-+ "'))
    with pytest.raises(AlphabetError, match="9") as error:
        train(config, data_root, tmp_path / "run")
    assert "4" in str(error.value), "the line of 9081"
    assert not (tmp_path / "run").exists()


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_batch(
    data_root: Path, tmp_path: Path, make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "ctc_loss", lambda *_: torch.tensor(float("nan"), requires_grad=True))
    with pytest.raises(TrainingError, match="not-finite-batch"):
        train(make_config(tmp_path), data_root, tmp_path / "run")
    batch = torch.load(tmp_path / "run" / "not-finite-batch.pt")
    assert {"images", "widths", "labels", "label_lengths"} == set(batch)


def test_a_folder_that_is_no_run_is_named(tmp_path: Path, make_config: MakeConfig) -> None:
    make_config(tmp_path, name="config.toml")
    with pytest.raises(TrainingError, match="does not exist"):
        load_network(tmp_path)


@pytest.mark.parametrize(("cell", "decoder_cell"), [("lstm", "gru"), ("gru", "lstm")])
def test_a_network_learns_a_few_strips_by_heart(cell: str, decoder_cell: str) -> None:
    torch.manual_seed(1)
    config = NetworkConfig.model_validate(
        {
            "channels": (8, 16, 16, 24),
            "encoder_cell": cell,
            "encoder_size": 24,
            "encoder_layers": 1,
            "decoder_cell": decoder_cell,
            "decoder_size": 32,
            "carries_state": True,
            "attention_size": 24,
            "attention_reach": 0,
            "dropout": 0.0,
        }
    )
    network = RecogniserNetwork(config, 5, 40)
    labels = torch.tensor([[1, 2, 3], [4, 4, 0], [0, 0, 0], [2, 2, 2]])
    lengths = torch.tensor([3, 2, 0, 3])
    images = torch.zeros(4, 1, 16, 48, dtype=torch.uint8)
    for row, label in enumerate(labels.tolist()):
        for place, symbol in enumerate(label[: int(lengths[row])]):
            images[row, 0, 2 + 3 * (symbol - 1) : 5 + 3 * (symbol - 1), 4 + 14 * place : 14 + 14 * place] = 255
    widths = torch.tensor([48, 40, 48, 45])
    optimiser = torch.optim.AdamW(network.parameters(), 5e-3)
    inputs = torch.cat((torch.full((4, 1), 5), labels), dim=1)
    for _ in range(160):
        outputs = network(images, widths, inputs)
        assert outputs.ctc is not None
        assert outputs.scores is not None
        loss = ctc_loss(outputs.ctc[0], outputs.ctc[1], labels, lengths) + decoder_loss(
            outputs.scores, labels, lengths, 0.0
        )
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # as torch has it
        optimiser.step()
    expected = [row[: int(length)] for row, length in zip(labels.tolist(), lengths, strict=True)]
    readings = network.eval().read(images, widths, 6)
    assert readings == {"ctc": expected, "attention": expected}
