"""The size of a plain PNG or JPEG file from a few of its bytes.

A server looks at the header of every image before it lets it wait. Nearly all are PNG or JPEG files without anything
that could turn them, for which Pillow's own reading of the header takes longer than all else that is done at the door.
Whatever is not plain is left to Pillow.
"""

import struct
import zlib

__all__ = ["plain_size"]

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_FORMS = frozenset(  # bits and type of colour that there are
    {(1, 0), (2, 0), (4, 0), (8, 0), (16, 0), (8, 2), (16, 2), (1, 3), (2, 3), (4, 3), (8, 3), (8, 4), (16, 4), (8, 6)}
    | {(16, 6)}
)
# Chunks without words, in which an orientation could be written, and without further pictures.
_PNG_CHUNKS = frozenset({b"PLTE", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"pHYs", b"bKGD", b"sBIT", b"hIST", b"tIME"})

_JPEG = b"\xff\xd8\xff"
_JPEG_FRAMES = frozenset({0xC0, 0xC1, 0xC2})
_JPEG_SCAN = 0xDA
# Tables, comments, JFIF and Adobe: not EXIF, and not the segments with which phones add further pictures.
_JPEG_SEGMENTS = frozenset({0xC4, 0xDB, 0xDD, 0xE0, 0xEE, 0xFE})


def plain_size(content: bytes) -> tuple[int, int, str] | None:
    """Reads the size of an image file that is plain.

    Args:
        content: The file's bytes.

    Returns:
        Width, height and format, as Pillow would tell them; None if the file is not plain, which means nothing else. A
        file may have a size and yet be damaged.
    """
    try:
        if content.startswith(_PNG):
            return _png_size(content)
        if content.startswith(_JPEG):
            return _jpeg_size(content)
    except (struct.error, IndexError):  # it ends too early
        pass
    return None


def _png_size(content: bytes) -> tuple[int, int, str] | None:
    length, kind, width, height, bits, colour, compression, filtering, interlace, checksum = struct.unpack_from(
        ">I4sIIBBBBBI", content, 8
    )
    sound = (length, kind, compression, filtering) == (13, b"IHDR", 0, 0) and checksum == zlib.crc32(content[12:29])
    if not sound or not width or not height or interlace > 1 or (bits, colour) not in _PNG_FORMS or b"eXIf" in content:
        return None
    position = 33
    while True:
        length, kind = struct.unpack_from(">I4s", content, position)
        if kind == b"IDAT":
            return width, height, "PNG"
        if kind not in _PNG_CHUNKS:
            return None
        position += length + 12  # length, kind and checksum are four bytes each


def _jpeg_size(content: bytes) -> tuple[int, int, str] | None:
    size: tuple[int, int, str] | None = None
    position = 2
    while content[position] == 0xFF:
        marker = content[position + 1]
        if marker == _JPEG_SCAN:
            return size
        (length,) = struct.unpack_from(">H", content, position + 2)
        if marker in _JPEG_FRAMES and size is None:
            bits, height, width, layers = struct.unpack_from(">BHHB", content, position + 4)
            if bits != 8 or not width or not height or layers not in (1, 3, 4):
                return None
            size = width, height, "JPEG"
        elif marker not in _JPEG_SEGMENTS:
            return None
        position += 2 + length
    return None
