import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.service.jobs.inputs import IMAGE_SUFFIXES, InputError, check_inputs, find_images, paths_from_list


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def relative(folder: Path, *paths: str) -> list[str]:
    return [os.path.relpath(path, folder) for path in find_images(paths or [str(folder)])]


def test_folders_are_searched_to_any_depth_in_order(tmp_path: Path) -> None:
    touch(tmp_path, "b.png", "a/z.jpg", "a/deep/er/x.TIF", "c.WebP", "10.png", "9.png")
    assert relative(tmp_path) == ["10.png", "9.png", "a/deep/er/x.TIF", "a/z.jpg", "b.png", "c.WebP"]


def test_folders_yield_images_only(tmp_path: Path) -> None:
    touch(tmp_path, "a.png", "labels.tsv", "notes.txt", ".hidden.png", "._a.png", ".cache/b.png", "folder.png/c.png")
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
            list(find_images([str(path)]))
        with pytest.raises(InputError):
            check_inputs([str(path)])
    with pytest.raises(InputError, match="no input"):
        check_inputs([])


def test_files_are_found_one_by_one(tmp_path: Path) -> None:
    touch(tmp_path, "a.png")
    found = find_images([str(tmp_path / "a.png"), str(tmp_path / "later.png")])
    assert next(found).endswith("a.png")
    touch(tmp_path, "later.png")
    assert next(found).endswith("later.png")


def test_lists_hold_one_path_a_line() -> None:
    lines = io.BytesIO("a b.png\r\n\n  c.png\nчек*.png\n".encode() + b"\xff.png")
    assert list(paths_from_list(lines)) == ["a b.png", "  c.png", "чек*.png", "\udcff.png"]


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
