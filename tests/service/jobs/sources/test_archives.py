from __future__ import annotations

import io
import json
import os
import random
import tarfile
import zipfile
from pathlib import Path

import pytest

from glyphline.models.image import ImageLimits
from glyphline.service.jobs import InputError, RowError, picture_of
from glyphline.service.jobs.pictures import ZipPicture, fetch
from glyphline.service.jobs.sources.archives import read_tar, read_zip
from glyphline.service.jobs.sources.found import items_of

LIMITS = ImageLimits()


def tar_of(path: Path, *members: tuple[str, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def zip_of(path: Path, *members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def test_pictures_of_a_tar_file_in_its_order(tmp_path: Path) -> None:
    path = tar_of(tmp_path / "a.tar", ("b.png", b"bb"), ("x/a.JPG", b"a"), ("notes.md", b"-"), ("x/._a.png", b"-"))
    items = list(items_of([str(path)]))
    assert [item.id for item in items] == [f"{path}#b.png", f"{path}#x/a.JPG"]
    assert [fetch(item.picture, LIMITS) for item in items] == [b"bb", b"a"]
    for item in items:
        assert picture_of({"source": item.picture.source, "place": item.picture.place()}) == item.picture


def test_a_webdataset_shard_brings_its_texts(tmp_path: Path) -> None:
    path = tar_of(
        tmp_path / "a.tar",
        ("0.png", b"0"),
        ("0.txt", "é 1\n".encode()),
        ("1.json", json.dumps({"text": "two"}).encode()),
        ("1.png", b"1"),
        ("2.png", b"2"),
        ("3.gt.txt", b"four"),
        ("3.png", b"3"),
        ("4.json", b"no JSON"),
        ("4.png", b"4"),
    )
    assert [item.reference for item in read_tar(str(path))] == ["é 1", "two", None, "four", None]


def test_members_are_not_gathered_in_memory(tmp_path: Path) -> None:
    path = tar_of(tmp_path / "a.tar", *((f"{number:05d}.png", b"x") for number in range(300)))
    items = read_tar(str(path))
    assert next(items).id.endswith("#00000.png")
    assert items.gi_frame is not None  # type: ignore[attr-defined]
    assert len(items.gi_frame.f_locals["archive"].members) == 0  # type: ignore[attr-defined]


def test_tar_files_that_cannot_be_read_in_part_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w:gz"):
        pass
    with pytest.raises(InputError, match="unpack a compressed one"):
        list(read_tar(str(tmp_path / "a.tar")))
    tar_of(tmp_path / "b.tar", ("a.txt", b"\xff"), ("a.png", b"x"))
    with pytest.raises(InputError, match="not UTF-8"):
        list(read_tar(str(tmp_path / "b.tar")))
    with pytest.raises(InputError, match="No such file"):
        list(read_tar(str(tmp_path / "c.tar")))


def test_a_tar_file_that_is_cut_short_costs_its_last_picture(tmp_path: Path) -> None:
    path = tar_of(tmp_path / "a.tar", ("a.png", b"a" * 600))
    (item,) = read_tar(str(path))
    os.truncate(path, 900)
    content = fetch(item.picture, LIMITS)
    assert isinstance(content, RowError)
    assert content.code == "undecodable_image"


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_pictures_of_a_zip_file(tmp_path: Path, method: int) -> None:
    noise = random.Random(1).randbytes(5_000)
    path = zip_of(tmp_path / "a.zip", ("b.png", noise), ("x/a.png", b""), ("t.txt", b""), method=method)
    items = list(items_of([str(path)]))
    assert [item.id for item in items] == [f"{path}#b.png", f"{path}#x/a.png"]
    assert [fetch(item.picture, LIMITS) for item in items] == [noise, b""]
    assert picture_of({"source": str(path), "place": items[0].picture.place()}) == items[0].picture


def test_a_bomb_does_not_go_off(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "a.zip", ("a.png", bytes(50_000_000)))
    (item,) = read_zip(str(path))
    content = fetch(item.picture, LIMITS)
    assert isinstance(content, RowError)
    assert content.code == "image_too_large"
    assert isinstance(item.picture, ZipPicture)
    liar = ZipPicture(**{name: getattr(item.picture, name) for name in ZipPicture.__slots__} | {"size": 100})
    content = fetch(liar, LIMITS)
    assert isinstance(content, RowError)
    assert "checksum" in content.message


def test_what_is_wrong_within_a_zip_file_is_a_row(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "a.zip", ("a.png", b"a" * 100), ("b.png", b"b"), method=zipfile.ZIP_LZMA)
    content = fetch(next(iter(read_zip(str(path)))).picture, LIMITS)
    assert isinstance(content, RowError)
    assert "only deflate" in content.message
    path = zip_of(tmp_path / "b.zip", ("a.png", b"abc" * 100))
    (item,) = read_zip(str(path))
    damaged = bytearray(path.read_bytes())
    damaged[40] ^= 0xFF
    path.write_bytes(damaged)
    assert isinstance(fetch(item.picture, LIMITS), RowError)
    path.write_bytes(b"no zip file at all, and long enough")
    assert isinstance(fetch(item.picture, LIMITS), RowError)
    with pytest.raises(InputError, match="no zip file"):
        list(read_zip(str(path)))


def test_names_of_members_that_are_not_utf8_can_be_written(tmp_path: Path) -> None:
    path = tar_of(tmp_path / "a.tar", (os.fsdecode(b"caf\xe9.png"), b"x"))
    (item,) = items_of([str(path)])
    assert (item.id, item.picture.place()["member"]) == (f"{path}#caf\\xe9.png", "caf\\xe9.png")
    row = {"source": item.picture.source, "place": item.picture.place()}
    assert fetch(picture_of(row), LIMITS) == b"x"
