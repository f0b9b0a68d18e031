"""What may be asked of a configuration before it is trained: whether it can learn, and how fast."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from glyphline.cli import app
from glyphline.cli.exit_codes import ExitCode
from glyphline.training.errors import DataError
from glyphline.training.loop.rate_finder import HIGHEST, LOWEST, SKIPPED, find_rate, suggest_rate
from glyphline.training.loop.sanity import overfit_one

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

MakeConfig = Callable[..., Path]


def test_one_strip_is_learnt_by_heart(data_root: Path, tmp_path: Path, make_config: MakeConfig) -> None:
    config = make_config(tmp_path)
    command = ["train", str(config), "--data-root", str(data_root), "--output", str(tmp_path / "run"), "--sanity"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == ExitCode.OK, result.output
    assert "ctc: loss" in result.output
    assert result.output.count("reads it") == 2
    assert "it can learn" in result.output
    assert not (tmp_path / "run").exists()


def test_what_cannot_learn_is_told(data_root: Path, tmp_path: Path, make_config: MakeConfig) -> None:
    config = make_config(tmp_path, heads='["ctc"]')
    config.write_text(config.read_text().replace("[loop]", "[loop]\nclip = 1e-30"))  # no gradient is left
    command = ["train", str(config), "--data-root", str(data_root), "--sanity"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == ExitCode.FINDINGS
    assert "it can't learn: the loss hardly falls" in result.output
    assert "\n100 steps" in result.output, "it is given up early"


def test_without_any_text_there_is_nothing_to_learn(data_root: Path, tmp_path: Path, make_config: MakeConfig) -> None:
    config = make_config(tmp_path)
    text = config.read_text()
    blank = '[[sources]]\nkind = "blank"\n\n'
    config.write_text(text[: text.index("[[sources]]")] + blank + text[text.index("[validation.strips]") :])
    with pytest.raises(DataError, match="none of 512 strips has text"):
        overfit_one(config, data_root)


def test_the_suggestion_is_where_the_loss_falls_fastest() -> None:
    rates = np.geomspace(1e-6, 1, 101)
    falling = 3 - 2 / (1 + np.exp(-4 * (np.log10(rates) + 3)))  # fastest at 1e-3
    losses = np.where(rates < 0.03, falling, 100 * rates)
    assert suggest_rate(rates.tolist(), losses.tolist()) == pytest.approx(1e-3, rel=0.2)
    losses[rates > 0.1] = np.nan
    assert suggest_rate(rates.tolist(), losses.tolist()) == pytest.approx(1e-3, rel=0.2)
    assert suggest_rate(rates.tolist(), rates.tolist()) is None
    assert suggest_rate(rates[:SKIPPED].tolist(), losses[:SKIPPED].tolist()) is None


def test_a_rate_is_suggested_and_drawn(data_root: Path, tmp_path: Path, make_config: MakeConfig) -> None:
    search = find_rate(make_config(tmp_path), data_root, tmp_path / "run", steps=20)
    assert search.suggestion is None or LOWEST < search.suggestion < HIGHEST
    assert search.suggestion == suggest_rate(search.rates, search.losses)
    assert list(search.rates) == sorted(search.rates)
    assert len(search.rates) == len(search.losses) == 20
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["rate-finder.png"]
    assert search.plot.read_bytes().startswith(b"\x89PNG")


def test_seeds_are_trained_one_by_one_and_shown_together(
    data_root: Path, tmp_path: Path, make_config: MakeConfig
) -> None:
    config, run = make_config(tmp_path, epochs=1, heads='["ctc"]'), tmp_path / "run"
    command = ["train", str(config), "--data-root", str(data_root), "--output", str(run), "--seeds", "2"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == ExitCode.OK, result.output
    for expected in ("seed 1", "seed 2", "mean ± sd", "strips ctc exact", "100.00 ± 0.00"):
        assert expected in result.output
    for seed in (1, 2):
        kept = (run / f"seed-{seed}" / "config.toml").read_text()
        assert f"\nseed = {seed}\n" in kept
        assert (run / f"seed-{seed}" / "checkpoints" / "last.ckpt").exists()
    figures = [(run / f"seed-{seed}" / "metrics.csv").read_text() for seed in (1, 2)]
    assert figures[0] != figures[1]
    assert CliRunner().invoke(app, command).exit_code == ExitCode.OK, "finished seeds are not trained again"
    assert [(run / f"seed-{seed}" / "metrics.csv").read_text() for seed in (1, 2)] == figures


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--sanity", "--find-rate"], "--sanity and --find-rate do different things"),
        (["--find-rate", "--seeds", "2"], "--find-rate and --seeds do different things"),
        (["--sanity", "--fresh"], "--fresh does nothing with --sanity"),
    ],
)
def test_options_that_exclude_each_other_are_refused(options: list[str], reason: str, tmp_path: Path) -> None:
    (tmp_path / "config.toml").touch()
    result = CliRunner().invoke(app, ["train", str(tmp_path / "config.toml"), *options])
    assert result.exit_code == ExitCode.USAGE
    assert reason in result.stderr
