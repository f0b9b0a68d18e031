from glyphline.models.decoding import Alternative, Reading
from glyphline.service.jobs import Item, ModelIdentity, Picture, RowError, RowFormat, picture_of
from glyphline.service.jobs.pictures import CutPicture, FilePicture, TarPicture, TiffPicture

MODEL = ModelIdentity("digits", 3, "ab" * 32, "beam 10")
READING = Reading("12", 0.98765432, (Alternative("12", 0.98765432, -0.25),))


def test_a_plain_row() -> None:
    assert RowFormat(MODEL).row(Item("a", FilePicture("x/a.png")), READING) == {
        "id": "a",
        "source": "x/a.png",
        "text": "12",
        "confidence": 0.987654,
        "truncated": False,
        "error": None,
        "model": "digits",
        "version": 3,
        "sha256": "ab" * 32,
        "decoder": "beam 10",
    }


def test_a_row_tells_how_to_show_its_picture_again() -> None:
    pictures: list[Picture] = [
        FilePicture("a.png"),
        TiffPicture("a.tif", 2),
        TarPicture("a.tar", "x.png", 512, 9),
        CutPicture(TiffPicture("a.tif", 2), ((0.0, 1.0), (5.0, 9.0)), (10.0, 10.0)),
        CutPicture(FilePicture("a.png"), ((0.0, 1.0), (5.0, 9.0), (7.0, 3.0))),
    ]
    for picture in pictures:
        row = RowFormat(MODEL).row(Item("a", picture), RowError("empty_image", "x"))
        assert picture_of(row) == picture


def test_lines_and_references() -> None:
    item = Item("a", FilePicture("p.png"), "12", "p.xml", 4)
    row = RowFormat(MODEL, alternatives=True, tokens=True).row(item, READING)
    assert row["line"] == {"file": "p.xml", "number": 4}
    assert row["reference"] == "12"
    assert row["tokens"] == []
    assert [each["text"] for each in row["alternatives"]] == ["12"]


def test_lines_hold_any_name() -> None:
    line = RowFormat(MODEL).line(Item("a", FilePicture("\udcff 支票.png")), READING)
    assert line.endswith(b"\n")
    assert "\\\\xff 支票.png".encode() in line
