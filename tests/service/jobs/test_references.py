import unicodedata
from pathlib import Path

import pytest

from glyphline.service.jobs.errors import InputError
from glyphline.service.jobs.references import load_references, reference_key


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def test_names_are_relative_to_the_file_and_texts_are_nfc(tmp_path: Path) -> None:
    decomposed = unicodedata.normalize("NFD", "é")
    references = load_references(write(tmp_path / "labels.tsv", f"a.png\t12\r\nb/c.png\t{decomposed} \n\nd.png\t\n"))
    (tmp_path / "link.png").symlink_to(tmp_path / "a.png")
    assert references[reference_key(tmp_path / "a.png")] == "12"
    assert references[reference_key(tmp_path / "link.png")] == "12"
    assert references[reference_key(tmp_path / "b" / "c.png")] == unicodedata.normalize("NFC", "é") + " "
    assert references[reference_key(tmp_path / "d.png")] == ""


@pytest.mark.parametrize(
    ("content", "reason"),
    [("a.png\t1\nb.png 2\n", "line 2: no tab"), ("a.png\t1\na.png\t2\n", "line 2: 'a.png' has two different texts")],
)
def test_mistakes_are_named_with_their_line(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        load_references(write(tmp_path / "labels.tsv", content))


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing\.tsv"):
        load_references(tmp_path / "missing.tsv")
    (tmp_path / "latin.tsv").write_bytes(b"a.png\t\xe9\n")
    with pytest.raises(InputError, match="not UTF-8 at byte 6"):
        load_references(tmp_path / "latin.tsv")


def test_a_byte_order_mark_is_not_part_of_the_first_name(tmp_path: Path) -> None:
    references = load_references(write(tmp_path / "labels.tsv", "\ufeffa.png\t1\n"))
    assert references == {reference_key(tmp_path / "a.png"): "1"}
