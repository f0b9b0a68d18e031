"""How the protocol writes the elements of tensors raw: numbers in a row, BYTES each with its length before it."""

from __future__ import annotations

import struct
from collections.abc import Sequence

__all__ = ["pack_bytes", "pack_floats", "pack_integers", "unpack_bytes"]

_LENGTH = struct.Struct("<I")


def pack_bytes(elements: Sequence[bytes]) -> bytes:
    """Writes the elements of a BYTES tensor."""
    return b"".join(part for element in elements for part in (_LENGTH.pack(len(element)), element))


def unpack_bytes(content: bytes, count: int) -> list[bytes]:
    """Reads the elements of a BYTES tensor.

    Args:
        content: What was sent.
        count: How many elements its shape says.

    Raises:
        ValueError: If it has fewer or more, or ends within one; the message goes on from the tensor's name.
    """
    elements: list[bytes] = []
    at = 0
    for index in range(count):
        start = at + _LENGTH.size
        if start > len(content):
            raise ValueError(f"has {index} elements where its shape says {count}, and {len(content) - at} bytes more")
        (size,) = _LENGTH.unpack_from(content, at)
        at = start + size
        if at > len(content):
            raise ValueError(f"ends within element {index}, of {size} bytes of which {len(content) - start} are there")
        elements.append(content[start:at])
    if at < len(content):
        raise ValueError(f"has {len(content) - at} bytes after the {count} elements that its shape says")
    return elements


def pack_floats(elements: Sequence[float]) -> bytes:
    """Writes the elements of an FP32 tensor."""
    return struct.pack(f"<{len(elements)}f", *elements)


def pack_integers(elements: Sequence[int]) -> bytes:
    """Writes the elements of an INT32 tensor."""
    return struct.pack(f"<{len(elements)}i", *elements)
