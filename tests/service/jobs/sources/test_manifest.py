from __future__ import annotations

import json
from pathlib import Path

import pytest

from glyphline.models.image import ImageLimits
from glyphline.service.jobs import InputError, Item
from glyphline.service.jobs.pictures import CutPicture, FilePicture, RefusedPicture, TiffPicture, fetch, picture_of
from glyphline.service.jobs.sources.found import items_of


def listed(path: Path, content: str | bytes) -> list[Item]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(items_of([str(path)]))


def test_columns_in_any_order(tmp_path: Path) -> None:
    items = listed(
        tmp_path / "list.csv",
        'ID,text,File_Name,x,y,w,h\n1,"a, b",a.png,,,,\n2,,sub/b.png,1,2,30,10\n,,/c.png,,,,\n',
    )
    first, second, third = items
    assert (first.id, first.reference, first.picture) == ("1", "a, b", FilePicture(str(tmp_path / "a.png")))
    page = FilePicture(str(tmp_path / "sub/b.png"))
    assert second.picture == CutPicture(page, ((1.0, 2.0), (30.0, 11.0)))
    assert (third.id, third.picture) == ("/c.png", FilePicture("/c.png"))


def test_json_lines_and_pages(tmp_path: Path) -> None:
    lines = [
        {"path": "a.tif", "page": 3, "reference": "x"},
        {"path": "a.tif", "crop": [0, 0, 5, 5]},
        {"uri": "s3://bucket/b.png", "id": 7, "label": 1250},
    ]
    items = listed(tmp_path / "list.jsonl", "\ufeff" + "\n".join(map(json.dumps, lines)) + "\n\n")
    source = str(tmp_path / "a.tif")
    assert items[0] == Item(f"{source}#3", TiffPicture(source, 3), "x")
    assert items[1].id == f"{source}#0,0,5,5"
    assert items[2] == Item("7", FilePicture("s3://bucket/b.png"), "1250")


def test_labels_are_a_list_too(tmp_path: Path) -> None:
    items = listed(tmp_path / "labels.tsv", 'a.png\t12"\nb.png\t\n')
    assert [(item.picture.source, item.reference) for item in items] == [
        (str(tmp_path / "a.png"), '12"'),
        (str(tmp_path / "b.png"), ""),
    ]


def test_web_addresses_are_read_only_when_that_is_allowed(tmp_path: Path) -> None:
    (item,) = listed(tmp_path / "list.csv", "path\nhttp://example.com/a.png\n")
    assert isinstance(item.picture, RefusedPicture)
    assert item.picture.code == "address_refused"
    (item,) = items_of([str(tmp_path / "list.csv")], allow_http=True)
    assert isinstance(item.picture, FilePicture)
    with pytest.raises(InputError, match="--allow-http"):
        list(items_of(["https://example.com/a.png"]))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.csv", "name,text\na.png,1\n", "no heading with a column for the picture"),
        ("a.tsv", "a.png\t1\t2\n", "no heading"),
        ("a.csv", "path,x\na.png,1\n", "line 2: a crop is four numbers"),
        ("a.csv", "path,x,y,w,h\na.png,1,1,0,5\n", "line 2: a crop is four numbers"),
        ("a.csv", "path,x,y,w,h\na.png,one,1,1,5\n", "line 2: x is 'one'"),
        ("a.csv", "path,page\na.png,0\n", "page is '0'"),
        ("a.csv", "path,id\na.png,1,2\n", "line 2: has 3 values for 2 columns"),
        ("a.csv", "path,id\n,1\n", "line 2: names no picture"),
        ("a.jsonl", '{"path": 1}\n', "line 1: names no picture"),
        ("a.jsonl", '{"path": "a.png", "text": 12.50}\n', 'line 1: text is 12.5, which is no text; write .* "12.50"'),
        ("a.jsonl", '{"path": "a.png"}\n{"path": "b.png", "label": true}\n', "line 2: label is True, which is no text"),
        ("a.jsonl", '{"path": "a.png", "id": 1.0}\n', "line 1: id is 1.0, which is no text"),
        ("a.jsonl", '{"path": "a.png", "text": "\\ud800"}\n', "line 1: text has .* half a character"),
        ("a.jsonl", '{"path": "\\ud800.png"}\n', "line 1: the picture's name has .* half a character"),
        ("a.jsonl", "{\n", "line 1: not JSON"),
        ("a.jsonl", "[]\n", "line 1: should be a JSON object"),
        ("a.csv", b"path\n\xff.png\n", "not a list that can be read"),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path: Path, name: str, content: str | bytes, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        listed(tmp_path / name, content)


def test_parquet_lists_and_pictures(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"path": ["a.png", "b.png"], "text": ["1", None]}), tmp_path / "list.parquet")
    items = list(items_of([str(tmp_path / "list.parquet")]))
    assert [(item.picture.source, item.reference) for item in items] == [
        (str(tmp_path / "a.png"), "1"),
        (str(tmp_path / "b.png"), None),
    ]
    contents = [b"%d" % number for number in range(5)]
    held = arrow.table({"image": [{"bytes": content, "path": None} for content in contents], "text": list("abcde")})
    parquet.write_table(held, tmp_path / "held.parquet", row_group_size=2)
    items = list(items_of([str(tmp_path / "held.parquet")]))
    assert [item.id.rpartition("#")[2] for item in items] == ["1", "2", "3", "4", "5"]
    assert [item.reference for item in items] == list("abcde")
    assert [fetch(item.picture, ImageLimits()) for item in items] == contents
    assert picture_of({"source": items[3].picture.source, "place": items[3].picture.place()}) == items[3].picture
    parquet.write_table(arrow.table({"png": contents, "id": list("vwxyz")}), tmp_path / "plain.parquet")
    assert [item.id for item in items_of([str(tmp_path / "plain.parquet")])] == list("vwxyz")
    parquet.write_table(arrow.table({"path": ["a.png"], "text": [12.5]}), tmp_path / "numbers.parquet")
    with pytest.raises(InputError, match=r"row 1: text is 12\.5, which is no text"):
        list(items_of([str(tmp_path / "numbers.parquet")]))
    (tmp_path / "none.parquet").write_bytes(b"not Parquet")
    with pytest.raises(InputError, match="no Parquet file"):
        list(items_of([str(tmp_path / "none.parquet")]))
