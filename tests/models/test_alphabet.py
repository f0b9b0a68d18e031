import pickle
import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.models.alphabet import Alphabet
from glyphline.models.errors import AlphabetError

DIGITS = Alphabet(string.digits)
COMPOSED = "\u00e9"
DECOMPOSED = "e\u0301"


def symbol() -> st.SearchStrategy[str]:
    text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3)
    return text.map(lambda raw: unicodedata.normalize("NFC", raw)).filter(bool)


alphabets = st.lists(symbol(), min_size=1, max_size=12, unique=True).map(Alphabet)


def test_special_classes_frame_those_of_the_symbols() -> None:
    assert DIGITS.blank == 0
    assert DIGITS.end == 0
    assert DIGITS.encode("0") == [1]
    assert DIGITS.encode("9") == [10]
    assert DIGITS.start == 11
    assert DIGITS.size == 11
    assert len(DIGITS) == 10


@pytest.mark.parametrize("text", ["", "0", "0011", "1111111", "40799932", "999449", "9876543210"])
def test_texts_come_back_with_every_repeat(text: str) -> None:
    assert DIGITS.decode(DIGITS.encode(text)) == text


@given(alphabets, st.data())
def test_what_is_encoded_is_decoded_to_the_same_text(alphabet: Alphabet, data: st.DataObject) -> None:
    text = alphabet.normalise_text("".join(data.draw(st.lists(st.sampled_from(alphabet.symbols), max_size=20))))
    if not alphabet.unknown_characters(text):  # symbols can compose with their neighbours to one that is none
        assert alphabet.decode(alphabet.encode(text)) == text


@given(alphabets, st.text(max_size=20))
def test_encoding_fails_exactly_where_characters_are_unknown(alphabet: Alphabet, text: str) -> None:
    unknown = alphabet.unknown_characters(text)
    if unknown:
        with pytest.raises(AlphabetError):
            alphabet.encode(text)
    else:
        classes = alphabet.encode(text)
        assert all(1 <= value <= len(alphabet.symbols) for value in classes)
        assert alphabet.decode(classes) == alphabet.normalise_text(text)


def test_a_letter_with_a_combining_mark_is_the_composed_letter() -> None:
    alphabet = Alphabet(["e", COMPOSED])
    assert alphabet.encode(DECOMPOSED) == alphabet.encode(COMPOSED) == [2]
    assert alphabet.normalise_text(DECOMPOSED) == COMPOSED
    assert Alphabet(["e"]).unknown_characters(DECOMPOSED) == [COMPOSED]


def test_a_mark_that_composes_with_nothing_is_a_symbol_of_its_own() -> None:
    alphabet = Alphabet(["x", "\u0301"])
    assert alphabet.encode("x\u0301") == [1, 2]
    assert alphabet.decode([1, 2]) == "x\u0301"


def test_decoded_symbols_compose() -> None:
    assert Alphabet(["e", "\u0301"]).decode([1, 2]) == COMPOSED


@pytest.mark.parametrize("text", ["x²", "ſ", "ﬁ", "①"])
def test_compatibility_characters_are_left_alone(text: str) -> None:
    assert Alphabet.normalise_text(text) == text


def test_the_longest_symbol_that_fits_is_taken() -> None:
    alphabet = Alphabet(["a", "ab", "abc", "b", "c"])
    assert alphabet.encode("abcab") == [3, 2]
    assert alphabet.encode("acb") == [1, 5, 4]
    assert alphabet.decode([3, 2]) == "abcab"


def test_words_can_be_symbols() -> None:
    alphabet = Alphabet(["a ", "cat", "dog", "\t"])
    assert alphabet.encode("a cat\ta dog") == [1, 2, 4, 1, 3]


def test_unknown_characters_are_each_listed_once_with_their_code_points() -> None:
    with pytest.raises(AlphabetError) as raised:
        DIGITS.encode("1é2éx")
    assert str(raised.value) == "not in the alphabet: 'é' (U+00E9), 'x' (U+0078)"
    assert DIGITS.unknown_characters("1é2éx") == ["é", "x"]
    assert DIGITS.unknown_characters("12") == []


def test_labels_are_checked_with_characters_and_line_numbers() -> None:
    labels = [(1, "12"), (2, "1x"), (3, ""), (4, "xé"), (9, "7")]
    with pytest.raises(AlphabetError) as raised:
        DIGITS.check_labels(labels)
    assert str(raised.value) == (
        "labels hold characters that the alphabet lacks: 'x' (U+0078) in lines 2, 4; 'é' (U+00E9) in line 4"
    )
    DIGITS.check_labels([(1, "12"), (2, "")])


def test_a_label_with_spaces_is_unknown_rather_than_trimmed() -> None:
    with pytest.raises(AlphabetError, match=r"'\ ' \(U\+0020\) in lines 1, 2, 3, 4, 5 and 3 more"):
        DIGITS.check_labels((line, f"{line} ") for line in range(1, 9))


@pytest.mark.parametrize(
    ("symbols", "reason"),
    [
        ([], "at least one symbol"),
        ("", "at least one symbol"),
        (["a", ""], "symbol 1 is empty"),
        (["a", "b", "a"], r"symbol 2 'a' \(U\+0061\) repeats symbol 0"),
        (["a", DECOMPOSED], r"symbol 1 .*U\+0065 U\+0301.* not in Unicode normal form C"),
    ],
)
def test_malformed_alphabets_are_refused(symbols: list[str], reason: str) -> None:
    with pytest.raises(AlphabetError, match=reason):
        Alphabet(symbols)


@pytest.mark.parametrize("value", [-1, 0, 11, 12])
def test_classes_without_a_symbol_are_refused(value: int) -> None:
    with pytest.raises(AlphabetError, match=f"class {value} stands for no symbol; symbols are 1 to 10"):
        DIGITS.decode([1, value])


def test_alphabets_are_values() -> None:
    assert Alphabet("ab") == Alphabet(["a", "b"])
    assert hash(Alphabet("ab")) == hash(Alphabet(["a", "b"]))
    assert Alphabet("ab") != Alphabet("ba")
    assert Alphabet("ab") != "ab"
    assert repr(Alphabet("ab")) == "Alphabet(['a', 'b'])"
    assert pickle.loads(pickle.dumps(DIGITS)) == DIGITS


def test_a_list_of_symbols_can_change_later_without_harm() -> None:
    symbols = ["a", "b"]
    alphabet = Alphabet(symbols)
    symbols.append("c")
    assert alphabet.symbols == ("a", "b")
    assert alphabet.size == 3
