"""From configuration to data: the one place where kinds of sources and sets are named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from glyphline.models.alphabet import Alphabet
from glyphline.models.image import ImageSettings
from glyphline.training.augment import Wear
from glyphline.training.config import (
    BlankConfig,
    CharactersConfig,
    ComposedConfig,
    DrawnSetConfig,
    EvaluationSet,
    FolderSetConfig,
    ReadingsConfig,
    RealConfig,
    RenderedConfig,
    Source,
    StripSetConfig,
)
from glyphline.training.datasets.characters import CharacterSet, read_folder, read_mnist, read_npz
from glyphline.training.datasets.compose import ComposedReadings, ComposedStrips, join
from glyphline.training.datasets.joined import JoinedStrips
from glyphline.training.datasets.lettered import LetteredStrips
from glyphline.training.datasets.real import BlankStrips, RealStrips, decode_all
from glyphline.training.datasets.rendered import RenderedStrips, find_fonts
from glyphline.training.datasets.root import below
from glyphline.training.datasets.samples import Sample, SampleSource, SkipCounts, UnusableSampleError, ink_box
from glyphline.training.datasets.selection import read_selected
from glyphline.training.datasets.texts import build_texts
from glyphline.training.datasets.written import WrittenStrips, pool
from glyphline.training.effects import STYLES


def read_characters(config: CharactersConfig, root: Path) -> CharacterSet:
    """Reads single characters, without or with only the held-out fold of writers; of images where none are known."""
    folder = root / config.path
    with below(root):
        if config.reader == "mnist":
            characters = read_mnist(folder, config.part)
        elif config.reader == "npz":
            characters = read_npz(folder)
        else:
            characters = read_folder(folder, config.without)
    if config.folds:
        known = len(np.unique(characters.writers)) > 1
        dealt = characters.writers if known else np.arange(len(characters.writers))
        characters = characters.where((dealt % config.folds == config.fold) == config.held_out)
    return characters


def build_source(
    config: Source,
    root: Path,
    alphabet: Alphabet | None = None,
    skips: SkipCounts | None = None,
    image: ImageSettings | None = None,
) -> SampleSource:
    """Builds one source of training strips.

    Args:
        config: Its configuration.
        root: Folder below which its paths lie.
        alphabet: What the recogniser reads; a source that skips unknown characters needs it.
        skips: Counts the real strips that are left out for their labels.
        image: How strips are normalised, for blank ones, which have no width of their own: none is too wide then.

    Raises:
        DataError: If its data are missing or unreadable.
    """
    with below(root):
        source = _build_plain(config, root, alphabet, skips, image)
    return JoinedStrips(source, config.joined, alphabet) if config.joined > 0 else source


def _several(folders: str | tuple[str, ...]) -> tuple[str, ...]:
    return (folders,) if isinstance(folders, str) else folders


def font_files(config: RenderedConfig, root: Path) -> tuple[Path, ...]:
    """Returns the fonts of a source, none twice.

    Raises:
        DataError: If a folder is missing or has none.
    """
    return tuple(dict.fromkeys(path for folder in _several(config.fonts) for path in find_fonts(root / folder)))


def _build_plain(
    config: Source, root: Path, alphabet: Alphabet | None, skips: SkipCounts | None, image: ImageSettings | None
) -> SampleSource:
    """Builds a source of single strips, none of them two side by side."""
    if isinstance(config, ComposedConfig):
        return _build_composed(config, root, alphabet)
    if isinstance(config, ReadingsConfig):
        wear = config.wear.apply(Wear(slant=0.15, rotation=0.03, elastic=0.015))
        return ComposedReadings(read_characters(config.characters, root), config.longest, wear)
    if isinstance(config, RenderedConfig):
        return _build_rendered(config, root, alphabet)
    if isinstance(config, RealConfig):
        return RealStrips(read_selected(config, root, alphabet, skips), config.wear.apply(Wear()))
    assert isinstance(config, BlankConfig)
    wear = config.wear.apply(Wear(lines=0.6))
    if image is None:
        return BlankStrips(config.narrowest, wear)
    return BlankStrips(config.narrowest, wear, (image.max_width - 2 * image.padding) / image.height)


def _build_composed(config: ComposedConfig, root: Path, alphabet: Alphabet | None) -> SampleSource:
    sets = config.characters if isinstance(config.characters, tuple) else (config.characters,)
    characters = pool([read_characters(one, root) for one in sets])
    if config.texts is not None:
        style = STYLES["pen"]
        look = replace(config.effects.apply(style), wear=config.wear.apply(style.wear))
        texts = build_texts(config.texts, config.longest, root, alphabet)
        return WrittenStrips(characters, texts, config.touching, config.distortion, look)
    wear = config.wear.apply(Wear())
    return ComposedStrips(
        characters, config.longest, config.marks, config.touching, wear=wear, distortion=config.distortion
    )


def _build_rendered(config: RenderedConfig, root: Path, alphabet: Alphabet | None) -> SampleSource:
    fonts = font_files(config, root)
    if config.texts is not None:
        style = STYLES[config.style]
        look = replace(config.effects.apply(style), wear=config.wear.apply(style.wear))
        return LetteredStrips(fonts, build_texts(config.texts, config.longest, root, alphabet), look)
    wear = config.wear.apply(Wear(slant=0.25, elastic=0.012))
    return RenderedStrips(fonts, config.longest, config.marks, config.cells, wear)


def draw_set_strip(characters: CharacterSet, length: int, random: np.random.Generator) -> Sample:
    """Composes one plain strip for evaluation: no slant, no blur, no lines; touching to wide apart, either polarity."""
    pieces, text = [], ""
    for _ in range(length):
        index = int(random.integers(len(characters.images)))
        ink = characters.images[index]
        left, right = ink_box(ink)[2:]
        pieces.append(ink[:, left:right])
        text += characters.labels[index]
    gaps = random.integers(0, 4, length) + int(random.integers(0, 10))
    strip = join(pieces, gaps.astype(np.int64), random.integers(-2, 3, length).astype(np.int64))
    margins = random.integers(2, 12, 4)
    strip = np.pad(strip, ((margins[0], margins[1]), (margins[2], margins[3])))
    scale = random.uniform(1.0, 2.0)
    size = (max(1, round(strip.shape[1] * scale)), max(1, round(strip.shape[0] * scale)))
    strip = np.asarray(Image.fromarray(strip).resize(size, Image.Resampling.BILINEAR))
    noisy = strip + random.normal(0, random.uniform(0, 8), strip.shape)
    pixels = np.clip(noisy, 0, 255).astype(np.uint8)
    return Sample(pixels if random.random() < 0.5 else 255 - pixels, text, characters.name)


def build_set(
    config: EvaluationSet, root: Path, alphabet: Alphabet | None = None, skips: SkipCounts | None = None
) -> list[Sample]:
    """Builds one evaluation set; the same configuration and data give the same set.

    Args:
        config: Its configuration.
        root: Folder below which its paths lie.
        alphabet: What the recogniser reads; a set that skips unknown characters needs it.
        skips: Counts the real strips that are left out for their labels.

    Returns:
        Its samples; where the set compares digits alone, the texts of the given label file are left as they are.

    Raises:
        DataError: If its data are missing or unreadable.
    """
    if isinstance(config, FolderSetConfig):
        with below(root):
            return decode_all(read_selected(config, root, alphabet, skips))
    random = np.random.default_rng(config.seed)
    if isinstance(config, StripSetConfig):
        characters = read_characters(config.characters, root)
        lengths = random.integers(config.shortest, config.longest + 1, config.count)
        samples = [draw_set_strip(characters, int(length), random) for length in lengths]
    else:
        assert isinstance(config, DrawnSetConfig)
        source = build_source(config.source, root, alphabet, skips)
        samples = [_draw_usable(source, random) for _ in range(config.count)]
    return [Sample(s.pixels, s.text, f"{s.source} {number}") for number, s in enumerate(samples, 1)]


def _draw_usable(source: SampleSource, random: np.random.Generator) -> Sample:
    """Draws until a strip can be used; gives up with the last one's fault."""
    for _ in range(100):
        try:
            return source.draw(random)
        except UnusableSampleError as error:
            fault = error
    raise fault
