"""`glyphline data render`: text strips from fonts, of any alphabet; or what a configuration draws, into shards."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, features

from glyphline.models.errors import ImageTooWideError
from glyphline.models.image import normalised_width
from glyphline.training.augment import Wear, photograph, thicken, warp, with_margins
from glyphline.training.config import DatasetConfig, TrainingConfig
from glyphline.training.datasets.build import build_source
from glyphline.training.datasets.commands.inputs import Progress, known_alphabet, silent
from glyphline.training.datasets.commands.validate import spell
from glyphline.training.datasets.faces import covered
from glyphline.training.datasets.readers.item import encode_png
from glyphline.training.datasets.readers.labels import read_text
from glyphline.training.datasets.rendered import SUFFIXES, find_fonts, load_font
from glyphline.training.datasets.samples import Grey, Ink, SkipCounts, UnusableSampleError
from glyphline.training.datasets.writers import Target, open_writer
from glyphline.training.errors import DataError

LACKING = "the font lacks a character"
"""Why a strip is not drawn."""

TOO_WIDE = "too wide"
"""Why a strip that was drawn is not written: training would skip it."""

_SAMPLED = 2000  # texts that are looked through for one that a font can write
CLEAN = Wear(slant=0, rotation=0, elastic=0, lines=0, inverted=0, tight=0, loose=0.3, grime=0)
"""Dark on light, straight, with small margins and nothing else."""


@dataclass(frozen=True, slots=True)
class Texts:
    """What is written.

    Attributes:
        lines: Texts to choose from; where there are none, characters of the alphabet are strung together.
        words: Lines of `lines` that are set side by side in a strip, from one to so many; 1 takes each as it is.
        alphabet: Characters that may occur; texts with others are left out. Empty where any may.
        longest: Greatest number of characters.
    """

    lines: tuple[str, ...] = ()
    words: int = 1
    alphabet: str = ""
    longest: int = 32


@dataclass(frozen=True)
class Rendered:
    """What was rendered.

    Attributes:
        written: Number of strips.
        fonts: Number of strips of each font.
        skips: What was not drawn, by reason.
    """

    written: int
    fonts: dict[str, int] = field(default_factory=dict)
    skips: SkipCounts = field(default_factory=SkipCounts)


def read_lines(path: Path, alphabet: str = "") -> tuple[tuple[str, ...], int]:
    """Reads texts, one a line, spaces at the ends taken off and blank lines left out.

    Args:
        path: UTF-8 file.
        alphabet: Where it is given, lines with other characters are left out.

    Returns:
        The texts and the number of those left out.

    Raises:
        DataError: If the file is missing, is not UTF-8, or nothing is left.
    """
    known = set(unicodedata.normalize("NFC", alphabet))
    lines = [unicodedata.normalize("NFC", line.strip()) for line in read_text(path).splitlines()]
    lines = [line for line in lines if line]
    kept = tuple(line for line in lines if not known or set(line) <= known)
    if not kept:
        raise DataError(f"{path}: none of its {len(lines)} lines is made of the alphabet {alphabet!r} alone")
    return kept, len(lines) - len(kept)


def find_all_fonts(paths: Sequence[Path]) -> list[Path]:
    """Lists fonts: files as they are, folders with all that lies below them.

    Raises:
        DataError: If a path is no font, or there is none below a folder.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += find_fonts(path)
        elif path.is_file() and path.suffix.lower() in SUFFIXES:
            found.append(path)
        else:
            raise DataError(f"{path} is no font: neither a folder nor a file that ends in {', '.join(SUFFIXES)}")
    return list(dict.fromkeys(found))


def missing_characters(path: Path, text: str) -> list[str]:
    """Returns the different characters of a text that a font cannot write, spaces apart."""
    return [c for c in dict.fromkeys(text) if not c.isspace() and ord(c) not in covered(path)]


def check_fonts(fonts: Sequence[Path], characters: str) -> None:
    """Makes sure that every font can write all characters: one that cannot would draw boxes, and teach them.

    Raises:
        DataError: If one lacks some; each is named with what it lacks.
    """
    lacking = {path: missing_characters(path, characters) for path in fonts}
    lacking = {path: missing for path, missing in lacking.items() if missing}
    if lacking:
        named = "; ".join(
            f"{path} lacks {spell(missing[:10])}{f' and {len(missing) - 10} more' if len(missing) > 10 else ''}"
            for path, missing in list(lacking.items())[:5]
        )
        more = f"; and {len(lacking) - 5} more fonts" if len(lacking) > 5 else ""
        raise DataError(
            f"{len(lacking)} of {len(fonts)} fonts cannot write all of the text: {named}{more}."
            " Leave them out, or let each write only what it can (--skip-missing)"
        )


def check_shaping(characters: str) -> None:
    """Makes sure that scripts whose letters change shape or direction are laid out right.

    Raises:
        DataError: If there are such and Pillow has no Raqm, which does it.
    """
    shaped = [
        c
        for c in dict.fromkeys(characters)
        if unicodedata.bidirectional(c) in ("R", "AL") or unicodedata.category(c) == "Mc"
    ]
    if shaped and not features.check("raqm"):
        raise DataError(f"{spell(shaped[:5])} must be shaped, and this Pillow has no Raqm: it would be drawn wrong")


def draw_line(text: str, path: Path, size: int) -> Ink:
    """Draws a line of text, `(height, width)`, with some room around it.

    Args:
        text: In logical order.
        path: Font file.
        size: Its size in pixels.
    """
    font = load_font(path, size)
    left, top, right, bottom = font.getbbox(text)
    image = Image.new("L", (max(8, int(right - left) + size), max(8, int(bottom - top) + size)))
    ImageDraw.Draw(image).text((size / 2 - left, size / 2 - top), text, fill=255, font=font)
    return np.asarray(image)


def draw_strip(text: str, path: Path, random: np.random.Generator, wear: Wear) -> Grey:
    """Draws a line of text and takes its picture.

    Returns:
        Grey levels `(height, width)`.
    """
    ink = draw_line(text, path, int(random.integers(24, 44)))
    if wear != CLEAN:
        ink = thicken(warp(ink, random, wear), random)
    ink = with_margins(ink, random, wear)
    return 255 - ink if wear == CLEAN else photograph(ink, random, wear)


def render(
    output: Path,
    fonts: Sequence[Path],
    texts: Texts,
    *,
    count: int = 1000,
    target: Target = "folder",
    wear: Wear | None = None,
    skip_missing: bool = False,
    seed: int = 1,
    progress: Progress = silent,
) -> Rendered:
    """Renders strips.

    Args:
        output: Folder of the data set; it must not exist, or be empty.
        fonts: Font files.
        texts: What is written.
        count: Number of strips.
        target: Format of the data set.
        wear: How much strips are degraded; `CLEAN` leaves them as they are drawn.
        skip_missing: Let each font write only what it has characters for; else one that lacks any is refused.
        seed: The same seed gives the same strips.
        progress: Is told of every strip.

    Raises:
        DataError: If a font lacks characters, there is nothing to write, or `output` is there already.
    """
    if not texts.lines and not texts.alphabet:
        raise DataError("there is nothing to write: give texts, words or an alphabet")
    characters = "".join(dict.fromkeys("".join(texts.lines) or texts.alphabet))
    check_shaping(characters)
    if not skip_missing:
        check_fonts(fonts, characters)
    wear = Wear(slant=0.25, elastic=0.012) if wear is None else wear
    skips, used = SkipCounts(), dict.fromkeys((path.name for path in fonts), 0)
    random = np.random.default_rng(seed)
    able = list(fonts)
    written = 0
    with open_writer(output, target) as writer:
        while written < count:
            if not able:
                raise DataError(f"no font is left that can write any of the text: {skips}")
            path = able[int(random.integers(len(able)))]
            text = _text_for(path, texts, random)
            if text is None:
                skips.add(LACKING, path.name)
                able.remove(path)
                continue
            pixels = draw_strip(text, path, random, wear)
            writer.add(f"{written:07d}.png", encode_png(pixels), text)
            written += 1
            used[path.name] += 1
            progress(written, 0)
    return Rendered(written, used, skips)


def render_sources(
    output: Path,
    config: TrainingConfig,
    root: Path,
    *,
    sources: Sequence[int] = (),
    count: int = 1000,
    target: Target = "webdataset",
    seed: int = 1,
    progress: Progress = silent,
) -> Rendered:
    """Writes strips as the sources of a configuration draw them, for a run that reads them instead of drawing.

    Args:
        output: Folder of the data set; it must not exist, or be empty.
        config: The configuration.
        root: Folder below which its paths lie.
        sources: Numbers of the sources that are drawn from, counted from 1; none for all that are not real strips.
        count: Number of strips; each source has its share by its weight.
        target: Format of the data set.
        seed: The same seed gives the same strips.
        progress: Is told of every strip.

    Returns:
        What was written; for `fonts`, the number of strips of each source.

    Raises:
        DataError: If there is no such source, its data are missing, or `output` is there already.
    """
    drawn = {number: one for number, one in enumerate(config.sources, 1) if not isinstance(one, DatasetConfig)}
    if unknown := sorted(set(sources) - set(drawn)):
        raise DataError(
            f"source {unknown[0]} draws no strips: those that do are {', '.join(map(str, drawn)) or 'none'}"
            " (real strips are data sets already)"
        )
    chosen = {number: one for number, one in drawn.items() if not sources or number in sources}
    if not chosen:
        raise DataError("no source of the configuration draws strips: real strips are data sets already")
    alphabet = known_alphabet(config)
    built = {f"source {number} ({one.kind})": build_source(one, root, alphabet) for number, one in chosen.items()}
    names = list(built)
    weights = np.array([one.weight for one in chosen.values()])
    random = np.random.default_rng(seed)
    skips, used = SkipCounts(), dict.fromkeys(names, 0)
    written = 0
    with open_writer(output, target) as writer:
        while written < count:
            name = names[int(random.choice(len(names), p=weights / weights.sum()))]
            try:
                sample = built[name].draw(random)
                normalised_width(sample.pixels.shape[1], sample.pixels.shape[0], config.image)
            except UnusableSampleError as error:
                skips.add(error.reason, error.source)
                continue
            except ImageTooWideError:
                skips.add(TOO_WIDE, name)
                continue
            writer.add(f"{written:07d}.png", encode_png(sample.pixels, level=1), sample.text)
            written += 1
            used[name] += 1
            progress(written, sum(skips.counts.values()))
    return Rendered(written, used, skips)


def _text_for(path: Path, texts: Texts, random: np.random.Generator) -> str | None:
    """Chooses a text that the font can write; None where none of many is."""
    for _ in range(_SAMPLED):
        if texts.lines:
            number = int(random.integers(1, texts.words + 1))
            chosen = [texts.lines[int(random.integers(len(texts.lines)))] for _ in range(number)]
            text = " ".join(chosen)
            while len(text) > texts.longest and len(chosen) > 1:
                chosen.pop()
                text = " ".join(chosen)
        else:
            length = int(random.integers(1, texts.longest + 1))
            pool = [c for c in texts.alphabet if c.isspace() or ord(c) in covered(path)]
            text = " ".join("".join(random.choice(pool, length)).split()) if pool else ""
        text = unicodedata.normalize("NFC", text)
        if text and not missing_characters(path, text):
            return text
    return None
