"""The images that benchmarks read: encoded files, cycled to the number wanted and ordered by width."""

from __future__ import annotations

from itertools import cycle, islice
from pathlib import Path

from glyphline.models.errors import ImageError
from glyphline.models.image import ImageSettings, normalised_width, read_header

STRIPS = Path(__file__).parents[1] / "tests" / "data" / "strips"
SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".pgm", ".ppm"}


def load_strips(folder: Path, count: int, settings: ImageSettings) -> list[bytes]:
    """Reads `count` encoded images below `folder`, starting over when it holds fewer.

    They come narrow to wide, as a batcher that groups by width would hand them on; images that the recogniser refuses
    are no part of a benchmark and are passed over.
    """
    widths: list[tuple[int, bytes]] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in SUFFIXES:
            continue
        content = path.read_bytes()
        try:
            header = read_header(content)
            widths.append((normalised_width(header.width, header.height, settings), content))
        except ImageError:
            continue
    if not widths:
        raise SystemExit(f"no readable image in {folder}")
    chosen = islice(cycle(widths), count)
    return [content for _, content in sorted(chosen, key=lambda pair: pair[0])]
