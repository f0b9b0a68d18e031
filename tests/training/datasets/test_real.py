from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from glyphline.models.labels import Label
from glyphline.training.datasets.labels import read_labels
from glyphline.training.datasets.real import BlankStrips, RealStrips, read_strips
from glyphline.training.errors import DataError


def test_folders_are_split_by_name(data_root: Path) -> None:
    names = {sample.source for sample in read_strips(data_root / "strips")}
    only = {sample.source for sample in read_strips(data_root / "strips", only="strip.*5")}
    rest = {sample.source for sample in read_strips(data_root / "strips", without="strip.*5")}
    assert only == {"strip345.png", "strip55.png"}
    assert only | rest == names
    assert not only & rest


def test_a_limit_takes_samples_of_all_parts(data_root: Path) -> None:
    assert [s.text for s in read_strips(data_root / "strips", limit=2)] == ["7", "20406"]


def test_what_is_missing_is_named(data_root: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"labels\.tsv is missing"):
        read_strips(tmp_path)
    with pytest.raises(DataError, match="no file name matches 'nothing'"):
        read_strips(data_root / "strips", only="nothing")
    (tmp_path / "labels.tsv").write_text("gone.png\t12\n")
    with pytest.raises(DataError, match=r"gone\.png"):
        read_strips(tmp_path)
    (tmp_path / "labels.tsv").write_text("a.png\t1\nb.png 2\n")
    with pytest.raises(DataError, match="line 2"):
        read_strips(tmp_path)
    (tmp_path / "labels.tsv").write_bytes(b"a.png\t\xe9\n")
    with pytest.raises(DataError, match=r"labels\.tsv: not UTF-8 at byte 6"):
        read_strips(tmp_path)
    (tmp_path / "labels.tsv").write_text("a.png\t1\n")
    (tmp_path / "a.png").write_text("not a picture")
    with pytest.raises(DataError, match=r"a\.png: "):
        read_strips(tmp_path)


def test_labels_are_those_of_label_files_everywhere(tmp_path: Path) -> None:
    (tmp_path / "labels.tsv").write_text("a.png\te\u0301\n", encoding="utf-8-sig")
    assert read_labels(tmp_path / "labels.tsv") == [Label(1, "a.png", "\u00e9")]


def test_real_strips_vary_and_keep_their_text(data_root: Path) -> None:
    strips = RealStrips(read_strips(data_root / "strips", only="strip7"))
    drawn = [strips.draw(np.random.default_rng(seed)) for seed in range(10)]
    assert {sample.text for sample in drawn} == {"7"}
    assert len({sample.pixels.tobytes() for sample in drawn}) == 10


def test_blank_strips_have_no_text() -> None:
    for seed in range(100):
        sample = BlankStrips().draw(np.random.default_rng(seed))
        assert sample.text == ""
        assert sample.pixels.size
