"""`glyphline data validate`: what is wrong with a data set, all of it, before anything is trained on it."""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from glyphline.models.errors import ImageTooWideError
from glyphline.models.image import ImageSettings, normalised_width
from glyphline.training.datasets.checks import REMEDY
from glyphline.training.datasets.commands.inputs import Inputs, Part, Progress, silent
from glyphline.training.datasets.feasibility import available_frames, needed_frames
from glyphline.training.datasets.readers import LabelledImage, missing_files
from glyphline.training.datasets.samples import Grey
from glyphline.training.errors import DataError

Severity = Literal["error", "warning"]

KINDS: dict[str, tuple[Severity, str]] = {
    "data set": ("error", "cannot be read at all"),
    "no tab": (
        "error",
        "a line of labels without a tab between the picture's name and its text: training refuses to start; strips are"
        " looked at once no such line is left",
    ),
    "missing": ("error", "the picture that a label names is not there: training refuses to start"),
    "unreadable": (
        "error",
        "the picture is damaged or no picture: training skips and counts it, and refuses to start if it is of a "
        "validation set",
    ),
    "unknown character": (
        "error",
        f"a label with characters outside the alphabet: training refuses to start; {REMEDY}",
    ),
    "two texts": ("error", "the same pixels with different texts"),
    "in two splits": ("error", "the same pixels in two splits: what is measured was trained on"),
    "too wide": ("warning", "wider than image.max_width: training skips and counts it, validation is refused"),
    "too long": ("warning", "the label needs more CTC frames than the strip has; training skips and counts it"),
    "duplicate": ("warning", "the same pixels with the same text, more than once in a split"),
    "name twice": ("warning", "two labels for one picture"),
    "spaces": ("warning", "a label that begins or ends with a space, or holds a tab, a line break or two spaces"),
    "control character": ("warning", "a label with characters that cannot be seen"),
    "empty label": ("warning", "a strip without text: right for blank strips, a mistake for others"),
}
"""Kinds of findings: how grave each is, and what it means."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        kind: One of `KINDS`.
        severity: `error` or `warning`.
        part: The data set.
        source: The strip.
        file: File in which its label stands.
        line: Line of the label.
        message: What is wrong.
    """

    kind: str
    severity: Severity
    part: str
    source: str
    file: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Range:
    """Least, middle and greatest of some numbers."""

    least: float
    median: float
    greatest: float


@dataclass(frozen=True, slots=True)
class PartSummary:
    """A data set in numbers.

    Attributes:
        name: Name.
        role: `data`, `training` or `validation`.
        strips: Number of labels.
        readable: Number of pictures that can be read.
        characters: Number of characters of all labels.
        alphabet: The different characters, in Unicode's order.
        heights: Heights of the pictures.
        widths: Their widths.
        normalised_widths: Widths of the strips as the network takes them.
    """

    name: str
    role: str
    strips: int
    readable: int
    characters: int
    alphabet: str
    heights: Range | None
    widths: Range | None
    normalised_widths: Range | None


@dataclass(slots=True)
class Validation:
    """What was found.

    Attributes:
        parts: The data sets.
        findings: What is wrong, part by part in the order of labels.
    """

    parts: list[PartSummary] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def errors(self) -> int:
        """Number of errors."""
        return sum(finding.severity == "error" for finding in self.findings)

    def counts(self) -> dict[str, int]:
        """Returns the number of findings of each kind that there is."""
        return dict(Counter(finding.kind for finding in self.findings))


@dataclass(frozen=True, slots=True)
class _Seen:
    """A picture that was met before."""

    part: Part
    image: LabelledImage


def validate(inputs: Inputs, progress: Progress = silent) -> Validation:
    """Looks at every label and every pixel.

    Args:
        inputs: What to look at.
        progress: Is told of every picture.

    Returns:
        All findings, and the data sets in numbers.
    """
    checker = _Checker(inputs, progress)
    for part in inputs.parts:
        checker.check_part(part)
    return checker.result


def fingerprint(pixels: Grey) -> bytes:
    """Returns a hash of a picture's grey levels and shape, whatever file format they came in."""
    return hashlib.blake2b(pixels.tobytes() + str(pixels.shape).encode(), digest_size=16).digest()


class _Checker:
    """Goes through the parts and remembers what it has met."""

    def __init__(self, inputs: Inputs, progress: Progress) -> None:
        self.inputs = inputs
        self.progress = progress
        self.result = Validation()
        self.seen: dict[bytes, list[_Seen]] = {}
        self.done = 0
        self.failed = 0

    def check_part(self, part: Part) -> None:
        """Checks one data set."""
        if part.bad_labels is not None:
            self.result.findings += [
                Finding("no tab", "error", part.name, repr(content), part.bad_labels.path, line, "no tab in this line")
                for line, content in part.bad_labels.lines
            ]
            return
        if part.fault:
            self.result.findings.append(Finding("data set", "error", part.name, "", "", 0, part.fault))
            return
        sizes: list[tuple[int, int]] = []
        names: set[tuple[str, str]] = set()
        for image in part.images:
            key = (str(image.file), image.source)
            if key in names:
                self._find("name twice", part, image, f"{image.source} has another label before")
            names.add(key)
            self._check_text(part, image)
            try:
                pixels = image.load()
            except DataError as error:
                self.failed += 1
                kind = "missing" if next(missing_files([image]), None) else "unreadable"
                self._find(kind, part, image, str(error))
            else:
                sizes.append((pixels.shape[1], pixels.shape[0]))
                self._check_size(part, image, pixels)
                self._check_repetition(part, image, pixels)
            self.done += 1
            self.progress(self.done, self.failed)
        self.result.parts.append(self._summarise(part, sizes))

    def _find(self, kind: str, part: Part, image: LabelledImage, message: str) -> None:
        severity = KINDS[kind][0]
        if kind == "too wide" and part.role == "validation":
            severity = "error"
        if kind == "unknown character" and part.skips_unknown:
            severity = "warning"
            message += '; left out, as unknown_characters = "skip" says'
        self.result.findings.append(
            Finding(kind, severity, part.name, image.source, str(image.file), image.line, message)
        )

    def _check_text(self, part: Part, image: LabelledImage) -> None:
        text = image.text
        if not text:
            self._find("empty label", part, image, "the label is empty")
        if text != " ".join(text.split()):
            self._find("spaces", part, image, f"spaces or line breaks that cannot be told from a picture: {text!r}")
        hidden = sorted({c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Co", "Cn") and not c.isspace()})
        if hidden:
            self._find("control character", part, image, f"{spell(hidden)} in {text!r}")
        if self.inputs.alphabet is not None:
            unknown = self.inputs.alphabet.unknown_characters(text)
            if unknown:
                self._find("unknown character", part, image, f"{spell(unknown)} in {text!r}")

    def _check_size(self, part: Part, image: LabelledImage, pixels: Grey) -> None:
        height, width = pixels.shape
        settings = self.inputs.image
        try:
            normalised = normalised_width(width, height, settings)
        except ImageTooWideError as error:
            self._find("too wide", part, image, f"{width} x {height}: {error}")
            return
        if self.inputs.has_ctc:
            symbols = self._symbols(image.text)
            needed, there = needed_frames(symbols), available_frames(normalised, self.inputs.frames_per_step)
            if needed > there:
                self._find("too long", part, image, f"{len(symbols)} symbols need {needed} frames, there are {there}")

    def _symbols(self, text: str) -> list[int]:
        """Classes of a text's symbols; where there is no alphabet or it lacks some, a class for each character."""
        alphabet = self.inputs.alphabet
        if alphabet is None or alphabet.unknown_characters(text):
            return [ord(character) for character in text]
        return alphabet.encode(text)

    def _check_repetition(self, part: Part, image: LabelledImage, pixels: Grey) -> None:
        earlier = self.seen.setdefault(fingerprint(pixels), [])
        # What has one grey all over is no picture of anything, and looks the same everywhere.
        if earlier and int(pixels.max()) != int(pixels.min()):
            other = next((each for each in earlier if each.image.text != image.text), earlier[0])
            where = f"{other.image.source} ({other.image.place})"
            if other.image.text != image.text:
                self._find("two texts", part, image, f"reads {image.text!r} here and {other.image.text!r} in {where}")
            across = next((each for each in earlier if _are_splits(each.part, part)), None)
            if across is not None:
                place = f"{across.image.source} of {across.part.name}"
                self._find("in two splits", part, image, f"the same pixels as {place}")
            elif other.image.text == image.text and any(each.part is part for each in earlier):
                self._find("duplicate", part, image, f"the same pixels as {where}")
        earlier.append(_Seen(part, image))

    def _summarise(self, part: Part, sizes: list[tuple[int, int]]) -> PartSummary:
        characters = Counter(character for image in part.images for character in image.text)
        return PartSummary(
            name=part.name,
            role=part.role,
            strips=len(part.images),
            readable=len(sizes),
            characters=sum(characters.values()),
            alphabet="".join(sorted(characters)),
            heights=_range([height for _, height in sizes]),
            widths=_range([width for width, _ in sizes]),
            normalised_widths=_range(normalised_widths(sizes, self.inputs.image)),
        )


def _are_splits(first: Part, second: Part) -> bool:
    """Tells whether two parts must not share strips: two paths, or training and validation of a configuration."""
    return first is not second and (first.role != second.role or first.role == "data")


def normalised_widths(sizes: list[tuple[int, int]], settings: ImageSettings) -> list[int]:
    """Widths of strips as the network takes them, however wide."""
    return [max(1, round(width * settings.height / height)) + 2 * settings.padding for width, height in sizes]


def _range(values: list[int]) -> Range | None:
    return Range(min(values), float(np.median(values)), max(values)) if values else None


def spell(characters: list[str]) -> str:
    """Names characters so that look-alikes can be told apart: 'é' (U+00E9)."""
    return ", ".join(f"{character!r} (U+{ord(character):04X})" for character in characters)
