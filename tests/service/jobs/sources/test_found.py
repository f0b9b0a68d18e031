import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.service.jobs.errors import InputError
from glyphline.service.jobs.names import IMAGE_SUFFIXES
from glyphline.service.jobs.sources import listing
from glyphline.service.jobs.sources.found import check_paths, items_of, paths_from_list


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def relative(folder: Path, *paths: str) -> list[str]:
    return [os.path.relpath(item.picture.source, folder) for item in items_of(paths or [str(folder)])]


def test_folders_are_searched_to_any_depth_in_order(tmp_path: Path) -> None:
    touch(tmp_path, "b.png", "a/z.jpg", "a/deep/er/x.TIF", "c.WebP", "10.png", "9.png")
    assert relative(tmp_path) == ["10.png", "9.png", "a/deep/er/x.TIF", "a/z.jpg", "b.png", "c.WebP"]


def test_folders_yield_images_only(tmp_path: Path) -> None:
    touch(
        tmp_path,
        "a.png",
        "labels.tsv",
        "notes.txt",
        "a.reading.png",
        ".hidden.png",
        "._a.png",
        ".cache/b.png",
        "folder.png/c.png",
    )
    assert relative(tmp_path) == ["a.png", "folder.png/c.png"]


def test_a_named_file_is_read_whatever_its_name(tmp_path: Path) -> None:
    touch(tmp_path, "scan.dat", ".hidden")
    assert relative(tmp_path, str(tmp_path / "scan.dat"), str(tmp_path / ".hidden")) == ["scan.dat", ".hidden"]


def test_the_order_of_the_paths_is_kept_and_repeats_are_too(tmp_path: Path) -> None:
    touch(tmp_path, "a.png", "b.png")
    a, b = str(tmp_path / "a.png"), str(tmp_path / "b.png")
    assert relative(tmp_path, b, a, b, str(tmp_path)) == ["b.png", "a.png", "b.png", "a.png", "b.png"]


def test_patterns(tmp_path: Path) -> None:
    touch(tmp_path, "x/1.png", "x/2.dat", "x/y/3.png", "z/4.png")
    assert relative(tmp_path, str(tmp_path / "x" / "*")) == ["x/1.png", "x/2.dat", "x/y/3.png"]
    assert relative(tmp_path, str(tmp_path / "**" / "*.png")) == ["x/1.png", "x/y/3.png", "z/4.png"]


def test_a_name_with_pattern_characters_is_a_name_first(tmp_path: Path) -> None:
    touch(tmp_path, "a[1].png", "a1.png")
    assert relative(tmp_path, str(tmp_path / "a[1].png")) == ["a[1].png"]


def test_names_in_any_script(tmp_path: Path) -> None:
    touch(tmp_path, "чек 12.png", "小切手/支票.png", "é🧾.png")
    assert sorted(relative(tmp_path)) == sorted(["чек 12.png", "小切手/支票.png", "é🧾.png"])


def test_links_to_files_are_followed_and_links_to_folders_are_not(tmp_path: Path) -> None:
    touch(tmp_path, "real/a.png")
    (tmp_path / "link.png").symlink_to(tmp_path / "real" / "a.png")
    (tmp_path / "real" / "circle").symlink_to(tmp_path)
    (tmp_path / "lost.png").symlink_to(tmp_path / "nothing")
    assert relative(tmp_path) == ["link.png", "lost.png", "real/a.png"]
    assert relative(tmp_path, str(tmp_path / "real" / "circle")) == [
        "real/circle/link.png",
        "real/circle/lost.png",
        "real/circle/real/a.png",
    ]


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.png", tmp_path / "*.png"):
        with pytest.raises(InputError, match=r"(missing|\*)\.png"):
            list(items_of([str(path)]))
        with pytest.raises(InputError):
            check_paths([str(path)])
    with pytest.raises(InputError, match="no input"):
        check_paths([])


def test_files_are_found_one_by_one(tmp_path: Path) -> None:
    touch(tmp_path, "a.png")
    found = items_of([str(tmp_path / "a.png"), str(tmp_path / "later.png")])
    assert next(found).id.endswith("a.png")
    touch(tmp_path, "later.png")
    assert next(found).id.endswith("later.png")


def test_lists_hold_one_path_a_line() -> None:
    lines = io.BytesIO("a b.png\r\n\n  c.png\nчек*.png\n".encode() + b"\xff.png")
    assert list(paths_from_list(lines)) == ["a b.png", "  c.png", "чек*.png", "\udcff.png"]


def test_a_folder_of_any_size_is_sorted_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{number * 7919 % 1000:03d}.png" for number in range(250)] + [
        "b\udcff.png",
        "чек.png",
        "50/1.png",
        "5.png",
    ]
    touch(tmp_path, *names)
    whole = relative(tmp_path)
    monkeypatch.setattr(listing, "_RUN", 16)
    assert relative(tmp_path) == whole == sorted(names, key=lambda name: name.split("/"))


def test_endings_that_are_said_to_be_compressed_tars_are_refused(tmp_path: Path) -> None:
    touch(tmp_path, "a.tar.gz")
    with pytest.raises(InputError, match="unpack it"):
        list(items_of([str(tmp_path / "a.tar.gz")]))


def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match="cannot be listed: Permission denied"):
        list(items_of([str(tmp_path)]))


NAMES = st.text(st.characters(categories=["L", "N"], include_characters=" -_[]*?"), min_size=1, max_size=8).filter(
    lambda name: len(name.encode()) < 100
)


@given(st.sets(st.tuples(NAMES, NAMES, st.sampled_from([*sorted(IMAGE_SUFFIXES), ".txt", ""])), max_size=8))
def test_a_folder_yields_each_of_its_images_once(
    tmp_path_factory: pytest.TempPathFactory, parts: set[tuple[str, str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    touch(folder, *(f"{parent}/{stem}{suffix}" for parent, stem, suffix in parts))
    wanted = [f"{parent}/{stem}{suffix}" for parent, stem, suffix in parts if suffix in IMAGE_SUFFIXES]
    found = relative(folder)
    assert sorted(found) == sorted(wanted)
    assert found == sorted(found, key=lambda path: path.split("/"))
