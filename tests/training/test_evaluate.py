from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.recognizer import Recognizer, load_recognizer
from glyphline.models.repository import pretrained_root
from glyphline.training.datasets.real import read_strips
from glyphline.training.datasets.samples import Sample
from glyphline.training.errors import DataError
from glyphline.training.evaluate import compared, evaluate, evaluate_command, find_set


@pytest.fixture(scope="module")
def recognizer() -> Recognizer:
    return load_recognizer("digits")


def test_rates_are_counted(recognizer: Recognizer, strips_folder: Path) -> None:
    samples = read_strips(strips_folder)
    good = evaluate(recognizer, samples, "strips", compare="digits")
    assert good.images == len(samples)
    wrong = [Sample(sample.pixels, sample.text + "0", sample.source) for sample in samples]
    bad = evaluate(recognizer, wrong, "wrong", compare="digits")
    assert bad.exact < good.exact
    assert bad.deletions >= good.deletions + len(samples) - 2
    assert {row[0] for row in bad.worst} <= {sample.source for sample in samples}
    assert sum(row.images for row in good.by_length) == len(samples)
    assert good.exact_interval[0] <= good.exact <= good.exact_interval[1]


def test_a_set_is_a_folder_or_a_name(strips_folder: Path, tmp_path: Path) -> None:
    assert find_set(str(strips_folder), None)[0].kind == "folder"
    assert find_set("meters", tmp_path)[1] == tmp_path
    with pytest.raises(DataError, match="neither a folder"):
        find_set("nothing", tmp_path)
    with pytest.raises(DataError, match="--data-root"):
        find_set("meters", None)


def test_a_report_names_the_errors(strips_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(strips_folder, tmp_path / "strips")
    labels = tmp_path / "strips" / "labels.tsv"
    names = [line.split("\t")[0] for line in labels.read_text().splitlines()]
    labels.write_text("".join(f"{name}\t99999999\n" for name in names))
    [result] = evaluate_command("digits", [str(tmp_path / "strips")], None, DecodingOptions(), 5, tmp_path / "report")
    assert result.images == 5
    assert result.exact == 0
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert report[0]["cer"] == pytest.approx(result.cer)
    assert (tmp_path / "report" / "worst-strips.png").read_bytes().startswith(b"\x89PNG")


def test_results_are_recorded_in_the_bundle(strips_folder: Path, tmp_path: Path) -> None:
    source = sorted((pretrained_root() / "digits").iterdir())[-1]
    copy = tmp_path / "digits" / source.name
    shutil.copytree(source, copy)
    [result] = evaluate_command(str(copy), [str(strips_folder)], None, DecodingOptions(), None, None, record=True)
    row = next(row for row in load_bundle(copy).manifest.evaluation if row.data_set == str(strips_folder))
    assert row.images == result.images
    assert row.exact == pytest.approx(result.exact, abs=1e-4)
    assert f"| {strips_folder} | {result.images} |" in (copy / "model_card.md").read_text()
    load_recognizer(str(copy))


def test_digits_alone_are_compared_where_asked() -> None:
    assert compared("1 234,50", "digits") == "123450"
    assert compared("1 234,50", "all") == "1 234,50"
