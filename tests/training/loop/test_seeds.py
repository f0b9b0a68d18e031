from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.training.errors import DivergedError
from glyphline.training.loop import seeds
from glyphline.training.loop.folder import with_seed
from glyphline.training.loop.seeds import SeedResult, read_figures, spread_figures, train_seeds
from glyphline.training.metrics_log import MetricsLog

MakeConfig = Callable[..., Path]


def test_a_spread_is_mean_and_sample_deviation() -> None:
    results = [SeedResult(seed, f"seed-{seed}", {"cer": value}) for seed, value in ((1, 0.1), (2, 0.2), (3, 0.6))]
    spread = spread_figures(results)["cer"]
    assert spread.mean == pytest.approx(0.3)
    assert spread.deviation == pytest.approx(0.2645751)
    assert spread.values == (0.1, 0.2, 0.6)
    assert spread_figures(results[:1])["cer"].deviation is None
    failed = SeedResult(4, "seed-4", {}, "the loss is nan")
    assert spread_figures([*results, failed])["cer"] == spread


def test_figures_are_those_of_the_last_validation_and_the_best(tmp_path: Path) -> None:
    assert read_figures(tmp_path) == {}
    log = MetricsLog(tmp_path / "metrics.csv")
    log.append({"epoch": 0, "a_ctc_exact": 0.9, "a_ctc_cer": 0.02, "validation_error": 0.1, "train_ctc": 3})
    log.append({"epoch": 1, "a_ctc_exact": 0.8, "a_ctc_cer": 0.03, "validation_error": 0.2, "train_ctc": 2})
    log.append({"epoch": 2, "train_ctc": 1})
    assert read_figures(tmp_path) == {
        "a_ctc_exact": 0.8,
        "a_ctc_cer": 0.03,
        "validation_error": 0.2,
        "best_validation_error": 0.1,
    }


@given(st.integers(0, 2**31), st.sampled_from(["seed = 7", "seed=1_000  # as the last one", "", "task = 'seed = 5'"]))
def test_the_seed_of_a_configuration_is_replaced_and_nothing_else(seed: int, line: str) -> None:
    text = f'name = "x"\n{line}\n[validation.a]\nkind = "drawn"\nseed = 9\n'
    changed = tomllib.loads(with_seed(text, seed))
    assert changed == tomllib.loads(text) | {"seed": seed}


def test_every_seed_has_a_run_and_a_diverged_one_stops_no_other(
    tmp_path: Path, make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def train(config: Path, root: Path, run: Path, resume: bool, start_from: Path | None, seed: int) -> None:
        asked.append((run.name, resume, seed))
        if seed == 2:
            raise DivergedError("the loss is nan at step 7")
        MetricsLog(run / "metrics.csv").append({"epoch": 0, "a_ctc_exact": seed / 4, "validation_error": 1 - seed / 4})

    for seed in (1, 2, 3):
        (tmp_path / "runs" / f"seed-{seed}").mkdir(parents=True)
    monkeypatch.setattr(seeds, "train", train)
    results = train_seeds(make_config(tmp_path), tmp_path, tmp_path / "runs", 3)
    assert asked == [("seed-1", True, 1), ("seed-2", True, 2), ("seed-3", True, 3)]
    assert [result.failure for result in results] == ["", "the loss is nan at step 7", ""]
    record = json.loads((tmp_path / "runs" / "seeds.json").read_text())
    assert [seed["seed"] for seed in record["seeds"]] == [1, 2, 3]
    assert record["spread"]["a_ctc_exact"]["mean"] == pytest.approx(0.5)
    assert record["spread"]["a_ctc_exact"]["values"] == [0.25, 0.75]
