"""How many strips a core draws in a second, beside what Pillow needs to write their texts and nothing else.

    python benchmarks/render.py --data-root data [--count 4000] [--fonts 24]

Fonts and word lists are those that `scripts/fetch_fonts.py` and `scripts/fetch_words.py` fetch below the data root.
Each figure is of CPU time, after as many strips again to warm up, so that other work changes it little: a
font's glyphs are drawn once in a process, and `--fonts` is how many fonts of each folder are taken, so that a short run
is as warm as training is after its first minutes. The last rows write shards and read them as `kind = "real"` does.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from machine import describe_machine, print_report
from PIL import Image, ImageDraw
from rich.table import Table

from glyphline.training.config import RenderedConfig
from glyphline.training.datasets.build import build_source
from glyphline.training.datasets.joined import JoinedStrips
from glyphline.training.datasets.lettered import LetteredStrips
from glyphline.training.datasets.readers import read_dataset
from glyphline.training.datasets.readers.item import encode_png
from glyphline.training.datasets.real import RealStrips
from glyphline.training.datasets.rendered import load_font
from glyphline.training.datasets.samples import Sample, SampleSource
from glyphline.training.datasets.writers import Target, open_writer

STYLES: dict[str, tuple[tuple[str, ...], int]] = {
    "print": (("text", "printed", "typewriter"), 40),
    "scene": (("scene", "text"), 14),
    "receipt": (("mono", "matrix", "text"), 32),
    "pen": (("handwriting", "script"), 32),
}
"""Folders of fonts and greatest length of the texts of each style."""


@dataclass(frozen=True)
class Bare:
    """Pillow's own drawing of the same texts with the same fonts: black on white and nothing else."""

    source: LetteredStrips

    def draw(self, random: np.random.Generator) -> Sample:
        """Writes one text."""
        from glyphline.training.datasets.dice import Dice  # noqa: PLC0415

        dice = Dice(random)
        path = dice.pick(self.source.fonts)
        text = self.source.texts.draw(dice)
        font = load_font(path, 32)
        left, top, right, bottom = (int(value) for value in font.getbbox(text))
        image = Image.new("L", (max(1, right - left), max(1, bottom - top)), 255)
        ImageDraw.Draw(image).text((-left, -top), text, fill=0, font=font)
        return Sample(np.asarray(image), text, path.name)


def open_style(style: str, root: Path, fonts: int) -> LetteredStrips:
    """Opens a style with some of its fonts."""
    folders, longest = STYLES[style]
    lists = sorted(path.relative_to(root).as_posix() for path in (root / "words").glob("*.txt"))
    config = RenderedConfig.model_validate(
        {
            "kind": "rendered",
            "style": style,
            "fonts": [f"fonts/{folder}" for folder in folders],
            "longest": longest,
            "texts": {"lists": lists},
        }
    )
    source = build_source(config, root)
    assert isinstance(source, LetteredStrips)
    chosen = source.fonts[:: max(1, len(source.fonts) // (fonts * len(folders)))]
    return replace(source, fonts=chosen)


def seconds(work: Callable[[np.random.Generator], object], count: int) -> float:
    """CPU seconds of one of `count` calls, after as many to warm up."""
    random = np.random.default_rng(1)
    for _ in range(count):
        work(random)
    start = time.process_time()
    for _ in range(count):
        work(random)
    return (time.process_time() - start) / count


def write_shards(source: SampleSource, folder: Path, target: Target, count: int) -> float:
    """CPU seconds of a strip that is drawn and written."""
    random = np.random.default_rng(2)
    start = time.process_time()
    with open_writer(folder, target) as writer:
        for number in range(count):
            sample = source.draw(random)
            writer.add(f"{number:07d}.png", encode_png(sample.pixels, level=1), sample.text)
    return (time.process_time() - start) / count


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-root", type=Path, default=Path("data"))
    parser.add_argument("--count", type=int, default=3000, help="strips of each kind")
    parser.add_argument("--fonts", type=int, default=24, help="fonts of each folder")
    arguments = parser.parse_args()
    root, count = arguments.data_root, arguments.count
    table = Table("strips", "strips/s a core", "ms a strip", "of Pillow's text alone")
    rows: list[tuple[str, float]] = []
    bare = 0.0
    for style in STYLES:
        source = open_style(style, root, arguments.fonts)
        bare = bare or seconds(Bare(source).draw, count)
        rows.append((f"{style}, on the fly", seconds(source.draw, count)))
    scene = open_style("scene", root, arguments.fonts)
    rows.append(("scene, two in ten joined", seconds(JoinedStrips(scene, 0.2).draw, count)))
    with tempfile.TemporaryDirectory(prefix="glyphline-render-") as folder:
        targets: tuple[Target, ...] = ("webdataset", "parquet")
        for target in targets:
            path = Path(folder) / target
            rows.append((f"scene, drawn and written as {target}", write_shards(scene, path, target, count)))
            strips = RealStrips(read_dataset(path))
            strips.cache.max_bytes = 0  # each picture is decoded anew
            rows.append((f"{target}, read as it is", seconds(lambda r, s=strips: _read(s, r), count)))  # type: ignore[misc]
            rows.append((f"{target}, read and varied", seconds(strips.draw, count)))
    table.add_row("Pillow's text alone", f"{1 / bare:,.0f}", f"{1000 * bare:.2f}", "1.00")
    for name, each in rows:
        table.add_row(name, f"{1 / each:,.0f}", f"{1000 * each:.2f}", f"{each / bare:.2f}")
    print_report(table, describe_machine())


def _read(strips: RealStrips, random: np.random.Generator) -> object:
    """Decodes one picture."""
    return strips.images[int(random.integers(len(strips.images)))].load()


if __name__ == "__main__":
    main()
