from pathlib import Path

from glyphline.cli.pictures import PictureFolder


def test_no_drawing_replaces_another() -> None:
    beside = PictureFolder(None)
    assert beside.path_for("x/a.png") == Path("x/a.reading.png")
    assert beside.path_for("x/a.jpg") == Path("x/a.jpg.reading.png")
    assert beside.path_for("y/a.png") == Path("y/a.reading.png")
    assert beside.path_for("-") == Path("stdin.reading.png")
    together = PictureFolder(Path("out"))
    names = [together.path_for(source).name for source in ("x/a.png", "y/a.png", "z/a.png", "z/a.tif")]
    assert names == ["a.reading.png", "a.png.reading.png", "a-2.reading.png", "a.tif.reading.png"]
