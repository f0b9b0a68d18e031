from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from glyphline.models.image import ImageLimits
from glyphline.service.jobs import InputError, RowError, picture_of
from glyphline.service.jobs.pictures import FilePicture, fetch
from glyphline.service.jobs.sources.found import items_of
from glyphline.service.jobs.storage import join

pytest.importorskip("fsspec")
LIMITS = ImageLimits()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.png", "a/1.png", "a/2.JPG", "notes.txt", ".hidden.png"):
        path = tmp_path / "bucket" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path / "bucket"


def test_folders_patterns_and_files_of_a_storage(folder: Path) -> None:
    uri = f"file://{folder}"
    items = list(items_of([uri]))
    assert [item.picture.source for item in items] == [f"{uri}/a/1.png", f"{uri}/a/2.JPG", f"{uri}/b.png"]
    assert [fetch(item.picture, LIMITS) for item in items] == [b"a/1.png", b"a/2.JPG", b"b.png"]
    assert [item.picture.source for item in items_of([f"{uri}/a/*.png"])] == [f"{uri}/a/1.png"]
    assert [item.id for item in items_of([f"{uri}/b.png"])] == [f"{uri}/b.png"]
    assert picture_of({"source": f"{uri}/b.png"}) == items[2].picture


def test_lists_and_archives_of_a_storage(folder: Path) -> None:
    (folder / "list.csv").write_text("path\nb.png\n")
    (item,) = items_of([f"file://{folder}/list.csv"])
    assert item.picture == FilePicture(f"file://{folder}/b.png")
    shutil.make_archive(str(folder.parent / "all"), "zip", folder)
    items = list(items_of([f"file://{folder.parent}/all.zip"]))
    assert b"b.png" in [fetch(item.picture, LIMITS) for item in items]


def test_what_is_not_there_is_named(folder: Path) -> None:
    for name in ("missing.png", "*.bmp"):
        with pytest.raises(InputError, match=r"no such file|matches nothing"):
            list(items_of([f"file://{folder}/{name}"]))
    with pytest.raises(InputError, match="nonsense://"):
        list(items_of(["nonsense://bucket/a.png"]))
    lost = fetch(FilePicture(f"file://{folder}/lost.png"), LIMITS)
    assert isinstance(lost, RowError)
    assert lost.code == "file_not_found"
    small = fetch(FilePicture(f"file://{folder}/b.png"), ImageLimits(max_bytes=2))
    assert isinstance(small, RowError)
    assert small.code == "image_too_large"


@pytest.fixture
def web(folder: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_web_addresses(web: str) -> None:
    pytest.importorskip("aiohttp")
    (item,) = items_of([f"{web}/b.png"], allow_http=True)
    assert fetch(item.picture, LIMITS) == b"b.png"
    lost = fetch(FilePicture(f"{web}/lost.png"), LIMITS)
    assert isinstance(lost, RowError)
    with pytest.raises(InputError, match="--allow-http"):
        picture_of({"source": f"{web}/b.png"})


def test_names_of_a_list_lie_beside_it() -> None:
    assert join("s3://bucket/x", "a.png") == "s3://bucket/x/a.png"
    assert join("s3://bucket/x", "gs://other/a.png") == "gs://other/a.png"
    assert join("", "a.png") == "a.png"
