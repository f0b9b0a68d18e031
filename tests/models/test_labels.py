import codecs
from pathlib import Path

import pytest

from glyphline.models.errors import LabelsError
from glyphline.models.labels import Label, read_labels


def write(folder: Path, content: bytes) -> Path:
    path = folder / "labels.tsv"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_a_name_a_tab_and_a_text_with_or_without_a_byte_order_mark(tmp_path: Path, mark: bytes) -> None:
    path = write(tmp_path, mark + "чек.png\t12\r\n\nb/c.png\te\u0301 \n \nd.png\t\ne.png\ta\tb".encode())
    assert read_labels(path) == [
        Label(1, "чек.png", "12"),
        Label(3, "b/c.png", "\u00e9 "),
        Label(5, "d.png", ""),
        Label(6, "e.png", "a\tb"),
    ]


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "a.png\t1\u20282\u0085\nb.png\t3\n".encode())
    assert [label.text for label in read_labels(path)] == ["1\u20282\u0085", "3"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a.png\t1\nb.png 2\n", "line 2: no tab between file name and text: 'b.png 2'"),
        (b"a.png\t\xe9\n", "not UTF-8 at byte 6"),
        (codecs.BOM_UTF8 + b"a.png\t\xe9\n", "not UTF-8 at byte 9"),
        ("a.png\t1\n".encode("utf-16"), "not UTF-8 at byte 0"),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path: Path, content: bytes, reason: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(LabelsError) as error:
        read_labels(path)
    assert str(error.value) in (f"{path}: {reason}", f"{path}, {reason}")


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.tsv"):
        with pytest.raises(LabelsError, match=str(path)):
            read_labels(path)
