"""What is packed can be unpacked, by us and by NumPy, and nothing else can."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.service.open_inference.tensors import pack_bytes, pack_floats, pack_integers, unpack_bytes

ELEMENTS = st.lists(st.binary(max_size=40), max_size=12)


@given(ELEMENTS)
def test_bytes_come_back(elements: list[bytes]) -> None:
    packed = pack_bytes(elements)
    assert unpack_bytes(packed, len(elements)) == elements
    assert len(packed) == 4 * len(elements) + sum(map(len, elements))


def test_the_length_stands_before_each_element_with_its_least_byte_first() -> None:
    assert pack_bytes([b"ab", b"", b"\0"]) == b"\2\0\0\0ab\0\0\0\0\1\0\0\0\0"
    assert pack_bytes([bytes(258)])[:4] == b"\2\1\0\0"


@given(ELEMENTS, st.integers(0, 20))
def test_another_number_of_elements_is_refused(elements: list[bytes], count: int) -> None:
    if count == len(elements):
        return
    with pytest.raises(ValueError, match="its shape says"):
        unpack_bytes(pack_bytes(elements), count)


@given(ELEMENTS.filter(bool), st.data())
def test_whatever_is_cut_off_is_missed(elements: list[bytes], data: st.DataObject) -> None:
    packed = pack_bytes(elements)
    cut = data.draw(st.integers(1, len(packed)))
    with pytest.raises(ValueError, match=r"has \d+ elements where|ends within element"):
        unpack_bytes(packed[:-cut], len(elements))


@given(st.binary(max_size=60), st.integers(0, 8))
def test_any_bytes_are_elements_or_refused(content: bytes, count: int) -> None:
    try:
        elements = unpack_bytes(content, count)
    except ValueError:
        return
    assert pack_bytes(elements) == content


@given(st.lists(st.floats(width=32, allow_nan=False)), st.lists(st.integers(-(2**31), 2**31 - 1)))
def test_numbers_are_those_of_numpy(floats: list[float], integers: list[int]) -> None:
    assert np.frombuffer(pack_floats(floats), "<f4").tolist() == floats
    assert np.frombuffer(pack_integers(integers), "<i4").tolist() == integers
