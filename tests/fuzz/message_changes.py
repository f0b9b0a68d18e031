"""Changes protobuf messages where a change of their bytes would mostly make them unreadable."""

from __future__ import annotations

import random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

__all__ = ["change_message"]

_WHOLE = [0, 1, -1, 2, 5, 100, 101, 256, 257, 5000, 2**31 - 1, -(2**31)]
_REAL = [0.0, -0.0, 0.3, 1.0, -1.0, 10.0, 10.1, 1e-45, 3.4e38, float("inf"), float("-inf"), float("nan")]
_TEXT = [
    "",
    " ",
    "0",
    "7",
    "90",
    "123",
    "digits",
    "digits-ctc",
    "digits:2",
    "codes",
    "words",
    "one",
    "latest",
    "1",
    "²",
]
_TEXT += ["0123456789", "\0", "é", "e\u0301", "\U0001f4a1", "\u202e", "x" * 129, "../../etc/passwd", "a b  c ", "%s"]
_KINDS: dict[int, list[Any]] = {
    FieldDescriptor.CPPTYPE_INT32: _WHOLE,
    FieldDescriptor.CPPTYPE_ENUM: _WHOLE,
    FieldDescriptor.CPPTYPE_FLOAT: _REAL,
    FieldDescriptor.CPPTYPE_BOOL: [False, True],
    FieldDescriptor.CPPTYPE_STRING: _TEXT,
}
_NEW_LIKELIHOOD = 0.3


def change_message(message: Message, choose: random.Random, contents: list[bytes]) -> None:
    """Changes one field of a message, or of a message within it.

    Args:
        message: The message.
        choose: Makes the choices.
        contents: What fields of bytes may become.
    """
    fields: list[Any] = list(message.DESCRIPTOR.fields)
    field = choose.choice(fields)
    if choose.random() < 0.1:
        message.ClearField(field.name)
        return
    value = getattr(message, field.name)
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        if field.is_repeated:
            value = value.add() if not value or choose.random() < _NEW_LIKELIHOOD else choose.choice(value)
        value.SetInParent()
        if value.DESCRIPTOR.fields:
            change_message(value, choose, contents)
        return
    if field.type == FieldDescriptor.TYPE_BYTES:
        values: list[Any] = contents
    else:
        values = _KINDS[field.cpp_type]
    if field.is_repeated:
        value.append(choose.choice(values))
    else:
        setattr(message, field.name, choose.choice(values))
