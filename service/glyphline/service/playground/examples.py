"""The pictures that come with Glyphline to try: strips of digits, and the one that each model was tested on."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

from glyphline.models.image import read_header
from glyphline.models.repository import ModelRepository, pretrained_root

__all__ = ["Example", "examples"]

_STRIPS = "examples"
_DIGITS = "digits"


@dataclass(frozen=True, slots=True)
class Example:
    """A picture to try.

    Attributes:
        name: What it is called on the page.
        content: Bytes of an image file.
        task: Of the models that can read it.
    """

    name: str
    content: bytes
    task: str

    @property
    def address(self) -> str:
        """All of it, as a `data:` address."""
        kind = read_header(self.content).format.lower()
        return f"data:image/{kind};base64,{base64.b64encode(self.content).decode()}"


def examples() -> list[Example]:
    """Lists the pictures."""
    return [*_strips(), *_probes()]


def _strips() -> Iterator[Example]:
    folder = files("glyphline.service.playground").joinpath(_STRIPS)
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if file.name.endswith(".jpg"):
            yield Example(file.name.removesuffix(".jpg").replace("_", " "), file.read_bytes(), _DIGITS)


def _probes() -> Iterator[Example]:
    """Yields the strip that each shipped model is probed with, of models of digits none: there are strips of those."""
    repository = ModelRepository([pretrained_root()])
    for name in repository.names():
        bundle = repository.load(name)
        if bundle.manifest.task != _DIGITS:
            yield Example(name, bundle.file(bundle.manifest.probe.image).read_bytes(), bundle.manifest.task)
