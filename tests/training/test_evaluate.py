from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.errors import ImageTooWideError
from glyphline.models.recognizer import load_recognizer
from glyphline.models.repository import pretrained_root
from glyphline.training.datasets.samples import Sample
from glyphline.training.errors import DataError
from glyphline.training.evaluate import (
    evaluate_command,
    find_set,
    label_models,
    portable_name,
    read_samples,
    record_results,
)
from glyphline.training.report.measure import measure
from glyphline.training.report.sheet import choose_errors


def test_what_cannot_be_read_is_an_error() -> None:
    recognizer = load_recognizer("digits")
    plain = Sample(np.full((40, 60), 255, dtype=np.uint8), "", "plain")
    assert [reading.text for reading in read_samples(recognizer, [plain, plain])] == ["", ""]
    with pytest.raises(ImageTooWideError):
        read_samples(recognizer, [plain, Sample(np.zeros((8, 4000), dtype=np.uint8), "", "banner")])


def test_a_set_is_a_path_or_a_name(strips_folder: Path, tmp_path: Path) -> None:
    assert find_set(str(strips_folder))[0].kind == "folder"
    assert find_set("meters", tmp_path)[1] == tmp_path
    (tmp_path / "lines.csv").write_text("file,text\n")
    assert find_set(str(tmp_path / "lines.csv"))[0].kind == "folder"
    with pytest.raises(DataError, match="neither a folder"):
        find_set("nothing", tmp_path)
    assert find_set("meters")[1] == Path("data")


def test_a_report_names_the_errors(strips_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(strips_folder, tmp_path / "strips")
    labels = tmp_path / "strips" / "labels.tsv"
    names = [line.split("\t")[0] for line in labels.read_text().splitlines()]
    labels.write_text("".join(f"{name}\t99999999\n" for name in names))
    folder = tmp_path / "report"
    [result] = evaluate_command(["digits"], [str(tmp_path / "strips")], tmp_path, DecodingOptions(), 5, folder)
    assert result.images == 5
    assert result.exact == 0
    [written] = json.loads((folder / "report.json").read_text())["results"]
    assert written["cer"] == pytest.approx(result.cer)
    page = (folder / "report.html").read_text()
    assert all(mistake.source in page for mistake in result.worst)
    assert page.count("data:image/png") >= 5


def test_several_models_read_the_same_strips(shipped_version: int, strips_folder: Path, tmp_path: Path) -> None:
    models, sets = ["digits", "digits-ctc"], [str(strips_folder)]
    results = evaluate_command(models, sets, tmp_path, DecodingOptions(), 4, tmp_path)
    assert [(each.model, each.images) for each in results] == [
        (f"digits {shipped_version}", 4),
        (f"digits-ctc {shipped_version}", 4),
    ]
    [comparison] = json.loads((tmp_path / "report.json").read_text())["comparisons"]
    assert comparison["difference"]["rates"]["exact"] == pytest.approx(results[1].exact - results[0].exact)


def test_models_of_one_name_are_told_apart(shipped_version: int, tmp_path: Path) -> None:
    source = sorted((pretrained_root() / "digits-ctc").iterdir())[-1]
    shutil.copytree(source, tmp_path / "copy")
    labels = label_models(
        [load_recognizer("digits-ctc"), load_recognizer(tmp_path / "copy"), load_recognizer("digits")]
    )
    assert labels == [
        f"digits-ctc {shipped_version} ({source})",
        f"digits-ctc {shipped_version} ({tmp_path / 'copy'})",
        f"digits {shipped_version}",
    ]


def test_results_are_recorded_in_the_bundle(strips_folder: Path, tmp_path: Path) -> None:
    source = sorted((pretrained_root() / "digits").iterdir())[-1]
    copy = tmp_path / "digits" / source.name
    shutil.copytree(source, copy)
    [result] = evaluate_command([str(copy)], [str(strips_folder)], tmp_path, DecodingOptions(), record=True)
    name = portable_name(str(strips_folder))
    row = next(row for row in load_bundle(copy).manifest.evaluation if row.data_set == name)
    assert row.images == result.images
    assert row.exact == pytest.approx(result.exact, abs=1e-4)
    assert f"| {name} | {result.images} |" in (copy / "model_card.md").read_text()
    load_recognizer(str(copy))
    assert row.straight_through is not None
    errors = [(folder / "errors.png").read_bytes() for folder in (source, copy)]
    assert errors[0] == errors[1], "the pictures of a folder are its owner's"


def test_errors_of_sets_that_may_be_given_away_are_shown(tmp_path: Path) -> None:
    source = sorted((pretrained_root() / "digits-ctc").iterdir())[-1]
    copy = tmp_path / "digits-ctc" / source.name
    shutil.copytree(source, copy)
    samples = [
        Sample(np.full((40, 60), 255, dtype=np.uint8), text, f"sheet {number}")
        for number, text in enumerate(["", "12", "3", "äöü"])
    ]
    results = [measure(load_recognizer(copy), samples, name) for name in ("first", "second")]
    assert [len(line.truth) for _, line in choose_errors(results, 4)] == [2, 3, 2, 3]
    record_results(load_recognizer(copy), results, DecodingOptions(), shown=[True, False])
    assert "![Errors](errors.png)" in (copy / "model_card.md").read_text()
    with Image.open(copy / "errors.png") as sheet:
        assert sheet.width > 800
    load_recognizer(copy)
