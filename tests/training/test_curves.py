"""Curves of few and of many points have labels that can be read."""

from __future__ import annotations

import pytest

from glyphline.training.curves import curves_of


def rows(losses: list[float], strips: float, **more: float) -> list[dict[str, float]]:
    return [
        {"strips": strips * n, "train_loss": loss, "train_ctc": loss, "m_ctc_exact": 1 - loss / 10, **more}
        for n, loss in enumerate(losses, 1)
    ]


@pytest.mark.parametrize("losses", [[3.9], [3.9, 3.1], [3.9, 0.4], [4.0, 0.9, 0.05, 0.004]])
def test_axes_have_several_plain_labels(losses: list[float]) -> None:
    figure = curves_of(rows(losses, 1024))
    figure.draw_without_rendering()
    for axes in figure.axes[:2]:
        low, high = axes.get_ylim()
        labels = [
            tick.label1.get_text()
            for tick in [*axes.yaxis.get_major_ticks(), *axes.yaxis.get_minor_ticks()]
            if low <= tick.get_loc() <= high and tick.label1.get_text()
        ]
        assert len(labels) >= 2, labels
        assert all(float(label) >= -1 for label in labels)


def test_the_loss_of_an_only_head_is_drawn_once() -> None:
    assert [line.get_label() for line in curves_of(rows([3, 2], 100)).axes[0].lines] == ["ctc"]
    two = curves_of(rows([3, 2], 100, train_attention=1.0))
    assert [line.get_label() for line in two.axes[0].lines] == ["loss", "ctc", "attention"]


def test_few_strips_are_not_counted_in_thousands() -> None:
    few, many = curves_of(rows([3, 2], 1024)), curves_of(rows([3, 2], 51_200))
    assert [figure.axes[0].get_xlabel() for figure in (few, many)] == ["strips seen", "thousand strips seen"]
    assert list(few.axes[0].lines[0].get_xdata()) == [1024, 2048]  # type: ignore[arg-type]
    assert list(many.axes[0].lines[0].get_xdata()) == [51.2, 102.4]  # type: ignore[arg-type]
