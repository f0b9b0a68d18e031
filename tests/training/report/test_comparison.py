import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.training.report.comparison import digits, everything, letters_and_digits


@pytest.mark.parametrize(
    ("text", "everything_of_it", "letters_and_digits_of_it", "digits_of_it"),
    [
        ("", "", "", ""),
        ("Tel. 01-23", "Tel. 01-23", "tel0123", "0123"),
        ("STRAẞE Straße", "STRAẞE Straße", "strassestrasse", ""),
        ("e\u0301t\u00e9", "été", "été", ""),
        ("\uff21\uff11 \u0661", "\uff21\uff11 \u0661", "a1\u0661", "1"),
        ("\u4e09 \u00b2", "\u4e09 \u00b2", "\u4e092", "2"),
        (" ,-. ", " ,-. ", "", ""),
    ],
)
def test_what_is_compared(text: str, everything_of_it: str, letters_and_digits_of_it: str, digits_of_it: str) -> None:
    assert everything(text) == everything_of_it
    assert letters_and_digits(text) == letters_and_digits_of_it
    assert digits(text) == digits_of_it


@given(st.text())
def test_what_was_kept_once_is_kept_again(text: str) -> None:
    kept = digits(text)
    assert digits(kept) == kept
    assert set(kept) <= set("0123456789")
    assert all(character.isalnum() for character in letters_and_digits(text))
