import io
import re
import struct
import warnings
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from glyphline.models.errors import (
    EmptyImageError,
    ImageError,
    ImageTooLargeError,
    UndecodableImageError,
)
from glyphline.models.image import FORMATS, GreyImage, ImageHeader, ImageLimits, read_header, read_image, to_grey

# A picture without symmetry, so that every turn and flip shows; blocks of 8 survive lossy formats.
PICTURE = np.full((24, 40), 255, dtype=np.uint8)
PICTURE[0:8, :] = 0
PICTURE[:, 0:8] = 90
PICTURE[16:24, 32:40] = 170

LOSSLESS: dict[str, dict[str, Any]] = {
    "PNG": {},
    "WEBP": {"lossless": True},
    "BMP": {},
    "TIFF": {},
    "GIF": {},
    "PPM": {},
}
ENCODINGS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, options) for name, options in LOSSLESS.items()},
    "JPEG": ("JPEG", {"quality": 95}),
    "progressive JPEG": ("JPEG", {"quality": 95, "progressive": True}),
    "lossy WEBP": ("WEBP", {"quality": 95}),
    **{
        f"TIFF with {name}": ("TIFF", {"compression": name})
        for name in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg")
    },
}


def save(picture: Image.Image, file_format: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, file_format, **options)
    return buffer.getvalue()


FILES = {name: save(Image.fromarray(PICTURE), kind, **options) for name, (kind, options) in ENCODINGS.items()}


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of_size(width: int, height: int, pixels: bytes = b"") -> bytes:
    """A PNG file that claims a size; its pixel data are whatever is given."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", pixels) + png_chunk(b"IEND", b"")


# Formats


@pytest.mark.parametrize("name", LOSSLESS)
def test_lossless_files_are_read_exactly(name: str) -> None:
    assert np.array_equal(read_image(FILES[name]).pixels, PICTURE)


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_format_shows_the_same_picture(name: str) -> None:
    difference = np.abs(read_image(FILES[name]).pixels.astype(int) - PICTURE)
    assert difference.mean() <= 2


@pytest.mark.parametrize("name", ENCODINGS)
def test_the_header_gives_format_and_size(name: str) -> None:
    assert read_header(FILES[name]) == ImageHeader(width=40, height=24, format=ENCODINGS[name][0])


@pytest.mark.parametrize(
    ("file_format", "modes"),
    {
        "PNG": ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"],
        "WEBP": ["L", "RGB", "RGBA"],
        "BMP": ["1", "L", "P", "RGB", "RGBA"],
        "TIFF": ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "LAB", "I;16", "I;16B", "I", "F"],
        "GIF": ["1", "L", "LA", "P", "RGB", "RGBA"],
        "PPM": ["1", "L", "RGB", "I", "F"],
        "JPEG": ["L", "RGB", "CMYK", "YCbCr"],
    }.items(),
)
def test_files_of_every_mode_show_the_same_picture(
    file_format: str, modes: list[str], encode: Callable[..., bytes]
) -> None:
    stroke = np.full((16, 32), 255, dtype=np.uint8)
    stroke[4:12, 8:16] = 0
    for mode in modes:
        if (file_format, mode) == ("TIFF", "YCbCr") and int(PIL.__version__.split(".")[0]) < 13:
            continue  # an older Pillow cannot read the file that it writes
        match mode:
            case "I;16":
                image = Image.fromarray(stroke.astype(np.uint16) * 257)
            case "I;16B":
                levels = (stroke.astype(np.uint16) * 257).astype(">u2")
                image = Image.frombytes(mode, (32, 16), levels.tobytes())
            case "I":
                image = Image.fromarray(stroke.astype(np.int32) * 257)
            case "LAB":
                image = Image.fromarray(stroke).convert("RGB").convert(mode)
            case _:
                image = Image.fromarray(stroke).convert(mode)
        options = {"JPEG": {"quality": 100}}.get(file_format) or LOSSLESS[file_format]
        pixels = read_image(encode(image, file_format, **options)).pixels
        assert np.abs(pixels.astype(int) - stroke).max() <= 1, mode


@pytest.mark.parametrize("file_format", ["TIFF", "GIF", "WEBP", "PNG"])
def test_the_first_of_many_frames_is_read(file_format: str) -> None:
    frames = [Image.fromarray(frame) for frame in (PICTURE, 255 - PICTURE, np.zeros_like(PICTURE))]
    content = save(frames[0], file_format, save_all=True, append_images=frames[1:], **LOSSLESS[file_format])
    assert np.array_equal(read_image(content).pixels, PICTURE)
    assert read_header(content) == ImageHeader(40, 24, file_format)


def test_a_photograph_with_further_pictures_behind_it_is_a_jpeg() -> None:
    content = save(Image.fromarray(PICTURE), "MPO", save_all=True, append_images=[Image.fromarray(255 - PICTURE)])
    assert Image.open(io.BytesIO(content)).format == "MPO"
    assert read_header(content) == ImageHeader(40, 24, "JPEG")
    assert np.abs(read_image(content).pixels.astype(int) - PICTURE).mean() < 8


@pytest.mark.parametrize("size", [(1, 200), (200, 1), (1, 1)])
@pytest.mark.parametrize("file_format", LOSSLESS)
def test_slivers_are_read(file_format: str, size: tuple[int, int], encode: Callable[..., bytes]) -> None:
    image = Image.new("L", size, 77)
    content = encode(image, file_format, **LOSSLESS[file_format])
    assert read_header(content) == ImageHeader(*size, file_format)
    assert np.array_equal(read_image(content).pixels, np.full(size[::-1], 77))


def test_real_strips_are_read_as_their_headers_say(strips: list[tuple[Path, str]]) -> None:
    for path, _ in strips:
        content = path.read_bytes()
        header, image = read_header(content), read_image(content)
        assert (image.width, image.height) == (header.width, header.height), path.name
        assert header.format == {".jpg": "JPEG", ".png": "PNG"}[path.suffix]


# Orientation


def upright(orientation: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The picture as EXIF says to show it; the comments say, like the standard, where row 0 and column 0 belong."""
    return {
        1: PICTURE,  # top, left
        2: PICTURE[:, ::-1],  # top, right
        3: PICTURE[::-1, ::-1],  # bottom, right
        4: PICTURE[::-1, :],  # bottom, left
        5: PICTURE.T,  # left, top
        6: PICTURE.T[:, ::-1],  # right, top
        7: PICTURE.T[::-1, ::-1],  # right, bottom
        8: PICTURE.T[::-1, :],  # left, bottom
    }[orientation]


def exif(orientation: int) -> Image.Exif:
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("file_format", ["PNG", "TIFF", "WEBP", "JPEG"])
def test_the_exif_orientation_is_applied(file_format: str, orientation: int) -> None:
    options = LOSSLESS.get(file_format, {"quality": 95})
    content = save(Image.fromarray(PICTURE), file_format, exif=exif(orientation), **options)
    expected = upright(orientation)
    assert read_header(content) == ImageHeader(expected.shape[1], expected.shape[0], file_format)
    pixels = read_image(content).pixels
    assert pixels.shape == expected.shape
    assert np.abs(pixels.astype(int) - expected).mean() <= (2 if file_format == "JPEG" else 0)


def test_an_orientation_behind_the_pixels_of_a_png_is_applied_and_known_from_the_header() -> None:
    data = exif(6).tobytes().removeprefix(b"Exif\x00\x00")
    content = FILES["PNG"]
    content = content[:-12] + png_chunk(b"eXIf", data) + content[-12:]
    assert read_header(content) == ImageHeader(24, 40, "PNG")
    assert np.array_equal(read_image(content).pixels, upright(6))


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_orientations_that_do_not_exist_are_ignored(orientation: int) -> None:
    content = save(Image.fromarray(PICTURE), "PNG", exif=exif(orientation))
    assert read_header(content) == ImageHeader(40, 24, "PNG")
    assert np.array_equal(read_image(content).pixels, PICTURE)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data", "ignore:Metadata Warning", "ignore:Truncated File Read")
@pytest.mark.parametrize(
    "damage", [b"", b"\x00", b"MM\x00*\x00\x00\xff\xff", b"II*\x00\x08\x00\x00\x00\xff\xff", b"x" * 40]
)
@pytest.mark.parametrize("file_format", ["PNG", "WEBP", "JPEG"])
def test_damaged_metadata_do_not_cost_the_picture(file_format: str, damage: bytes) -> None:
    options = LOSSLESS.get(file_format, {"quality": 95})
    content = save(Image.fromarray(PICTURE), file_format, exif=b"Exif\x00\x00" + damage, **options)
    assert read_header(content) == ImageHeader(40, 24, file_format)
    assert np.abs(read_image(content).pixels.astype(int) - PICTURE).mean() <= 2


# Refusals


def test_no_bytes_are_refused() -> None:
    for read in (read_header, read_image):
        with pytest.raises(EmptyImageError, match="no bytes"):
            read(b"")


@pytest.mark.parametrize(
    "content", [b"\x00", b"P", b"hello, world\n", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%PDF-1.7\n", b"RIFF"]
)
def test_what_is_no_image_is_refused(content: bytes) -> None:
    for read in (read_header, read_image):
        with pytest.raises(UndecodableImageError, match=f"supported format .{', '.join(FORMATS)}"):
            read(content)


@pytest.mark.parametrize("file_format", ["ICO", "PCX", "TGA", "JPEG2000", "EPS", "PDF", "SGI", "DDS", "DIB", "QOI"])
def test_formats_outside_the_contract_are_not_opened_even_if_pillow_knows_them(file_format: str) -> None:
    Image.init()
    if file_format not in Image.SAVE:
        pytest.skip(f"this Pillow does not write {file_format}")
    content = save(Image.fromarray(PICTURE).convert("RGB"), file_format)
    for read in (read_header, read_image):
        with pytest.raises(UndecodableImageError, match="supported format"):
            read(content)


def test_content_is_never_taken_for_a_file_name(
    tmp_path: Path, encode: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(encode(PICTURE))

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("a file was opened")

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr("io.open", refuse)
    with pytest.raises(UndecodableImageError):
        read_image(str(path).encode())
    for content in FILES.values():
        read_image(content)


@pytest.mark.parametrize(
    "content",
    [png_of_size(0, 5), png_of_size(5, 0), b"P5 0 5 255\n", b"P5 5 0 255\n", FILES["GIF"][:6] + bytes(7) + b";"],
)
def test_images_without_pixels_are_refused(content: bytes) -> None:
    for read in (read_header, read_image):
        with pytest.raises(UndecodableImageError):
            read(content)


def test_too_many_bytes_are_refused_whatever_they_are() -> None:
    for content in (FILES["PNG"], b"x" * 1000):
        limits = ImageLimits(max_bytes=len(content) - 1)
        for read in (read_header, read_image):
            with pytest.raises(ImageTooLargeError, match=f"has {len(content)} bytes; the limit is {len(content) - 1}"):
                read(content, limits)
    read_image(FILES["PNG"], ImageLimits(max_bytes=len(FILES["PNG"])))


def test_too_many_pixels_are_refused() -> None:
    for content in FILES.values():
        for read in (read_header, read_image):
            with pytest.raises(ImageTooLargeError, match="40 x 24 = 960 pixels; the limit is 959"):
                read(content, ImageLimits(max_pixels=959))
        read_image(content, ImageLimits(max_pixels=960))


def claiming(name: str) -> bytes:
    """A file of each format whose header claims a vast picture that it does not hold."""
    content = bytearray(FILES[name])
    match name:
        case "PNG":
            return png_of_size(60000, 60000, zlib.compress(b""))
        case "JPEG":
            at = content.index(b"\xff\xc0") + 5
            content[at : at + 4] = struct.pack(">HH", 60000, 60000)
        case "WEBP":
            # The lossless bitstream begins with 14 bits each of width and height, less one.
            at = content.index(b"\x2f", 20) + 1
            alpha_and_version = struct.unpack_from("<I", content, at)[0] >> 28
            struct.pack_into("<I", content, at, 9999 | 9999 << 14 | alpha_and_version << 28)
        case "BMP":
            content[18:26] = struct.pack("<ii", 60000, 60000)
        case "TIFF":
            tags = {256: 60000, 257: 60000}
            at = struct.unpack_from("<I", content, 4)[0]
            for entry in range(at + 2, at + 2 + 12 * struct.unpack_from("<H", content, at)[0], 12):
                tag = struct.unpack_from("<H", content, entry)[0]
                if tag in tags:
                    struct.pack_into("<HII", content, entry + 2, 4, 1, tags[tag])
        case "GIF":
            content[6:10] = struct.pack("<HH", 60000, 60000)
        case "PPM":
            return b"P5 60000 60000 255\n"
    return bytes(content)


@pytest.mark.parametrize("name", FORMATS)
def test_vast_pictures_are_refused_by_their_headers_without_a_word_from_pillow(name: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for read in (read_header, read_image):
            with pytest.raises(ImageTooLargeError, match="pixels; the limit is 25000000") as raised:
                read(claiming(name))
            assert re.search(r"has \d+ x \d+ = \d+ pixels", str(raised.value))
    assert caught == []


def test_a_gif_whose_frame_is_larger_than_its_screen_is_refused() -> None:
    content = bytearray(FILES["GIF"])
    at = content.index(b",")  # the image descriptor
    content[at + 5 : at + 9] = struct.pack("<HH", 60000, 60000)
    for read in (read_header, read_image):
        with pytest.raises(ImageTooLargeError, match="the limit is 25000000"):
            read(bytes(content))


@pytest.mark.parametrize(("width", "height"), [(10_000, 10_000), (20_000, 10_000)])
def test_limits_above_those_of_pillow_are_honoured_without_its_warnings(width: int, height: int) -> None:
    assert Image.MAX_IMAGE_PIXELS is not None
    assert width * height > Image.MAX_IMAGE_PIXELS
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        header = read_header(png_of_size(width, height), ImageLimits(max_pixels=width * height))
    assert header == ImageHeader(width, height, "PNG")
    assert caught == []


def test_the_header_is_read_without_the_pixels() -> None:
    content = png_of_size(300, 20, b"no pixels at all")
    assert read_header(content) == ImageHeader(300, 20, "PNG")
    with pytest.raises(UndecodableImageError, match="the PNG image is damaged or cut short"):
        read_image(content)


# Damage


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_file_cut_short_anywhere_is_refused_or_still_complete(name: str) -> None:
    content = FILES[name]
    complete = read_image(content).pixels
    for length in range(len(content)):
        try:
            pixels = read_image(content[:length]).pixels
        except ImageError:
            continue
        # Some formats end with bytes that hold no pixels. Half a picture must never pass for a whole one.
        assert np.array_equal(pixels, complete), length


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_file_cut_in_its_middle_is_refused(name: str) -> None:
    content = FILES[name]
    with pytest.raises(UndecodableImageError, match=ENCODINGS[name][0]):
        read_image(content[: len(content) // 2])


@given(data=st.data())
def test_real_strips_cut_short_are_refused_or_still_complete(
    data: st.DataObject, strips: list[tuple[Path, str]]
) -> None:
    content = data.draw(st.sampled_from(strips))[0].read_bytes()
    length = data.draw(st.integers(0, len(content) - 1))
    try:
        image = read_image(content[:length])
    except ImageError:
        return
    assert np.array_equal(image.pixels, read_image(content).pixels)


SMALL = ImageLimits(max_pixels=1_000_000)


def assert_read_or_refused(content: bytes) -> None:
    """Whatever the bytes, both functions return or raise an ImageError, and they agree with each other."""
    try:
        header = read_header(content, SMALL)
    except ImageError as error:
        with pytest.raises(type(error)):
            read_image(content, SMALL)
        return
    try:
        image = read_image(content, SMALL)
    except ImageError:
        return
    assert (image.width, image.height) == (header.width, header.height)


MAGIC = [content[:16] for content in FILES.values()] + [b"P%d " % number for number in range(1, 8)] + [b"Pf 3 2 -1\n"]


@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_nothing_but_image_errors(content: bytes) -> None:
    assert_read_or_refused(content)


@given(st.sampled_from(MAGIC), st.binary(max_size=200))
def test_arbitrary_bytes_behind_a_valid_beginning_raise_nothing_but_image_errors(magic: bytes, rest: bytes) -> None:
    assert_read_or_refused(magic + rest)


@given(
    st.sampled_from(sorted(FILES)),
    st.lists(st.tuples(st.integers(0, 2**16), st.binary(min_size=1, max_size=4)), min_size=1, max_size=4),
)
def test_damaged_files_raise_nothing_but_image_errors(name: str, damages: list[tuple[int, bytes]]) -> None:
    content = bytearray(FILES[name])
    for place, damage in damages:
        at = place % len(content)
        content[at : at + len(damage)] = damage
    assert_read_or_refused(bytes(content))


@pytest.mark.parametrize("stage", ["header", "pixels"])
def test_running_out_of_memory_is_not_blamed_on_the_image(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhaust(*arguments: object) -> None:
        raise MemoryError

    if stage == "header":
        monkeypatch.setitem(Image.OPEN, "PNG", (exhaust, Image.OPEN["PNG"][1]))
    else:
        monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", exhaust)
    with pytest.raises(MemoryError):
        read_image(FILES["PNG"])


def test_threads_read_what_one_thread_reads(strips: list[tuple[Path, str]]) -> None:
    contents = [*FILES.values(), *(path.read_bytes() for path, _ in strips)] * 5
    expected = [read_image(content).pixels for content in contents]
    with ThreadPoolExecutor(8) as pool:
        found = [image.pixels for image in pool.map(read_image, contents)]
    assert all(map(np.array_equal, found, expected))


def test_bytes_behind_the_image_do_not_matter() -> None:
    for name, content in FILES.items():
        assert np.array_equal(read_image(content + b"\x00trailing").pixels, read_image(content).pixels), name


# Grey images


def test_a_grey_image_knows_its_size() -> None:
    image = GreyImage(PICTURE)
    assert (image.width, image.height) == (40, 24)
    assert to_grey(Image.fromarray(PICTURE)).pixels.tolist() == PICTURE.tolist()


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_a_grey_image_has_pixels(shape: tuple[int, int]) -> None:
    with pytest.raises(EmptyImageError, match=f"no pixels: it is {shape[1]} x {shape[0]}"):
        GreyImage(np.zeros(shape, dtype=np.uint8))


def test_a_pillow_image_without_pixels_is_refused() -> None:
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I", "I;16", "F"):
        with pytest.raises(EmptyImageError):
            to_grey(Image.new(mode, (0, 7)))


@pytest.mark.parametrize("pixels", [np.zeros((4, 5)), np.zeros((4, 5, 3), dtype=np.uint8), np.zeros(5, dtype=np.uint8)])
def test_a_grey_image_is_bytes_by_rows(pixels: np.ndarray[Any, np.dtype[Any]]) -> None:
    with pytest.raises(ImageError, match=r"must be uint8 \(height, width\)"):
        GreyImage(pixels)
