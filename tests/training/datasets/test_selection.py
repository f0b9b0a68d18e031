from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from glyphline.models.alphabet import Alphabet
from glyphline.models.errors import AlphabetError
from glyphline.models.image import ImageSettings
from glyphline.training.config import BlankConfig, FolderSetConfig, RealConfig, Source, TrainingConfig
from glyphline.training.datasets.batches import draw_pool
from glyphline.training.datasets.build import build_set, build_source
from glyphline.training.datasets.checks import REMEDY, check_data, describe_data
from glyphline.training.datasets.feasibility import available_frames, needed_frames
from glyphline.training.datasets.samples import SkipCounts
from glyphline.training.datasets.selection import fold_of, read_selected
from glyphline.training.errors import DataError


def test_folds_part_a_folder_and_keep_groups_together(strips_folder: Path) -> None:
    def names(**keys: object) -> set[str]:
        config = FolderSetConfig.model_validate({"kind": "folder", "path": "strips", **keys})
        return {image.source for image in read_selected(config, strips_folder.parent)}

    everything = names()
    for group in ("", "^([a-z]+)_"):
        parts = [
            names(folds=3, fold=fold, held_out=True, group=group)
            for fold in range(3)
            if group == "" or fold in {fold_of(name, 3, group) for name in everything}
        ]
        assert set().union(*parts) == everything
        assert sum(map(len, parts)) == len(everything)
        fold = fold_of("mnist_3.png", 3, group)
        assert (
            names(folds=3, fold=fold, held_out=True, group=group) | names(folds=3, fold=fold, group=group) == everything
        )
    kinds = [{name.split("_")[0] for name in part} for part in parts]
    assert sum(map(len, kinds)) == len(set().union(*kinds)), "no group is in two folds"
    assert len(names(limit=5)) == 5


def test_marks_of_a_transcriber_are_taken_out(tmp_path: Path, strips_folder: Path) -> None:
    picture = next(strips_folder.glob("*.png"))
    shutil.copy(picture, tmp_path / "a.png")
    (tmp_path / "labels.tsv").write_text("a.png\t_Chez _ A_B\n", encoding="utf-8")
    config = FolderSetConfig(kind="folder", path=str(tmp_path), drop="_")
    assert [image.text for image in read_selected(config, Path())] == ["Chez AB"]


def test_a_fold_is_the_same_on_every_machine() -> None:
    assert [fold_of(f"strip{number}.png", 10) for number in range(8)] == [6, 7, 8, 2, 6, 6, 7, 5]


@pytest.mark.parametrize(
    "keys",
    [{"folds": 1}, {"folds": 3, "fold": 3}, {"held_out": True}, {"group": "x"}, {"only": "("}, {"format": "xls"}],
)
def test_what_cannot_be_is_refused(keys: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        RealConfig.model_validate({"kind": "real", "path": "strips", **keys})


@pytest.fixture
def faulty(tmp_path: Path, strips_folder: Path) -> Path:
    """A data set with one of each fault."""
    good = (strips_folder / "mnist_0011.png").read_bytes()
    for name in ("good", "empty", "unknown"):
        (tmp_path / f"{name}.png").write_bytes(good)
    (tmp_path / "corrupt.png").write_bytes(good[:70])
    (tmp_path / "labels.tsv").write_text("good.png\t0011\nempty.png\t\nunknown.png\t00x1\ncorrupt.png\t1\n")
    return tmp_path


def config_of(**keys: object) -> TrainingConfig:
    data = {"path": ".", **keys}
    return TrainingConfig.model_validate(
        {
            "name": "x",
            "alphabet": "01",
            "sources": [{"kind": "real", **data}],
            "validation": {"v": {"kind": "folder", "only": "good|unknown", **data}},
        }
    )


def test_all_that_is_wrong_is_told_at_once(faulty: Path) -> None:
    with (faulty / "labels.tsv").open("a") as labels:
        labels.write("gone.png\t1\n")
    config = config_of().model_dump() | {"validation": {"v": {"kind": "folder", "path": "none"}}}
    config["sources"] = [*config["sources"], {"kind": "rendered", "fonts": "fonts"}]
    with pytest.raises(DataError) as error:
        check_data(TrainingConfig.model_validate(config), faulty, Alphabet("01"))
    first, *rest = str(error.value).splitlines()
    assert first.startswith("4 things are to be put right")
    for part in ("no font below", "none does not exist", "gone.png (", "'x' (U+0078) in line 3"):
        assert sum(part in line for line in rest) == 1, part
    assert rest[-1].endswith(REMEDY)
    assert "unknown_characters" in REMEDY
    # What is not taken need not be there.
    only = config_of(only="good|empty")
    assert check_data(only, faulty, Alphabet("01")) == {"source 1": 2, "validation v": 2}
    assert describe_data(only, {"source 1": 1234, "validation v": 2}) == (
        "x: trained on real . (1,234 strips); validated on v (2 strips)"
    )


def test_each_fault_gets_its_treatment(faulty: Path) -> None:
    alphabet = Alphabet("01")
    with pytest.raises(AlphabetError, match=r"labels\.tsv: .*'x' \(U\+0078\) in line 3"):
        check_data(config_of(), faulty, alphabet)
    config = config_of(unknown_characters="skip", allow_empty=False)
    check_data(config, faulty, alphabet)
    assert check_data(config, faulty, alphabet) == {"source 1": 2, "validation v": 1}
    skips = SkipCounts()
    source = build_source(config.sources[0], faulty, alphabet, skips)
    assert skips.counts == {"empty label": 1, "unknown character": 1}
    drawn = SkipCounts()
    pool = draw_pool([source], np.ones(1), alphabet, ImageSettings(max_width=80), (1, 2), 40, drawn)
    skips.merge(drawn)
    assert skips.counts["unreadable"] > 5
    assert skips.counts["too wide"] > 0
    assert skips.examples["unreadable"] == ["corrupt.png"]
    assert len(pool) + drawn.counts["unreadable"] + drawn.counts["too wide"] == 40
    assert "unknown character (unknown.png)" in str(skips)
    assert [s.text for s in build_set(config.validation["v"], faulty, alphabet)] == ["0011"]
    with pytest.raises(DataError, match=r"corrupt\.png"):
        build_set(FolderSetConfig(kind="folder", path=".", only="corrupt"), faulty)


def test_frames_that_a_text_needs() -> None:
    assert needed_frames([]) == 0
    assert needed_frames([1, 2, 3]) == 3
    assert needed_frames([1, 1, 2, 2, 2]) == 8
    assert available_frames(41, 2) == 22


def test_the_same_seed_gives_the_same_strips_as_ever(strips_folder: Path) -> None:
    sources: list[Source] = [
        RealConfig(kind="real", path="strips", only="mnist_|semeion_"),
        BlankConfig(kind="blank"),
        RealConfig(kind="real", path="strips", without="mnist_|meter_|register_"),
    ]
    built = [build_source(source, strips_folder.parent) for source in sources]
    weights = np.array([0.5, 0.1, 0.4])
    pool = draw_pool(built, weights, Alphabet("0123456789.,:/-+ "), ImageSettings(), (7, 3), 24)
    assert [len(strip.symbols) for strip in pool] == [
        5, 3, 1, 5, 5, 4, 4, 5, 4, 5, 5, 1, 7, 5, 3, 5, 5, 0, 1, 4, 4, 4, 3, 3,
    ]  # fmt: skip
    assert [strip.pixels.shape[1] for strip in pool] == [
        173, 103, 53, 162, 101, 154, 149, 158, 155, 159, 190, 55, 102, 161, 123, 160, 185, 142, 51, 138, 138, 155, 89,
        109,
    ]  # fmt: skip
    means = [float(strip.pixels.mean()) for strip in pool]
    assert means == pytest.approx(
        [
            34.0, 42.0, 12.5, 214.0, 222.9, 47.9, 35.8, 32.7, 47.2, 216.5, 47.8, 10.4, 22.1, 38.8, 37.2, 42.1, 41.3,
            207.9, 13.2, 50.4, 39.3, 49.5, 43.4, 35.5,
        ],
        abs=1.5,
    )  # fmt: skip
