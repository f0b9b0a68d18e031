"""What every peer server runs on its batches: Glyphline's own recogniser, so that only the server differs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding import DecodingOptions
from glyphline.models.recognizer import Recognizer

GREEDY = DecodingOptions(decoder="greedy")


class BatchReader:
    """A recogniser with one thread that reads encoded images greedily."""

    def __init__(self, bundle: str) -> None:
        """Loads the bundle at a path."""
        self._recognizer = Recognizer.load(load_bundle(Path(bundle)), threads=1)

    def read(self, contents: Sequence[bytes]) -> list[str]:
        """Reads the images of one batch.

        Raises:
            ImageError: If one of them cannot be read.
        """
        texts = []
        for outcome in self._recognizer.recognize(contents, GREEDY, max_batch=len(contents)):
            if isinstance(outcome, Exception):
                raise outcome
            texts.append(outcome.text)
        return texts
