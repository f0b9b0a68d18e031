from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image

from glyphline.training.config import read_config
from glyphline.training.studies import StudyOptions, words
from glyphline.training.studies.study import tell_nobody

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A font, a word list and a few real lines where the study looks for many."""
    root = tmp_path_factory.mktemp("data")
    font = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    for name in ("scene", "text", "typewriter", "mono"):
        (root / "fonts" / name).mkdir(parents=True)
        (root / "fonts" / name / font.name).symlink_to(font)
    (root / "words").mkdir()
    (root / "words" / "american.txt").write_text("strip\nline\nword\npixel\n")
    random = np.random.default_rng(1)
    for _, folder, _ in words.REAL_SETS:
        (root / folder).mkdir()
        names = [f"page{page}_{line}.png" for page in range(24) for line in range(2)]
        for name in names:
            Image.fromarray(random.integers(0, 256, (20, 60), dtype=np.uint8)).save(root / folder / name)
        (root / folder / "labels.tsv").write_text("".join(f"{name}\tword\n" for name in names))
    return root


def test_every_recipe_is_a_valid_configuration(tmp_path: Path) -> None:
    for trial in words.TRIALS:
        path = tmp_path / f"{trial.folder}.toml"
        path.write_text(trial.configuration(0, 1024))
        config = read_config(path)
        assert config.image.height == trial.height
        assert set(config.validation) == {"print", "typescript"}
        assert config.network.ctc_shortcut == (trial.label not in {"without the shortcut"})
    assert len({trial.folder for trial in words.TRIALS}) == len(words.TRIALS)


def test_recipes_are_trained_for_a_time_and_measured_once(
    data_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ("channels = [4, 4, 8, 8]", "encoder_size = 8")
    configuration = words.CONFIGURATION.replace("encoder_size = 128\n", "")
    monkeypatch.setattr(words, "CONFIGURATION", configuration)
    trials = (
        words.WordTrial("small", small),
        words.WordTrial("small with attention", small, heads=("ctc", "attention"), height=16),
    )
    monkeypatch.setattr(words, "TRIALS", trials)
    options = StudyOptions(quick=True, data_root=data_root, folder=tmp_path)
    findings = words.measure(options, tell_nobody)
    assert [record.label for record in findings.records] == ["small", "small with attention"]
    assert all(record.cpu_seconds > 0 and record.strips_seen >= 64 for record in findings.records)
    assert words.measure(options, tell_nobody) == findings, "what was trained is read, not trained again"
    [table] = words.tabulate(findings)
    assert len(table.rows) == 2
    assert words.draw(findings).axes
