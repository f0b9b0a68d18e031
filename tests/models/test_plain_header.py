"""The quick way to the size of a file tells what Pillow tells, or nothing."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from glyphline.models.plain_header import plain_size

SIZE = (40, 24)


def saved(mode: str, file_format: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, SIZE).save(buffer, file_format, **options)
    return buffer.getvalue()


def oriented() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


def with_words() -> PngImagePlugin.PngInfo:
    words = PngImagePlugin.PngInfo()
    words.add_itxt("XML:com.adobe.xmp", '<x tiff:Orientation="6"/>')
    return words


PLAIN = {
    **{f"png {mode}": saved(mode, "PNG") for mode in ("1", "L", "P", "LA", "RGB", "RGBA", "I;16")},
    "png with resolution": saved("L", "PNG", dpi=(300, 300)),
    **{f"jpeg {mode}": saved(mode, "JPEG") for mode in ("L", "RGB", "CMYK")},
    "jpeg progressive": saved("RGB", "JPEG", progressive=True, comment=b"a comment", restart_marker_rows=1),
}
NOT_PLAIN = {
    "png with EXIF": saved("L", "PNG", exif=oriented()),
    "png with words": saved("L", "PNG", pnginfo=with_words()),
    "png with several pictures": saved("L", "PNG", save_all=True, append_images=[Image.new("L", SIZE, 9)]),
    "jpeg with EXIF": saved("L", "JPEG", exif=oriented()),
    "jpeg with words": saved("L", "JPEG", xmp=b"<x/>"),
    "webp": saved("RGB", "WEBP"),
    "gif": saved("P", "GIF"),
    "nothing": b"",
    "words": b"no image",
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_plain_file_has_a_size(name: str) -> None:
    assert plain_size(PLAIN[name]) == (*SIZE, "PNG" if name.startswith("png") else "JPEG")


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_the_rest_is_left_to_pillow(name: str) -> None:
    assert plain_size(NOT_PLAIN[name]) is None


def test_the_strips_of_the_test_data_are_plain(repository_root: Path) -> None:
    files = [*(repository_root / "tests/data/strips").rglob("*.png"), *(repository_root / "tests/data").rglob("*.jpg")]
    assert files
    for file in files:
        with Image.open(file) as image:
            found = plain_size(file.read_bytes())
            assert found in (None, (*image.size, image.format))
    assert any(plain_size(file.read_bytes()) for file in files)


@given(st.sampled_from(sorted(PLAIN)), st.data())
def test_a_damaged_file_has_the_size_that_pillow_finds_or_none(name: str, data: st.DataObject) -> None:
    content = bytearray(PLAIN[name])
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, min(len(content), 700) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(content[: data.draw(st.integers(0, len(content)))])
    for damaged in (bytes(content), cut):
        found = plain_size(damaged)
        try:
            with Image.open(io.BytesIO(damaged)) as image:
                size = (*image.size, image.format)
        except Exception:
            continue  # damaged further on than the size
        assert found in (None, size)
