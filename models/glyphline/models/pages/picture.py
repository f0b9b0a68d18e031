"""Where the picture of a page is, which is seldom where its file says."""

from __future__ import annotations

import os

from glyphline.models.image import SUFFIXES

__all__ = ["find_page", "picture_name"]


def picture_name(stated: str) -> str:
    """Returns the name of a picture of which a file may state an address, or a path of another machine."""
    return stated.replace("\\", "/").rpartition("/")[2]


def find_page(xml: str | os.PathLike[str], stated: str) -> str | None:
    """Finds the picture of a page: the one that its file names, or the one with the file's own name.

    Args:
        xml: Path of the PAGE or ALTO file.
        stated: What it says of the picture: a name, a path of another machine, or an address.

    Returns:
        The picture's path, or None if none is there.
    """
    folder, file = os.path.split(xml)
    name = picture_name(stated)
    own, base = os.path.splitext(file)[0], file.partition(".")[0]
    stems = dict.fromkeys((os.path.splitext(name)[0] if name else own, own, base))
    names = ([name] if name else []) + [f"{stem}{suffix}" for stem in stems for suffix in SUFFIXES]
    for place in (folder, os.path.join(folder, os.pardir)):  # Transkribus puts the XML into a folder `page`
        for each in names:
            path = os.path.normpath(os.path.join(place, each))
            if os.path.isfile(path):
                return path
    return None
