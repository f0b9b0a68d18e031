from pathlib import Path

import pytest

from glyphline.models.pages import find_page, picture_name


@pytest.mark.parametrize(
    ("xml", "stated", "there", "found"),
    [
        ("p.xml", "p1.jpg", ["p1.jpg", "p.png"], "p1.jpg"),
        ("p.xml", "C:\\scans\\p1.png", ["p1.png"], "p1.png"),
        ("p.xml", "https://host/a/p1.png", ["p1.png"], "p1.png"),
        ("p.xml", "../../p1.png", ["p1.png"], "p1.png"),
        ("p.xml", "p1.jpg", ["p1.tif"], "p1.tif"),
        ("p.xml", "p1.jpg", ["p.tif", "p.png"], "p.png"),
        ("p.page.xml", "", ["p.webp"], "p.webp"),
        ("p.page.xml", "", ["p.page.png", "p.png"], "p.page.png"),
        ("page/p.xml", "p1.png", ["p1.png"], "p1.png"),
        ("page/p.xml", "", ["page/p.png", "p.png"], "page/p.png"),
        ("p.xml", "p1.png", ["other.png"], None),
        ("p.xml", "..", [], None),
    ],
)
def test_pictures_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, xml: str, stated: str, there: list[str], found: str | None
) -> None:
    (tmp_path / "work/page").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    for name in there:
        Path(name).touch()
    assert find_page(xml, stated) == found
    assert find_page(Path(xml).absolute(), stated) == (found and str(Path(found).absolute()))


def test_above_the_folder_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page").mkdir()
    (tmp_path / "p.png").touch()
    monkeypatch.chdir(tmp_path / "page")
    assert find_page("p.xml", "") == str(Path("../p.png"))


def test_the_name_of_a_path_of_another_machine() -> None:
    assert [picture_name(each) for each in ("a.png", "D:\\x\\a.png", "s3://b/a.png", "")] == ["a.png"] * 3 + [""]
