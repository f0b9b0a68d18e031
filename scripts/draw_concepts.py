"""Draw docs/images/concepts.svg: a real strip, what a network says of its columns, and the text in it.

    python scripts/draw_concepts.py

Needs the extra `train`, for matplotlib. The same models draw the same picture, to the byte.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding import DecodingOptions
from glyphline.models.decoding.readings import Reading
from glyphline.models.image import normalise, read_image
from glyphline.models.recognizer import Recognizer
from glyphline.models.repository import ModelRepository, pretrained_root
from glyphline.models.session import open_session

ROOT = Path(__file__).parents[1]
STRIP = ROOT / "tests" / "data" / "strips" / "semeion_19852.png"
OUTPUT = ROOT / "docs" / "images" / "concepts.svg"
INK = "#303f9f"


def network_output(recognizer: Recognizer, strip: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Returns the probabilities (frames, symbols) that the network of a CTC bundle gives for a normalised strip."""
    manifest = recognizer.bundle.manifest
    width = -(-strip.shape[1] // manifest.width_multiple) * manifest.width_multiple
    padded = np.zeros((1, 1, strip.shape[0], width), np.uint8)
    padded[0, 0, :, : strip.shape[1]] = strip
    session = open_session(recognizer.bundle.file(manifest.graphs["network"]), "cpu", 1)
    inputs = {"images": padded, "widths": np.array([strip.shape[1]], np.int64)}
    log_probabilities, lengths = session.run(["log_probabilities", "lengths"], inputs)
    probabilities: NDArray[np.float32] = np.exp(log_probabilities[0, : int(lengths[0])])
    return probabilities


def draw_network(axes: Axes, probabilities: NDArray[np.float32], symbols: list[str], frame: float) -> None:
    """Draws probabilities by column of the strip: digits from top to bottom, last the blank."""
    rows = [*range(1, 11), 0]
    names = [symbols[row - 1] for row in rows[:-1]] + ["blank"]
    frames = len(probabilities)
    axes.imshow(
        probabilities[:, rows].T, cmap="Blues", aspect="auto", extent=(0, frames * frame, len(rows), 0), vmin=0, vmax=1
    )
    axes.set_yticks(np.arange(len(rows)) + 0.5, names, fontsize=8)
    axes.set_ylabel("network\nprobability of\neach symbol", rotation=0, ha="right", va="center", labelpad=12)


def draw_text(axes: Axes, reading: Reading, scale: float, padding: float) -> None:
    """Draws the text: every character where it was read, with its confidence below it."""
    for token in reading.alternatives[0].tokens:
        assert token.span is not None
        start, end = (edge * scale + padding for edge in token.span)
        axes.plot([start + 1, end - 1], [0.98, 0.98], color=INK, linewidth=1.5)
        axes.text((start + end) / 2, 0.6, token.text, ha="center", va="center", fontsize=20, color=INK)
        axes.text((start + end) / 2, 0.22, f"{token.confidence:.0%}", ha="center", va="center", fontsize=8)
    axes.set_ylim(0, 1)
    axes.set_yticks([])
    said = f"decoder\nthe text “{reading.text}”,\nconfidence {reading.confidence:.0%}"
    axes.set_ylabel(said, rotation=0, ha="right", va="center", labelpad=12)


def draw(strip_file: Path, output: Path) -> None:
    """Draws the picture.

    Args:
        strip_file: A strip of digits.
        output: SVG to write.
    """
    recognizer = Recognizer.load(load_bundle(ModelRepository([pretrained_root()]).resolve("digits-ctc")))
    manifest = recognizer.bundle.manifest
    grey = read_image(strip_file.read_bytes())
    strip = normalise(grey, manifest.image)
    (reading,) = recognizer.recognize([grey], DecodingOptions(token_details=True))
    assert isinstance(reading, Reading)
    probabilities = network_output(recognizer, strip)

    mpl.rcParams.update({"font.family": "DejaVu Sans", "svg.hashsalt": "glyphline", "font.size": 9})
    figure = Figure(figsize=(8, 4.6), layout="constrained", facecolor="white")
    upper, middle, lower = figure.subplots(3, 1, sharex=True, height_ratios=[1.2, 2.2, 1])
    upper.imshow(strip, cmap="gray", aspect="auto", extent=(0, strip.shape[1], strip.shape[0], 0))
    upper.set_yticks([])
    upper.set_ylabel(f"strip\nnormalised to\n{strip.shape[0]} pixels", rotation=0, ha="right", va="center", labelpad=12)
    draw_network(middle, probabilities, list(manifest.alphabet), manifest.pixels_per_frame)
    draw_text(lower, reading, manifest.image.height / grey.height, manifest.image.padding)
    for axes in (upper, middle, lower):
        axes.set_xlim(0, len(probabilities) * manifest.pixels_per_frame)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
    lower.set_xlabel("column of the strip, in pixels")
    figure.savefig(output, metadata={"Date": None, "Creator": None})


def main() -> None:
    """Parses the command line and draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strip", type=Path, default=STRIP, help="the strip (default: one of tests/data/strips)")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the picture (default: docs/images/concepts.svg)")
    arguments = parser.parse_args()
    draw(arguments.strip, arguments.output)


if __name__ == "__main__":
    main()
