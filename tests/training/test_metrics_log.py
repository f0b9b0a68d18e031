from __future__ import annotations

from pathlib import Path

from glyphline.training.curves import draw_curves
from glyphline.training.metrics_log import MetricsLog


def test_columns_grow_and_rows_of_a_resumed_epoch_are_replaced(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.csv")
    assert log.rows() == []
    log.append({"epoch": 0, "strips": 10, "train_loss": 2.5})
    log.append({"epoch": 1, "strips": 20, "train_loss": 1.5, "registers_ctc_exact": 0.5})
    log.append({"epoch": 1, "strips": 21, "train_loss": 1.25})
    assert log.rows() == [
        {"epoch": 0, "strips": 10, "train_loss": 2.5},
        {"epoch": 1, "strips": 21, "train_loss": 1.25},
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.csv"]


def test_curves_are_drawn(tmp_path: Path) -> None:
    rows = [{"strips": 1000.0 * n, "train_loss": 1 / n, "registers_ctc_exact": 1 - 1 / n} for n in range(1, 5)]
    draw_curves(rows, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    draw_curves([], tmp_path / "empty.png")
    assert (tmp_path / "empty.png").exists()
