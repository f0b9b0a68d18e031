"""Texts for strips: digits and their marks, and texts of any alphabet out of word lists, babble, numbers and shapes."""

from glyphline.training.datasets.texts.digits import random_digits, random_length, random_text
from glyphline.training.datasets.texts.mixture import TextMixture, build_texts
from glyphline.training.datasets.texts.words import read_words

__all__ = ["TextMixture", "build_texts", "random_digits", "random_length", "random_text", "read_words"]
