"""Configuration of the texts that strips are drawn with."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from glyphline.training.config.base import Section

Language = Literal["en", "de", "fr"]

KINDS = (
    *("words", "lines", "babble", "numbers", "prices", "dates", "times", "codes", "phones", "emails", "urls"),
    *("receipts", "characters"),
)
"""Kinds of texts, each with its share in `TextsConfig`."""


class CasesConfig(Section):
    """Shares of upper and lower case among words; they need not add up to 1.

    Attributes:
        same: As the word list has it.
        lower: All small.
        title: Each word with a capital.
        upper: All capitals.
        mixed: Each letter by chance.
    """

    same: float = Field(default=0.45, ge=0)
    lower: float = Field(default=0.1, ge=0)
    title: float = Field(default=0.2, ge=0)
    upper: float = Field(default=0.22, ge=0)
    mixed: float = Field(default=0.03, ge=0)

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if not sum(self.model_dump().values()):
            raise ValueError("one of the shares must be above 0")
        return self


class TextsConfig(Section):
    """What is written on strips. The shares need not add up to 1; those without word lists are passed over.

    Attributes:
        lists: Files of one word a line, below the data root. Words with characters outside the alphabet are left out.
        languages: Whose commonest words, months, and currencies occur.
        words: Share of single words.
        lines: Share of several words as they stand in a line.
        babble: Share of words that could be: made of the letter sequences of the lists, and read by no heart.
        numbers: Share of numbers, with signs and marks.
        prices: Share of prices, with currencies.
        dates: Share of dates.
        times: Share of times of day.
        codes: Share of codes, as A7-K93X.
        phones: Share of telephone numbers.
        emails: Share of e-mail addresses.
        urls: Share of addresses of web pages.
        receipts: Share of the lines of receipts and forms: a word, a colon, a number.
        characters: Share of characters of the alphabet strung together, so that the rarest of them occur.
        common: Share of words that are among the commonest of the languages.
        marks: Share of words and lines with punctuation around or within them.
        most_words: Greatest number of words in a line.
        cases: Upper and lower case.
    """

    lists: tuple[str, ...] = ()
    languages: tuple[Language, ...] = ("en",)
    words: float = Field(default=0.42, ge=0)
    lines: float = Field(default=0.2, ge=0)
    babble: float = Field(default=0.08, ge=0)
    numbers: float = Field(default=0.07, ge=0)
    prices: float = Field(default=0.04, ge=0)
    dates: float = Field(default=0.03, ge=0)
    times: float = Field(default=0.02, ge=0)
    codes: float = Field(default=0.04, ge=0)
    phones: float = Field(default=0.02, ge=0)
    emails: float = Field(default=0.01, ge=0)
    urls: float = Field(default=0.01, ge=0)
    receipts: float = Field(default=0.03, ge=0)
    characters: float = Field(default=0.03, ge=0)
    common: float = Field(default=0.25, ge=0, le=1)
    marks: float = Field(default=0.15, ge=0, le=1)
    most_words: int = Field(default=8, ge=1)
    cases: CasesConfig = CasesConfig()

    def shares(self) -> dict[str, float]:
        """Returns the share of each kind of text that can be drawn."""
        given = {kind: float(getattr(self, kind)) for kind in KINDS}
        return {kind: share for kind, share in given.items() if share > 0 and (kind != "babble" or self.lists)}

    @model_validator(mode="after")
    def _has_a_kind(self) -> Self:
        if not self.shares():
            raise ValueError("one of the shares must be above 0 (babble needs lists)")
        return self
