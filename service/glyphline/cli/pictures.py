"""Names the drawings that `glyphline recognize --show` makes."""

from __future__ import annotations

from pathlib import Path

from glyphline.service.jobs.names import DRAWING_SUFFIX


class PictureFolder:
    """Names the drawings of one run: `<name>.reading.png`, beside the picture or in one folder, none used twice."""

    def __init__(self, folder: Path | None) -> None:
        """Keeps `folder`; None is beside each picture."""
        self._folder = folder
        self._taken: set[Path] = set()

    def path_for(self, source: str) -> Path:
        """Chooses the drawing's path; the standard input's is `stdin.reading.png`."""
        picture = Path("stdin" if source == "-" else source)
        folder = picture.parent if self._folder is None else self._folder
        # a.png and a.jpg share a stem, x/a.png and y/a.png even a name.
        candidates = [picture.stem, picture.name, *(f"{picture.stem}-{number}" for number in range(2, 10_000))]
        path = next(path for name in candidates if (path := folder / f"{name}{DRAWING_SUFFIX}") not in self._taken)
        self._taken.add(path)
        return path
