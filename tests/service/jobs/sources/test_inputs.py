from __future__ import annotations

import os
from pathlib import Path

import pytest

from glyphline.service.jobs import InputError, Inputs, Item, load_references
from glyphline.service.jobs.pictures import FilePicture
from glyphline.service.jobs.sources.identities import Identities


def items(*names: object) -> list[Item]:
    return [Item(str(name), FilePicture(str(name))) for name in names]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scans").mkdir()
    for number in range(200):
        (tmp_path / "scans" / f"{number:03d}.png").touch()
    return tmp_path / "scans"


def test_an_id_that_comes_twice_is_named() -> None:
    for size in (1, 3, 100):
        known = Identities()
        names = [f"{number}" for number in range(500)]
        for begin in range(0, 500, size):
            known.add(items(*names[begin : begin + size]))
        for name in ("0", "250", "499"):
            with pytest.raises(InputError, match=f"'{name}' comes twice"):
                known.add(items("new", name))
    with pytest.raises(InputError, match="'b' comes twice"):
        Identities().add(items("a", "b", "c", "b"))


def test_a_file_that_is_named_twice_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"007\.png' comes twice"):
        list(Inputs((str(folder), str(folder / "007.png"))).chunks(16))


def test_references_must_be_those_of_an_image(folder: Path) -> None:
    (folder / "labels.tsv").write_text("other.png\tone\n")
    references = load_references(folder / "labels.tsv")
    with pytest.raises(InputError, match=r"none of the images is listed in labels\.tsv: its names are relative"):
        Inputs((str(folder),), references=references).check_references("labels.tsv")
    with pytest.raises(InputError, match="none of the images"):
        Inputs((str(folder),)).check_references("empty.tsv")
    (folder / "other.png").touch()
    Inputs((str(folder),), references=references).check_references("labels.tsv")
    Inputs(files_from="-", references=references).check_references("labels.tsv")  # it tells its names only once


def test_pages_must_be_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    (folder / "p.xml").touch()
    for paths in (("scans",), ("scans/*.png",), ("s3://bucket/scans/",), ("s3://bucket/*.png",), ()):
        with pytest.raises(InputError, match=r"name them, as 'pages/\*\.xml'"):
            Inputs(paths, "list").check_pages()
    for path in ("scans/p.xml", "scans/*", "s3://bucket/*", "s3://bucket/p.xml", "s3://bucket/*.x*"):
        Inputs(("scans/000.png", path)).check_pages()


def test_a_limit_and_a_sample(folder: Path) -> None:
    whole = [item.id for item in Inputs((str(folder),))]
    assert [item.id for item in Inputs((str(folder),), limit=3)] == whole[:3]
    sample = [item.id for item in Inputs((str(folder),), sample=0.25)]
    assert 20 < len(sample) < 80
    assert set(sample) <= set(whole)
    (folder / "a_new_one.png").touch()
    assert set(sample) <= {item.id for item in Inputs((str(folder),), sample=0.25)}, "a draw does not depend on others"


def test_references_of_files_and_of_lists(folder: Path) -> None:
    (folder / "labels.tsv").write_text("001.png\tone\n002.png\ttwo\n")
    references = load_references(folder / "labels.tsv")
    (folder / "list.csv").write_text("path,text\n001.png,other\n002.png,\n")
    relative = os.path.relpath(folder / "001.png")
    assert [item.reference for item in Inputs((relative,), references=references)] == ["one"]
    listed = list(Inputs((str(folder / "list.csv"),), references=references))
    assert [item.reference for item in listed] == ["other", ""]


def test_lists_of_paths(folder: Path) -> None:
    (folder / "list").write_text("a.tif\nhttp://example.com/a.png\n")
    inputs = Inputs(files_from=str(folder / "list"))
    inputs.check()
    assert [item.id for item in inputs] == ["a.tif", "http://example.com/a.png"]
    assert [item.picture.source for item in inputs] == ["a.tif", "http://example.com/a.png"]
    assert inputs.repeatable
    assert not Inputs(files_from="-").repeatable
    with pytest.raises(InputError, match="no such file"):
        Inputs(files_from=str(folder / "missing")).check()


def test_what_a_job_depends_on_is_told(folder: Path) -> None:
    first, second = Inputs(("a",), limit=3), Inputs(("a",), references={"x": "y"})
    assert first.describe() != second.describe()
    assert first.describe()["folder"] == os.getcwd()
