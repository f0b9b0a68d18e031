from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

WritePage = Callable[..., Path]

PAGE = """<?xml version="1.0" encoding="UTF-8"?>
<PcGts xmlns="http://schema.primaresearch.org/PAGE/gts/pagecontent/2019-07-15">
<Page imageFilename="{image}" imageWidth="{width}" imageHeight="{height}"><TextRegion id="r">
{lines}
</TextRegion></Page></PcGts>
"""
ALTO = """<?xml version="1.0" encoding="UTF-8"?>
<alto xmlns="http://www.loc.gov/standards/alto/ns-v4#"><Description><MeasurementUnit>{unit}</MeasurementUnit>
<sourceImageInformation><fileName>{image}</fileName></sourceImageInformation></Description>
<Layout><Page WIDTH="{width}" HEIGHT="{height}"><PrintSpace><TextBlock ID="b">
{lines}
</TextBlock></PrintSpace></Page></Layout></alto>
"""


@pytest.fixture(scope="session")
def write_page() -> WritePage:
    """Returns a function that sets real strips one below the other on a page, and writes the page and its XML."""

    def write(
        folder: Path, strips: list[tuple[NDArray[np.uint8], str]], kind: str = "page", unit: str = "pixel"
    ) -> Path:
        height = 20 + sum(pixels.shape[0] + 12 for pixels, _ in strips)
        page = np.full((height, 400), 230, np.uint8)
        top, lines = 20, []
        for number, (pixels, text) in enumerate(strips):
            tall, wide = pixels.shape
            page[top : top + tall, 30 : 30 + wide] = pixels
            box = (30, top, 30 + wide - 1, top + tall - 1)
            lines.append(_page_line(number, box, text) if kind == "page" else _alto_line(number, box, text, unit))
            top += tall + 12
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(page).save(folder / "p1.png")
        scale = 1 if unit == "pixel" else 10
        template = PAGE if kind == "page" else ALTO
        path = folder / "p1.xml"
        path.write_text(
            template.format(
                image="C:\\scans\\p1.png", width=400 * scale, height=height * scale, unit=unit, lines="\n".join(lines)
            ),
            encoding="utf-8",
        )
        return path

    return write


def _page_line(number: int, box: tuple[int, int, int, int], text: str) -> str:
    left, top, right, bottom = box
    points = f"{left},{top} {right},{top} {right},{bottom} {left},{bottom}"
    return (
        f'<TextLine id="l{number}"><Coords points="{points}"/><Word id="w{number}"><TextEquiv><Unicode>word</Unicode>'
        f'</TextEquiv></Word><TextEquiv index="1"><Unicode>second</Unicode></TextEquiv>'
        f'<TextEquiv index="0"><Unicode>{text}</Unicode></TextEquiv></TextLine>'
    )


def _alto_line(number: int, box: tuple[int, int, int, int], text: str, unit: str) -> str:
    scale = 1 if unit == "pixel" else 10
    left, top, right, bottom = (value * scale for value in box)
    words = '<SP WIDTH="3"/>'.join(f'<String CONTENT="{word}"/>' for word in text.split(" "))
    return (
        f'<TextLine ID="l{number}" HPOS="{left}" VPOS="{top}" WIDTH="{right - left}" HEIGHT="{bottom - top}">'
        f"{words}</TextLine>"
    )


@pytest.fixture(scope="session")
def png() -> Callable[[NDArray[np.uint8]], bytes]:
    """Returns a function that encodes pixels as PNG."""

    def encode(pixels: NDArray[np.uint8]) -> bytes:
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "PNG")
        return buffer.getvalue()

    return encode
