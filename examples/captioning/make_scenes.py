"""Draws scenes of one or two shapes with their captions: `python examples/captioning/make_scenes.py data/scenes`.

A caption is what can be seen in grey: shape, size, filling and place. What stands left is named first, so that every
scene has one true caption. One in five pairs of shapes is kept for `unseen/`: to caption those, a
recogniser has to describe, and can't remember.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

WIDTH, HEIGHT = 90, 48
FINER = 4
"""Scenes are drawn so many times larger, and then reduced: edges come out smooth."""


@dataclass(frozen=True)
class Thing:
    """One shape of a scene, as a caption tells it."""

    size: str
    filling: str
    shape: str

    def __str__(self) -> str:
        return f"a {self.size} {self.filling} {self.shape}"


@dataclass(frozen=True)
class Scene:
    """What a picture shows: one thing, or two side by side."""

    things: tuple[Thing, ...]

    def __str__(self) -> str:
        return " left of ".join(map(str, self.things))


SIZES, FILLINGS, SHAPES = ("small", "large"), ("solid", "hollow"), ("circle", "square", "triangle")
THINGS = [Thing(*words) for words in itertools.product(SIZES, FILLINGS, SHAPES)]
SINGLE = [Scene((thing,)) for thing in THINGS]
PAIRS = [Scene(pair) for pair in itertools.product(THINGS, repeat=2)]


def draw_thing(
    draw: ImageDraw.ImageDraw, thing: Thing, x: float, y: float, radius: float, ink: int, paper: int
) -> None:
    """Draws a thing around a centre, in pixels of the enlarged scene."""
    box = (x - radius, y - radius, x + radius, y + radius)
    pen = round(radius * 0.25)
    fill = ink if thing.filling == "solid" else paper
    if thing.shape == "circle":
        draw.ellipse(box, fill, ink, pen)
    elif thing.shape == "square":
        draw.rectangle(box, fill, ink, pen)
    else:
        corners = [(x, y - radius), (x + radius, y + radius), (x - radius, y + radius)]
        draw.polygon(corners, fill, ink, pen)


def draw_scene(scene: Scene, random: np.random.Generator) -> Image.Image:
    """Draws a scene; places, sizes and greys vary as far as the caption stays true."""
    paper, ink = int(random.integers(200, 256)), int(random.integers(0, 90))
    image = Image.new("L", (WIDTH * FINER, HEIGHT * FINER), paper)
    draw = ImageDraw.Draw(image)
    one = len(scene.things) == 1
    columns = random.uniform(0.25, 0.75, 1) if one else 0.5 + np.array((-0.26, 0.26)) + random.uniform(-0.02, 0.02, 2)
    for thing, column in zip(scene.things, columns, strict=True):
        x, y = float(column) * WIDTH, random.uniform(0.42, 0.58) * HEIGHT
        radius = random.uniform(8, 10) if thing.size == "small" else random.uniform(15, 18)
        draw_thing(draw, thing, x * FINER, y * FINER, radius * FINER, ink, paper)
    return image.resize((WIDTH, HEIGHT), Image.Resampling.BOX)


def write_scenes(folder: Path, scenes: Sequence[Scene], count: int, random: np.random.Generator) -> None:
    """Writes `count` pictures of scenes chosen at random, and `labels.tsv` with their captions."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(count):
        scene = scenes[int(random.integers(len(scenes)))]
        draw_scene(scene, random).save(folder / f"{number:05}.png")
        rows.append(f"{number:05}.png\t{scene}\n")
    (folder / "labels.tsv").write_text("".join(rows), encoding="utf-8")


def main() -> None:
    """Writes training, validation and unseen scenes below the folder that is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--count", type=int, default=3000, help="scenes to train on")
    arguments = parser.parse_args()
    random = np.random.default_rng(1)
    order = random.permutation(len(PAIRS))
    unseen = [PAIRS[index] for index in order[: len(PAIRS) // 5]]
    seen = [*SINGLE, *(PAIRS[index] for index in order[len(PAIRS) // 5 :])]
    write_scenes(arguments.output / "train", seen, arguments.count, random)
    write_scenes(arguments.output / "validation", seen, 300, random)
    write_scenes(arguments.output / "unseen", unseen, 300, random)


if __name__ == "__main__":
    main()
