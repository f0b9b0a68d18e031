"""`glyphline data preview`: strips as the network will see them, before hours are spent on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from glyphline.models.errors import ImageTooWideError
from glyphline.models.image import GreyImage, ImageSettings, normalise
from glyphline.training.augment import Wear
from glyphline.training.config import DatasetConfig, TrainingConfig, read_config
from glyphline.training.datasets.build import build_source
from glyphline.training.datasets.commands.inputs import is_config, known_alphabet
from glyphline.training.datasets.commands.sheet import Section, Shown, draw_sheet
from glyphline.training.datasets.readers import Format, read_dataset
from glyphline.training.datasets.real import RealStrips
from glyphline.training.datasets.samples import Grey, SampleSource, UnusableSampleError

_TRIES = 20  # draws for each strip that is wanted, as some cannot be used

_AS_SEEN = (
    "Strips are shown as the network sees them: {height} pixels high, and ink bright on dark, whatever the picture has."
)


def preview(
    path: Path, *, data_root: Path, format: Format = "auto", count: int = 12, variants: int = 4, seed: int = 1
) -> Image.Image:
    """Draws a contact sheet.

    Args:
        path: A configuration: strips of each of its sources as they are drawn; or a data set: strips as they are and
            varied.
        data_root: Folder below which the paths of a configuration lie.
        format: Format of a data set.
        count: Strips of each source, or of the data set.
        variants: Variants of each strip of a data set.
        seed: The same seed shows the same strips.

    Raises:
        TrainingError: If the configuration or the data do not fit.
    """
    if is_config(path):
        config = read_config(path)
        note = f"{_AS_SEEN} The text beneath each is its label."
        return draw_sheet(_config_sections(config, data_root, count, seed), note.format(height=config.image.height))
    images = read_dataset(path, format)
    chosen = [int(index) for index in np.linspace(0, len(images) - 1, min(count, len(images)))]
    strips = RealStrips(images, Wear())
    sections = []
    for index in chosen:
        image = images[index]
        random = np.random.default_rng((seed, index))
        try:
            plain = strips.pixels(index)
            one = RealStrips([image], strips.wear)
            drawn = [one.draw(random).pixels for _ in range(variants)]
        except UnusableSampleError as error:
            sections.append(Section(f"{image.source}: {error}", []))
            continue
        settings = ImageSettings()
        shown = [Shown(plain, "the picture"), Shown(_normalised(plain, settings), "normalised")]
        shown += [Shown(_normalised(pixels, settings), f"variant {n}") for n, pixels in enumerate(drawn, 1)]
        sections.append(Section(f"{image.source}: {image.text!r}", shown))
    note = f"{_AS_SEEN} First the picture as it is, then what becomes of it."
    return draw_sheet(sections, note.format(height=ImageSettings().height))


def _config_sections(config: TrainingConfig, root: Path, count: int, seed: int) -> list[Section]:
    alphabet = known_alphabet(config)
    total = sum(source.weight for source in config.sources)
    sections = []
    for number, settings in enumerate(config.sources, 1):
        source = build_source(settings, root, alphabet)
        where = f" {settings.path}" if isinstance(settings, DatasetConfig) else ""
        shown = _drawn(source, config.image, count, np.random.default_rng((seed, number)))
        sections.append(
            Section(f"{number}. {settings.kind}{where}, {settings.weight / total:.0%} of all strips", shown)
        )
    return sections


def _drawn(source: SampleSource, settings: ImageSettings, count: int, random: np.random.Generator) -> list[Shown]:
    shown: list[Shown] = []
    for _ in range(count * _TRIES):
        if len(shown) == count:
            break
        try:
            sample = source.draw(random)
            shown.append(Shown(normalise(GreyImage(sample.pixels), settings), sample.text or "(blank)"))
        except (UnusableSampleError, ImageTooWideError):  # skipped in training too
            continue
    return shown


def _normalised(pixels: Grey, settings: ImageSettings) -> Grey:
    try:
        return normalise(GreyImage(pixels), settings)
    except ImageTooWideError:
        return normalise(GreyImage(pixels), settings.model_copy(update={"max_width": 10**6}))
