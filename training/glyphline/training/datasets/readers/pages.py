"""The lines of PAGE and ALTO files that somebody has transcribed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from glyphline.models.cut import Points
from glyphline.models.errors import PageError
from glyphline.models.pages import find_page, lines_of
from glyphline.training.datasets.readers.cut import PagePicture
from glyphline.training.datasets.readers.item import LabelledImage
from glyphline.training.errors import DataError


def read_pages(path: Path, root: Path, cut: str = "polygon") -> Iterator[LabelledImage]:
    """Reads the lines of one file. Lines without text are left out: they are those that nobody has transcribed.

    Args:
        path: The XML file.
        root: Folder that names are relative to.
        cut: `polygon`, or `box` for all of the polygon's box.

    Raises:
        DataError: If it is neither PAGE nor ALTO XML, its picture is missing, or a line is nowhere.
    """
    try:
        lines = lines_of(path.read_bytes(), str(path))
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    except PageError as error:
        raise DataError(str(error)) from error
    name = path.relative_to(root).as_posix()
    pages: dict[str, Path] = {}
    for line in lines:
        if line.text is None:
            continue
        if line.stated not in pages:
            pages[line.stated] = _find_page(path, line.stated)
        if not line.outline:
            raise DataError(f"{path}, line {line.line}: {line.fault}")
        outline = line.outline if cut == "polygon" else _box_of(line.outline)
        picture = PagePicture(pages[line.stated], outline, line.size)
        yield LabelledImage(f"{name}#{line.label}", line.text, picture, path, line.line)


def _find_page(path: Path, stated: str) -> Path:
    page = find_page(path, stated)
    if page is None:
        raise DataError(
            f"{path}: the picture of its page, {stated!r}, is not beside it, and no {path.stem}.png or .jpg is"
        )
    return Path(page)


def _box_of(polygon: Points) -> Points:
    """Returns the corners of a polygon's box."""
    x, y = [point[0] for point in polygon], [point[1] for point in polygon]
    return ((min(x), min(y)), (max(x), max(y)))
