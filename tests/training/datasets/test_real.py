from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from glyphline.models.image import ImageSettings, normalised_width
from glyphline.models.labels import Label
from glyphline.training.augment import Wear
from glyphline.training.config import BlankConfig
from glyphline.training.datasets.build import build_source
from glyphline.training.datasets.labels import read_labels
from glyphline.training.datasets.readers import read_dataset
from glyphline.training.datasets.real import TALLEST, BlankStrips, PixelCache, RealStrips, read_strips
from glyphline.training.datasets.samples import UnusableSampleError
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
    with pytest.raises(DataError, match=r"not recognised; the folder is empty.*labels\.tsv"):
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
    images = [image for image in read_dataset(data_root / "strips") if image.text == "7"]
    strips = RealStrips(images)
    drawn = [strips.draw(np.random.default_rng(seed)) for seed in range(10)]
    assert {sample.text for sample in drawn} == {"7"}
    assert len({sample.pixels.tobytes() for sample in drawn}) == 10


def test_pictures_are_decoded_when_they_are_drawn_and_damaged_ones_are_named(data_root: Path, tmp_path: Path) -> None:
    for name, content in (("good.png", (data_root / "strips" / "strip7.png").read_bytes()), ("bad.png", b"\x89PNG")):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "labels.tsv").write_text("good.png\t7\nbad.png\t8\n")
    strips = RealStrips(read_dataset(tmp_path))
    assert strips.cache.held == 0
    assert strips.pixels(0) is strips.pixels(0), "kept"
    with pytest.raises(UnusableSampleError, match=r"labels\.tsv, line 2: bad\.png") as error:
        strips.pixels(1)
    assert (error.value.reason, error.value.source) == ("unreadable", "bad.png")


def test_the_cache_is_small() -> None:
    cache = PixelCache(250)
    for key in range(5):
        cache.put(key, np.zeros((10, 10), np.uint8))
        cache.get(0)
    assert cache.held <= 250
    assert cache.get(0) is not None, "what was used last stays"
    assert cache.get(1) is None


def test_high_scans_are_brought_to_a_height_that_wear_is_made_for(tmp_path: Path) -> None:
    Image.new("L", (600, 300), 200).save(tmp_path / "high.png")
    (tmp_path / "labels.tsv").write_text("high.png\tx\n")
    assert RealStrips(read_dataset(tmp_path)).pixels(0).shape == (TALLEST, 2 * TALLEST)


def test_without_wear_a_strip_stays_what_it_is(data_root: Path) -> None:
    strips = RealStrips(read_dataset(data_root / "strips"), Wear(slant=0, rotation=0, elastic=0, inverted=0, grime=0))
    for seed in range(10):
        random = np.random.default_rng(seed)
        expected = strips.pixels(int(np.random.default_rng(seed).integers(len(strips.images))))
        drawn = strips.draw(random).pixels
        assert abs(float(drawn.mean()) - float(expected.mean())) < 12, "no light, noise or inversion was added"


def test_blank_strips_have_no_text() -> None:
    for seed in range(100):
        sample = BlankStrips().draw(np.random.default_rng(seed))
        assert sample.text == ""
        assert sample.pixels.size


def test_a_blank_strip_is_never_too_wide_for_the_network(tmp_path: Path) -> None:
    image = ImageSettings(height=32, max_width=64)
    source = build_source(BlankConfig(kind="blank"), tmp_path, image=image)
    widths = []
    for seed in range(100):
        height, width = source.draw(np.random.default_rng(seed)).pixels.shape
        widths.append(normalised_width(width, height, image))  # raises where it is too wide
    assert max(widths) > 60
    assert min(widths) < 40
