"""What the tests of the training room share: a small data root, made by themselves, and a configuration for it.

Without the packages of the extra `train` none of these tests is collected.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

collect_ignore_glob = ["*"] if any(find_spec(name) is None for name in ("torch", "matplotlib", "onnx")) else []

CONFIG = """
name = "small"
alphabet = "0123456789.,:/-+ "
seed = 3
max_output_length = 16

[image]
height = 16

[network]
heads = {heads}
channels = [8, 8, 16, 16]
encoder_cell = "{cell}"
encoder_size = 16
encoder_layers = 1
decoder_cell = "{decoder_cell}"
decoder_size = 16
attention_size = 16

[loop]
epochs = {epochs}
strips_per_epoch = 96
batch_columns = 1024
workers = 0
validate_every = 1
precision = "fp32"

[[sources]]
kind = "composed"
longest = 4
[sources.characters]
reader = "npz"
path = "characters"

[[sources]]
kind = "real"
path = "strips"

[[sources]]
kind = "rendered"
fonts = "fonts"
cells = 0.3
longest = 6

[[sources]]
kind = "readings"
longest = 4
[sources.characters]
reader = "folder"
path = "cells"

[[sources]]
kind = "blank"

[validation.strips]
kind = "folder"
path = "strips"

[validation.composed]
kind = "strips"
longest = 7
count = 12
[validation.composed.characters]
reader = "npz"
path = "characters"
"""


def find_font() -> Path:
    """Returns the font that comes with matplotlib."""
    import matplotlib  # noqa: PLC0415  (this file is read where there is none, too)

    return Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"


def draw_text(text: str, size: int = 20) -> Image.Image:
    """Draws dark text on white."""
    font = ImageFont.truetype(str(find_font()), size)
    image = Image.new("L", (max(8, int(font.getlength(text)) + 12), size + 12), 255)
    ImageDraw.Draw(image).text((6, 2), text, fill=0, font=font)
    return image


@pytest.fixture(scope="session")
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data root with single characters, cells of two meters, labelled strips and one font."""
    root = tmp_path_factory.mktemp("data")
    digits = [digit for digit in "0123456789" for _ in range(3)]
    (root / "characters").mkdir()
    drawn = [255 - np.asarray(draw_text(digit).resize((28, 28))) for digit in digits]
    np.savez(root / "characters" / "images.npz", np.stack(drawn))
    labels = "".join(f"images.npz#{index}\t{digit}\n" for index, digit in enumerate(digits))
    (root / "characters" / "labels.tsv").write_text(labels)
    for folder, names in (
        ("cells", [(f"meter{index % 2}__{index}.png", digit) for index, digit in enumerate(digits)]),
        ("strips", [(f"strip{number}.png", str(number)) for number in (7, 12, 345, 9081, 55, 20406)]),
    ):
        (root / folder).mkdir()
        for name, text in names:
            draw_text(text).save(root / folder / name)
        (root / folder / "labels.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in names))
    (root / "fonts").mkdir()
    (root / "fonts" / "DejaVuSans.ttf").write_bytes(find_font().read_bytes())
    return root


def write_config(
    folder: Path,
    *,
    epochs: int = 2,
    heads: str = '["ctc", "attention"]',
    cell: str = "lstm",
    decoder_cell: str = "gru",
    name: str = "small.toml",
) -> Path:
    """Writes a configuration of a network that trains in seconds."""
    path = folder / name
    path.write_text(CONFIG.format(epochs=epochs, heads=heads, cell=cell, decoder_cell=decoder_cell))
    return path


@pytest.fixture(scope="session")
def make_config() -> object:
    """Returns `write_config`, for tests that want a variant."""
    return write_config
