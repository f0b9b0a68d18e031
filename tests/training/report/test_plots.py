"""Plots name how many strips each mark stands for, and show no share of a handful."""

from __future__ import annotations

import re

import pytest

from glyphline.training.report.calibration import Bin
from glyphline.training.report.figures import Group
from glyphline.training.report.plots import FEWEST, draw_groups, draw_reliability


def words(svg: str) -> list[str]:
    return [word.strip() for word in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]


def group(label: str, images: int) -> Group:
    return Group(label, images, 0.5, (0.2, 0.8), 0.1)


@pytest.mark.parametrize("models", [1, 3])
def test_every_bar_has_its_number(models: int) -> None:
    groups = [group("1", 2), group("2", 1234), group("3", 40)]
    found = words(draw_groups({f"model {number}": groups for number in range(models)}, "characters"))
    assert {"2", "1,234", "40", "characters", "strips"} <= set(found)
    bins = [Bin(3, 0.1, 0.3, (0.1, 0.8)), Bin(987, 0.98, 0.97, (0.95, 0.98))]
    found = words(draw_reliability({f"model {number}": bins for number in range(models)}))
    assert found.count("987") == models


def test_a_handful_has_no_share() -> None:
    lone, some = [group("1", FEWEST - 1)], [group("1", FEWEST)]
    assert any("fewer than 5 strips" in word for word in words(draw_groups({"m": lone}, "x")))
    assert not any("fewer than 5" in word for word in words(draw_groups({"m": some}, "x")))
    few = [Bin(FEWEST - 1, 0.5, 0.5, (0.1, 0.9))]
    assert any("fewer than 5 strips" in word for word in words(draw_reliability({"m": few})))
