"""Labels that a page has saved become a folder that training reads."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from glyphline.models.image import ImageLimits, read_image
from glyphline.models.labels import read_labels
from glyphline.service.jobs import InputError, OutputError
from glyphline.service.jobs.review import open_output, write_dataset

MakeRow = Callable[..., dict[str, Any]]


@pytest.fixture
def job(tmp_path: Path, row: MakeRow, strips: list[tuple[Path, str]]) -> Path:
    """A job with a file, a strip that is cut from a page, one whose picture is gone, and one that is none."""
    content = strips[0][0].read_bytes()
    (tmp_path / "a.jpg").write_bytes(content)
    (tmp_path / "text.png").write_text("none")
    Image.fromarray(np.arange(200, dtype=np.uint8).repeat(20).reshape(40, 100)).save(tmp_path / "page.png")
    rows = [
        row(str(tmp_path / "a.jpg"), "1"),
        row("list\trow", "2", source=str(tmp_path / "page.png"), crop={"points": [[10, 5], [59, 24]]}),
        row("LIST_row", "2", source=str(tmp_path / "page.png"), crop={"points": [[0, 0], [9, 9]]}),
        row("gone.png", "3", source=str(tmp_path / "gone.png")),
        row("text.png", "4", source=str(tmp_path / "text.png")),
        row("../web.png", "5", source="http://127.0.0.1:1/web.png"),
        row("untouched.png", "6"),
    ]
    path = tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


def test_pictures_and_labels_come_together(job: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.tsv"
    labels.write_text(
        f"{tmp_path / 'a.jpg'}\t12\nlist%09row\t\nLIST_row\t2\ngone.png\t3\ntext.png\t4\n../web.png\t5\n",
        encoding="utf-8",
    )
    folder = tmp_path / "new" / "set"
    written = write_dataset(open_output(str(job)), labels, folder)
    assert (written.pictures, written.changed) == (3, 2)
    assert written.missing.keys() == {"gone.png", "text.png", "../web.png"}
    assert "no longer there" in written.missing["gone.png"]
    assert "--allow-http" in written.missing["../web.png"]
    found = {label.name: label.text for label in read_labels(folder / "labels.tsv")}
    whole = f"{tmp_path / 'a.jpg'}".lstrip("/")
    assert found == {whole: "12", "list_row.png": "", "LIST_row-2.png": "2"}
    assert (folder / whole).read_bytes() == (tmp_path / "a.jpg").read_bytes()
    assert read_image((folder / "list_row.png").read_bytes(), ImageLimits()).pixels.shape == (20, 50)
    assert {path for path in folder.rglob("*") if path.is_file()} == {folder / name for name in (*found, "labels.tsv")}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("b.png\t1\nc.png\t1\n", "'b.png' and 1 more is no row of"),
        ("untouched.png\t1\nuntouched.png\t2\n", "line 2: 'untouched.png' has two different texts"),
        ("untouched.png 1\n", "no tab"),
        ("\n", "no labels"),
    ],
)
def test_labels_of_something_else_are_refused(job: Path, tmp_path: Path, content: str, reason: str) -> None:
    labels = tmp_path / "labels.tsv"
    labels.write_text(content)
    with pytest.raises(InputError, match=reason):
        write_dataset(open_output(str(job)), labels, tmp_path / "set")
    assert not (tmp_path / "set").exists()


def test_a_folder_that_holds_something_is_left_alone(job: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.tsv"
    labels.write_text("untouched.png\t1\n")
    with pytest.raises(OutputError, match="choose a new folder"):
        write_dataset(open_output(str(job)), labels, tmp_path)
