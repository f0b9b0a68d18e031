"""Vocabularies learnt from labels: characters, word pieces or words, frozen with the run that learnt them.

A vocabulary is an `Alphabet` like any other: what reads and what is served knows of nothing else. A text is encoded by
the longest symbol that fits at each place.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from glyphline.models.alphabet import Alphabet
from glyphline.training.config import TrainingConfig, VocabularyConfig, VocabularyKind
from glyphline.training.errors import TrainingError

__all__ = ["ALPHABET_NAME", "learn_vocabulary", "run_alphabet", "split_words"]

ALPHABET_NAME = "alphabet.json"
"""File of a run's folder that its vocabulary is frozen in."""

_WORD = re.compile(r" ?[^ ]+| ")


def split_words(text: str) -> list[str]:
    """Splits a text into words, each with the space before it; together they are the text."""
    return _WORD.findall(text)


def learn_vocabulary(kind: VocabularyKind, labels: Iterable[str], size: int = 0) -> tuple[str, ...]:
    """Learns the symbols that labels are written with; the same labels give the same symbols.

    Args:
        kind: `characters`: every character that occurs, sorted. `words`: every word that occurs, with the space before
            it, the most frequent first. `subwords`: every character, and then what byte-pair encoding merges within
            words (Sennrich, Haddow and Birch 2016, "Neural Machine Translation of Rare Words with Subword Units").
        labels: Texts.
        size: Greatest number of symbols. Of characters and words 0 takes all, and a smaller number than occur is
            refused, as labels could not be encoded; byte-pair encoding stops at it, or when nothing occurs twice.

    Returns:
        The symbols, in the order of the network's outputs.

    Raises:
        TrainingError: If there is no label with text, or `size` is too small.
    """
    texts = [Alphabet.normalise_text(label) for label in labels]
    characters = sorted(set("".join(texts)))
    if not characters:
        raise TrainingError(
            "there are no labels to learn a vocabulary from: it is learnt from sources of real strips; "
            'without any, give the symbols as alphabet = "…"'
        )
    if kind == "words":
        counts = Counter(word for text in texts for word in split_words(text))
        symbols = sorted(counts, key=lambda word: (-counts[word], word))
    else:
        symbols = characters
    if size and size < len(symbols):
        noun = "words" if kind == "words" else "characters"
        raise TrainingError(
            f"the labels hold {len(symbols)} different {noun}, vocabulary.size is {size}: raise it"
            + (", leave it out" if kind != "subwords" else "")
            + (', or learn kind = "subwords"' if kind == "words" else "")
        )
    if kind == "subwords":
        symbols = [*characters, *_merges(texts, characters, size)]
    return tuple(symbols)


def _merges(texts: Sequence[str], characters: Sequence[str], size: int) -> list[str]:
    """The symbols that byte-pair encoding adds to the characters."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers  # noqa: PLC0415  (of this kind alone)

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_WORD.pattern), "isolated")
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, initial_alphabet=list(characters), special_tokens=[], show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    known = set(characters)
    learnt = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    # A merge may put a mark before what it stood on: only symbols in normal form C are any.
    return [text for text, _ in learnt if text not in known and Alphabet.normalise_text(text) == text]


def run_alphabet(config: TrainingConfig, run_folder: Path, labels: Iterable[str] | None = None) -> Alphabet:
    """Returns the alphabet of a run: as its configuration gives it, or as its vocabulary was learnt.

    A vocabulary is learnt once and written to `alphabet.json` in the run's folder; from then on it is read from there,
    so that data which change later change no output's meaning.

    Args:
        config: The run's configuration.
        run_folder: Its folder.
        labels: What a vocabulary that is not yet there is learnt from; None where it has to be there.

    Returns:
        The alphabet.

    Raises:
        TrainingError: If a vocabulary cannot be learnt, or its file is missing or does not belong to the configuration.
    """
    settings = config.vocabulary
    if settings is None:
        return config.make_alphabet()
    path = run_folder / ALPHABET_NAME
    if path.exists():
        return _read(path, settings)
    if labels is None:
        raise TrainingError(f"{path} is missing: it holds the vocabulary that the run was trained with")
    alphabet = Alphabet(learn_vocabulary(settings.kind, labels, settings.size))
    record = {"kind": settings.kind, "size": settings.size, "symbols": list(alphabet.symbols)}
    run_folder.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
    return alphabet


def _read(path: Path, settings: VocabularyConfig) -> Alphabet:
    try:
        record: Any = json.loads(path.read_text(encoding="utf-8"))
        kind, size, symbols = record["kind"], record["size"], record["symbols"]
    except (ValueError, KeyError, TypeError) as error:
        raise TrainingError(f"{path} is no vocabulary: {error}") from error
    if (kind, size) != (settings.kind, settings.size):
        raise TrainingError(
            f"{path} holds {kind} with size {size}, the configuration wants {settings.kind} with size {settings.size}: "
            "choose another --output, or --fresh"
        )
    return Alphabet(symbols)
