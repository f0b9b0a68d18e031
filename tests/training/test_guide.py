"""A language model of a bundle's own: taken up only where it helps, and found by whoever leaves all to the bundle."""

import shutil
from pathlib import Path

import pytest
from PIL import Image

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding.options import DecodingOptions
from glyphline.models.recognizer import Recognizer
from glyphline.models.repository import pretrained_root
from glyphline.training.errors import DataError, ExportError
from glyphline.training.guide import LANGUAGE_MODEL_NAME, guide
from glyphline.training.language_model import count_and_smooth, write_arpa
from glyphline.training.quantise import quantise


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A copy of a shipped bundle with a CTC head."""
    source = max((pretrained_root() / "digits-ctc").iterdir())
    return Path(shutil.copytree(source, tmp_path / "digits-ctc" / source.name))


@pytest.fixture
def worn(strips_folder: Path, tmp_path: Path) -> Path:
    """The strips of the tests in so few pixels that not all can be read."""
    folder = tmp_path / "worn"
    folder.mkdir()
    shutil.copy(strips_folder / "labels.tsv", folder)
    for file in strips_folder.glob("*_*.*"):
        with Image.open(file) as image:
            image.convert("L").resize((max(4, round(image.width * 9 / image.height)), 9)).save(folder / file.name)
    return folder


def write_model(texts: list[str], file: Path) -> Path:
    write_arpa(count_and_smooth(texts, 4), file)
    return file


def test_it_is_taken_up_where_it_helps(bundle: Path, worn: Path, tmp_path: Path) -> None:
    labels = [line.split("\t")[1] for line in (worn / "labels.tsv").read_text("utf-8").splitlines()]
    before = load_bundle(bundle).manifest.files
    sevens = write_model(["7", "77", "777"], tmp_path / "sevens.arpa")
    with pytest.raises(ExportError, match="does not help, and the bundle is as it was"):
        guide(bundle, sevens, [str(worn)], Path("data"), weight=3.0, length_bonus=0.0)
    (tmp_path / "bad.arpa").write_text("nothing")
    with pytest.raises(DataError, match=r"language model: .*bad\.arpa.*no ARPA file"):
        guide(bundle, tmp_path / "bad.arpa", [str(worn)], Path("data"), weight=0.3, length_bonus=0.0)
    assert load_bundle(bundle).manifest.files == before
    assert [entry.name for entry in bundle.parent.iterdir()] == [bundle.name]

    quantise(bundle, [str(worn)], Path("data"), margin=0.1)
    # A model of the very labels, to be sure that it helps.
    suiting = write_model(labels, tmp_path / "suiting.arpa")
    found = guide(bundle, suiting, [str(worn)], Path("data"), weight=0.5, length_bonus=0.5)
    assert found.cer < found.cer_without
    assert found.images == len(labels)
    made = load_bundle(bundle)
    assert made.manifest.decoder.language_model == LANGUAGE_MODEL_NAME
    assert "language_model_weight" not in (bundle / "model_card.md").read_text()
    assert "guided by the language model" in (bundle / "model_card.md").read_text()
    recognizer = Recognizer.load(made)
    contents = [file.read_bytes() for file in sorted(worn.glob("*_*.*"))]
    own, greedy = (recognizer.recognize(contents, DecodingOptions(decoder)) for decoder in (None, "greedy"))
    assert [getattr(one, "text", None) for one in own] != [getattr(one, "text", None) for one in greedy]
    assert Recognizer.load(made, precision="int8").language_model == recognizer.language_model
