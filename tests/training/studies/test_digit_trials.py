from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from glyphline.training.config import read_config
from glyphline.training.errors import TrainingError
from glyphline.training.studies import StudyOptions, heads, length
from glyphline.training.studies.digit_trials import (
    CANVAS,
    LENGTHS,
    Trial,
    TrialFindings,
    draw_trials,
    run_trial,
    tabulate_trials,
)
from glyphline.training.studies.study import tell_nobody

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def write_idx(path: Path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    path.write_bytes(header + array.astype(np.uint8).tobytes())


@pytest.fixture
def drawn_mnist(tmp_path: Path) -> Path:
    """Drawn digits where MNIST's would lie, of forty writers, so that some of each fold are there."""
    font = ImageFont.load_default(20)
    labels = np.tile(np.arange(10), 80)
    images = np.zeros((len(labels), 28, 28), np.uint8)
    for index, label in enumerate(labels):
        image = Image.new("L", (14, 28))
        ImageDraw.Draw(image).text((1, 2), str(label), fill=255, font=font)
        images[index] = np.asarray(image.resize((28, 28)))  # as wide as written digits are
    folder = tmp_path / "data" / "mnist"
    folder.mkdir(parents=True)
    write_idx(folder / "train-images-idx3-ubyte", images)
    write_idx(folder / "train-labels-idx1-ubyte", labels)
    writers = "".join(f"{index}\t{label}\t{index // 20}\n" for index, label in enumerate(labels))
    (folder / "writers.tsv").write_text("index\tlabel\twriter\n" + writers)
    return tmp_path / "data"


def test_a_trial_is_trained_exported_and_measured_once(drawn_mnist: Path, tmp_path: Path) -> None:
    trial = Trial("flatten, GRU", "flatten")
    record = run_trial(trial, 0, drawn_mnist, tmp_path / "work", quick=True)
    assert record.strips_seen >= 128
    assert record.parameters > 0
    assert record.images_per_second > 0
    assert [(part.shortest, part.longest) for part in record.lengths] == list(LENGTHS)
    assert record.lengths[0].refused == 0, f"eight digits fit a canvas of {CANVAS}"
    assert record.lengths[2].refused > 0, "of 17 to 32 digits not all do"
    table = tabulate_trials(TrialFindings((record,)), "title", "Head")
    assert table.rows[0][0] == "flatten, GRU"
    assert len(table.rows[0]) == len(table.headings)
    assert draw_trials(TrialFindings((record,))).axes
    shutil.rmtree(drawn_mnist)  # what is kept is not measured again
    assert run_trial(trial, 0, drawn_mnist, tmp_path / "work", quick=True) == record
    with pytest.raises(TrainingError, match="holds a trial of other settings"):
        run_trial(trial, 1, drawn_mnist, tmp_path / "work", quick=True)


def test_both_heads_of_a_trial_read_together(
    drawn_mnist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(length, "TRIALS", (length.JOINT,))
    options = StudyOptions(quick=True, data_root=drawn_mnist, folder=tmp_path / "trials")
    findings = length.measure(options, tell_nobody)
    assert [each.label for each in findings.records] == [
        "attention, CTC beside it",
        "attention, CTC beside it; both heads read",
    ]
    assert all(part.refused == 0 for part in findings.records[1].lengths)
    [table] = length.tabulate(findings)
    assert len(table.rows) == 2


def test_every_trial_is_a_configuration_and_has_a_folder_of_its_own(tmp_path: Path) -> None:
    trials = {*heads.TRIALS, *length.TRIALS}
    assert len({trial.folder for trial in trials}) == len(trials)
    for trial in trials:
        path = tmp_path / f"{trial.folder}.toml"
        path.write_text(trial.configuration(0))
        assert trial.head in read_config(path).network.heads


def test_a_study_without_data_says_what_it_wants() -> None:
    with pytest.raises(TrainingError, match="--data-root"):
        heads.measure(StudyOptions(), tell_nobody)


def test_a_trial_goes_on_from_another(drawn_mnist: Path, tmp_path: Path) -> None:
    first = Trial("ctc, GRU", "ctc")
    further = Trial("ctc, GRU, and on", "ctc", after=first, learning_rate="1e-4")
    record = run_trial(further, 0, drawn_mnist, tmp_path / "ctc--gru--and-on-0", quick=True)
    alone = run_trial(first, 0, drawn_mnist, tmp_path / "ctc--gru-0", quick=True)
    assert record.strips_seen > alone.strips_seen >= 128
    assert (tmp_path / "ctc--gru--and-on-0" / "run" / "start.json").exists()
