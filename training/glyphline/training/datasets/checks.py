"""What stands in a training's way is found before it starts, all of it at once, by labels and files alone.

Nothing here needs torch, so that whoever made a mistake need not wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from glyphline.models.alphabet import Alphabet
from glyphline.models.errors import AlphabetError
from glyphline.training.config import (
    BlankConfig,
    CharactersConfig,
    ComposedConfig,
    DatasetConfig,
    DrawnSetConfig,
    EvaluationSet,
    ReadingsConfig,
    RenderedConfig,
    Source,
    StripSetConfig,
    TrainingConfig,
)
from glyphline.training.datasets.build import font_files
from glyphline.training.datasets.readers import LabelledImage, missing_files, tell_missing
from glyphline.training.datasets.selection import read_selected
from glyphline.training.errors import DataError
from glyphline.training.vocabulary import ALPHABET_NAME, learn_vocabulary, run_alphabet

REMEDY = 'add them to `alphabet`, or leave such strips out with unknown_characters = "skip" in the data set\'s table'
LEARNT_REMEDY = (
    "the vocabulary was learnt from the labels of training, which lack them: train on strips that have them, or leave "
    'such strips out with unknown_characters = "skip" in the data set\'s table'
)
"""What to do about characters outside the alphabet."""


def source_labels(config: TrainingConfig, root: Path) -> list[str]:
    """Returns the labels of the real strips that are trained on, to learn a vocabulary from."""
    return [
        image.text
        for source in config.sources
        if isinstance(source, DatasetConfig)
        for image in read_selected(source, root, missing="keep")
    ]


def check_run(config: TrainingConfig, root: Path, run: Path, *, resume: bool = True) -> str:
    """Checks the data of a run without leaving anything in its folder.

    Args:
        config: The configuration.
        root: Folder below which its data are.
        run: Folder of the run.
        resume: Whether a vocabulary that the run learnt before is taken.

    Returns:
        What is trained and validated on, in a line.

    Raises:
        AlphabetError: If labels have characters outside the alphabet.
        DataError: If anything else is wrong, too or alone; the message has all of it.
    """
    settings = config.vocabulary
    if settings is None:
        alphabet = config.make_alphabet()
    elif resume and (run / ALPHABET_NAME).exists():
        alphabet = run_alphabet(config, run)
    elif settings.kind == "subwords":  # what can be written with them can be written with their characters
        alphabet = Alphabet(learn_vocabulary("characters", source_labels(config, root)))
    else:
        alphabet = Alphabet(learn_vocabulary(settings.kind, source_labels(config, root), settings.size))
    return describe_data(config, check_data(config, root, alphabet))


def check_data(config: TrainingConfig, root: Path, alphabet: Alphabet) -> dict[str, int]:
    """Makes sure, before training, that data sets are there, with their pictures, and that labels can be encoded.

    Labels of data sets with `unknown_characters = "skip"` are passed over: they will be left out.

    Returns:
        Number of real strips of each source and validation set that has such, by `part_name`.

    Raises:
        AlphabetError: If labels cannot be encoded: every character is named, with the lines where it stands, file by
            file.
        DataError: If data sets, or pictures that labels name, are missing or not as their format wants them; with
            unencodable labels, if there are such too.
    """
    faults: dict[str, None] = {}
    missing: dict[Path, LabelledImage] = {}
    lines: dict[Path, dict[int, str]] = {}
    counts: dict[str, int] = {}
    for name, part in _parts(config):
        real = part.source if isinstance(part, DrawnSetConfig) else part
        if not isinstance(real, DatasetConfig):
            faults |= dict.fromkeys(_drawn_faults(real, root))
            continue
        try:
            images = read_selected(real, root, alphabet, missing="keep")
        except DataError as error:
            faults[str(error)] = None
            continue
        counts[name] = len(images)
        for path, image in missing_files(images):
            missing.setdefault(path, image)
        if real.unknown_characters == "refuse":
            for image in images:
                lines.setdefault(image.file, {})[image.line] = image.text
    found = list(faults)
    if found and not root.is_dir():
        found.append(f"there is no folder {root}: --data-root says where the data are")
    if missing:
        found.append(tell_missing(list(missing.items())))
    unknown = _unknown_characters(lines, alphabet)
    if unknown and not found:
        raise AlphabetError(f"{unknown}; {REMEDY if config.vocabulary is None else LEARNT_REMEDY}")
    if unknown:
        found.append(f"{unknown}; {REMEDY if config.vocabulary is None else LEARNT_REMEDY}")
    if len(found) == 1:
        raise DataError(found[0])
    if found:
        raise DataError(
            "\n  ".join((f"{len(found)} things are to be put right (`glyphline data validate` has more):", *found))
        )
    return counts


def _parts(config: TrainingConfig) -> Iterator[tuple[str, Source | EvaluationSet]]:
    """Yields the sources and validation sets with their names."""
    for number, source in enumerate(config.sources, 1):
        yield f"source {number}", source
    for name, settings in config.validation.items():
        yield f"validation {name}", settings


def _unknown_characters(lines: dict[Path, dict[int, str]], alphabet: Alphabet) -> str:
    """Names the characters outside the alphabet; empty where there are none."""
    faults = []
    for file, labels in lines.items():
        try:
            alphabet.check_labels(sorted(labels.items()))
        except AlphabetError as error:
            faults.append(f"{file}: {error}")
    return "; ".join(faults)


def _drawn_faults(part: Source | EvaluationSet, root: Path) -> Iterator[str]:
    """Names what is missing of what strips are drawn with, as far as a look at the folders tells."""
    if isinstance(part, ComposedConfig | ReadingsConfig | StripSetConfig):
        sets = (part.characters,) if isinstance(part.characters, CharactersConfig) else part.characters
        for characters in sets:
            path = root / characters.path
            if not path.exists():
                yield f"{path} does not exist: there should be single characters ({characters.reader})"
    if isinstance(part, RenderedConfig):
        try:
            font_files(part, root)
        except DataError as error:
            yield str(error)
    if isinstance(part, ComposedConfig | RenderedConfig) and part.texts is not None:
        for words in part.texts.lists:
            if not (root / words).is_file():
                yield f"{root / words} does not exist: there should be words, one a line"


def describe_data(config: TrainingConfig, counts: dict[str, int]) -> str:
    """Says in a line what is trained and validated on.

    Args:
        config: The configuration.
        counts: Number of real strips of each part, as `check_data` returns it.
    """
    trained, validated = [], []
    for name, part in _parts(config):
        number = counts.get(name, getattr(part, "count", 0))
        size = f" ({number:,} strips)" if number else ""
        if name.startswith("source"):
            where = getattr(part, "path", "")
            drawn = "" if number or isinstance(part, BlankConfig) else ", drawn"
            trained.append(f"{part.kind}{f' {where}' if where else ''}{size}{drawn}")
        else:
            validated.append(f"{name.removeprefix('validation ')}{size}")
    return f"{config.name}: trained on {'; '.join(trained)}; validated on {'; '.join(validated)}"
