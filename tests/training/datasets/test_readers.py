from __future__ import annotations

import json
import pickle
import tarfile
import unicodedata
from collections.abc import Callable
from pathlib import Path

import lmdb
import numpy as np
import pyarrow as arrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from glyphline.models.image import read_image
from glyphline.training.datasets.readers import FORMATS, LabelledImage, read_dataset, recognise
from glyphline.training.datasets.samples import Grey
from glyphline.training.datasets.writers import Target, open_writer
from glyphline.training.errors import DataError

Png = Callable[[Grey], bytes]

# Any text of one line: in normal form C it is what is read back.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=12)
PICTURES = st.tuples(st.integers(1, 9), st.integers(1, 24), st.integers(0, 2**32 - 1)).map(
    lambda drawn: np.random.default_rng(drawn[2]).integers(0, 256, drawn[:2], np.uint8)
)


def samples_of(images: list[LabelledImage]) -> list[tuple[str, bytes]]:
    return [(image.text, image.load().tobytes()) for image in images]


@pytest.fixture
def folder(tmp_path: Path, png: Png) -> Path:
    """Three pictures without labels."""
    for name in ("a.png", "b.png", "c.png"):
        (tmp_path / name).write_bytes(png(np.full((8, 20), ord(name[0]), np.uint8)))
    return tmp_path


@pytest.mark.parametrize("target", ["folder", "lmdb", "webdataset", "parquet"])
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(samples=st.lists(st.tuples(PICTURES, TEXTS), min_size=1, max_size=6))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, png: Png, target: Target, samples: list[tuple[Grey, str]]
) -> None:
    path = tmp_path_factory.mktemp("written") / "set"
    with open_writer(path, target, shard_size=2) as writer:
        for number, (pixels, text) in enumerate(samples):
            writer.add(f"../{number % 2}/a:b.png", png(pixels), text)
    images = read_dataset(path)
    assert len({image.source for image in images}) == len(samples)
    normal = [(unicodedata.normalize("NFC", text), pixels.tobytes()) for pixels, text in samples]
    assert samples_of(images) == normal
    copies: list[LabelledImage] = pickle.loads(pickle.dumps(images))
    assert samples_of(copies) == normal, "processes that make strips are given copies"
    assert [image.size() for image in images] == [pixels.shape[::-1] for pixels, _ in samples]


def test_a_folder_is_not_written_into_another(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").touch()
    with pytest.raises(DataError, match="not empty"):
        open_writer(tmp_path, "folder")


def test_a_text_of_two_lines_is_refused_where_it_does_not_fit(tmp_path: Path, png: Png) -> None:
    targets: tuple[Target, ...] = ("folder", "webdataset")
    for target in targets:
        with open_writer(tmp_path / target, target) as writer, pytest.raises(DataError, match="several"):
            writer.add("a", png(np.zeros((2, 2), np.uint8)), "two\nlines")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("labels.csv", 'image,text\na.png,"one, ""two"""\nb.png,\n'),
        ("labels.csv", 'text;filename;page\n"one, ""two""";a.png;3\n;b.png;4\n'),
        ("metadata.csv", '\ufefffile_name,label\r\na.png,"one, ""two"""\r\nb.png,\r\n'),
        ("labels.jsonl", '{"image": "a.png", "text": "one, \\"two\\""}\n\n{"image": "b.png", "text": ""}\n'),
        ("metadata.jsonl", '{"file_name": "a.png", "label": "one, \\"two\\""}\n{"file_name": "b.png", "label": ""}'),
        ("labels.tsv", 'a.png\tone, "two"\nb.png\t\n'),
        ("labels.tsv", 'file_name\ttext\na.png\tone, "two"\nb.png\t\n'),
    ],
)
def test_label_files_of_every_kind(folder: Path, name: str, content: str) -> None:
    (folder / name).write_text(content, encoding="utf-8")
    images = read_dataset(folder)
    assert [(image.source, image.text) for image in images] == [("a.png", 'one, "two"'), ("b.png", "")]
    assert int(images[0].load()[0, 0]) == ord("a")
    assert samples_of(read_dataset(folder / name)) == samples_of(images), "the file itself is the same set"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("labels.csv", "picture,words\na.png,1\n", r"labels\.csv has no column for the picture.*'picture', 'words'"),
        ("labels.csv", 'image,text\na.png,"1\n', r"labels\.csv, line 2: not CSV"),
        ("labels.csv", "image,text\na.png\n", r"labels\.csv, line 2: 'text' is no text"),
        ("labels.jsonl", '{"image": "a.png", "text": "1"}\n{"image":', r"labels\.jsonl, line 2: not JSON"),
        ("labels.jsonl", '["a.png", "1"]', "line 1: a line is an object"),
        ("labels.jsonl", '{"image": "a.png", "text": null}', "line 1: 'text' is no text: None"),
        ("labels.jsonl", '{"image": "gone.png", "text": "1"}', r"gone\.png .*line 1"),
        ("labels.csv", "image,text\n", "holds no labelled picture; there are 3 .png, 1 .csv"),
    ],
)
def test_faults_are_named_with_their_lines(folder: Path, name: str, content: str, message: str) -> None:
    (folder / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_dataset(folder)


def test_columns_of_other_names_are_given(folder: Path) -> None:
    (folder / "labels.csv").write_text("Bild,Wortlaut\na.png,eins\n")
    assert [image.text for image in read_dataset(folder, image_key="bild", text_key="Wortlaut")] == ["eins"]
    with pytest.raises(DataError, match="no column called 'x'"):
        read_dataset(folder, image_key="x")


def test_side_files(folder: Path, png: Png) -> None:
    (folder / "a.gt.txt").write_text("eins\n", encoding="utf-8-sig")
    (folder / "deep").mkdir()
    (folder / "deep" / "x.bin.png").write_bytes(png(np.zeros((3, 3), np.uint8)))
    (folder / "deep" / "x.gt.txt").write_text("")
    assert [(image.source, image.text) for image in read_dataset(folder)] == [("a.png", "eins"), ("deep/x.bin.png", "")]
    (folder / "b.gt.txt").write_text("two\nlines")
    with pytest.raises(DataError, match=r"b\.gt\.txt: a picture is one line of text; this file has 2"):
        read_dataset(folder)
    (folder / "b.gt.txt").rename(folder / "gone.gt.txt")
    with pytest.raises(DataError, match=r"gone\.gt\.txt has no picture beside it"):
        read_dataset(folder)


def test_what_is_not_recognised_is_described(folder: Path) -> None:
    with pytest.raises(DataError, match=r"not recognised; there are 3 \.png below it.*labels\.tsv") as error:
        read_dataset(folder)
    assert all(f"({name})" in str(error.value) for name in FORMATS)
    with pytest.raises(DataError, match="does not exist"):
        read_dataset(folder / "none")
    (folder / "notes.docx").write_bytes(b"1234")
    with pytest.raises(DataError, match=r"a file of 4 bytes that ends in \.docx"):
        recognise(folder / "notes.docx")


def test_lmdb_of_another_layout_is_refused(tmp_path: Path) -> None:
    def write(folder: str, values: dict[bytes, bytes]) -> Path:
        with lmdb.open(str(tmp_path / folder), map_size=2**20) as environment, environment.begin(write=True) as change:
            for key, value in values.items():
                change.put(key, value)
        return tmp_path / folder

    with pytest.raises(DataError, match="no key num-samples"):
        read_dataset(write("other", {b"x": b"y"}))
    with pytest.raises(DataError, match="states 2 samples, but has no label-000000002"):
        read_dataset(write("short", {b"num-samples": b"2", b"label-000000001": b"a"}))
    with pytest.raises(DataError, match="label-000000001 is not UTF-8"):
        read_dataset(write("latin", {b"num-samples": b"1", b"label-000000001": b"\xe9"}))
    [image] = read_dataset(write("bare", {b"num-samples": b"1", b"label-000000001": b"a"}))
    with pytest.raises(DataError, match="no image-000000001"):
        image.load()


def write_tar(path: Path, members: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            file = path.with_name("member")
            file.write_bytes(content)
            archive.add(file, name)
            file.unlink()
    return path


def test_tar_shards_are_read_in_place(tmp_path: Path, png: Png) -> None:
    picture = png(np.full((4, 9), 7, np.uint8))
    record = json.dumps({"label": "zwei", "page": 3}).encode()
    members = {"x/1.png": picture, "x/1.txt": b"eins\n", "x/2.seg.png": picture, "x/2.json": record, "README": b"?"}
    write_tar(tmp_path / "b.tar", members)
    write_tar(tmp_path / "a.tar", {"0.png": picture, "0.txt": b"null"})
    assert [(image.source, image.text) for image in read_dataset(tmp_path)] == [
        ("a.tar/0.png", "null"),
        ("b.tar/x/1.png", "eins"),
        ("b.tar/x/2.seg.png", "zwei"),
    ]


@pytest.mark.parametrize(
    ("members", "mode", "message"),
    [
        ({"1.txt": b"a"}, "w", "sample 1: a sample has one picture"),
        ({"1.png": b"", "1.jpg": b"", "1.txt": b"a"}, "w", "sample 1: a sample has one picture"),
        ({"1.png": b""}, "w", r"no \.txt and no \.json"),
        ({"1.png": b"", "1.json": b"{"}, "w", "not JSON"),
        ({"1.png": b"", "1.txt": b"\xff"}, "w", r"1\.txt is not UTF-8"),
        ({"1.png": b"", "1.txt": b"a"}, "w:gz", "no tar file that can be read in part"),
    ],
)
def test_faults_of_shards_are_named(tmp_path: Path, members: dict[str, bytes], mode: str, message: str) -> None:
    write_tar(tmp_path / "a.tar", members, mode)
    with pytest.raises(DataError, match=message):
        read_dataset(tmp_path)


def test_parquet_as_hugging_face_writes_it(tmp_path: Path, png: Png) -> None:
    picture = png(np.full((4, 9), 7, np.uint8))
    (tmp_path / "side.png").write_bytes(picture)
    features = {"info": {"features": {"label": {"names": ["null", "eins"], "_type": "ClassLabel"}}}}
    images = [{"bytes": picture, "path": "a.png"}, {"bytes": None, "path": "side.png"}, {"bytes": None, "path": None}]
    table = arrow.table({"image": images, "label": [0, 1, 1]})
    table = table.replace_schema_metadata({"huggingface": json.dumps(features)})
    parquet.write_table(table, tmp_path / "train-00000-of-00001.parquet", row_group_size=2)
    first, second, third = read_dataset(tmp_path)
    assert (first.text, second.text, third.line) == ("null", "eins", 3)
    assert first.load().tolist() == second.load().tolist() == read_image(picture).pixels.tolist()
    with pytest.raises(DataError, match="has no picture"):
        third.load()


def test_parquet_without_pictures_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"image": [1.5], "text": ["a"]}), path)
    with pytest.raises(DataError, match="'image' is double, and neither bytes"):
        read_dataset(path)
    path.write_bytes(b"PAR1")
    with pytest.raises(DataError, match="no Parquet file"):
        read_dataset(path)
