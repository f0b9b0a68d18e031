"""Which kind of XML a file is, told without reading more of it than its beginning."""

from __future__ import annotations

from pathlib import Path
from xml.parsers import expat

from glyphline.training.errors import DataError


class _RootSeen(Exception):
    """The root element has begun; all that follows does not matter."""


def root_tag(path: Path) -> str:
    """Returns the name of a file's root element, without a namespace, and reads no further.

    Raises:
        DataError: If it is not XML up to there.
    """
    found = ""
    parser = expat.ParserCreate(namespace_separator="}")

    def start(name: str, _: dict[str, str]) -> None:
        nonlocal found
        found = name.rpartition("}")[2]
        raise _RootSeen

    parser.StartElementHandler = start
    try:
        with path.open("rb") as file:
            while block := file.read(4096):
                parser.Parse(block)
            parser.Parse(b"", True)
    except _RootSeen:
        return found
    except expat.ExpatError as error:
        raise DataError(f"{path} is not XML: {error}") from error
    except (LookupError, ValueError) as error:  # an encoding that does not exist, or of several bytes a character
        raise DataError(f"{path} is in an encoding that is not read: {error}; save it as UTF-8") from error
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from error
    return found
