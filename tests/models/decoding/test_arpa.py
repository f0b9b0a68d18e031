"""ARPA files are read as they are meant, or refused with the line that is wrong."""

import numpy as np
import pytest

from glyphline.models.decoding.arpa import parse_arpa
from glyphline.models.errors import OptionsError


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\\data\\", "", "no ARPA file"),
        ("-0.5	a	-0.25", "-0.5	the	-0.25", "line 11: the token 'the' is no single character"),
        ("-0.5	a	-0.25", "0.5	a	-0.25", "line 11: log10 probability 0.5"),
        ("-0.5	a	-0.25", "nan	a	-0.25", "line 11: log10 probability nan"),
        ("-0.5	a	-0.25", "x	a	-0.25", "line 11: no number"),
        ("-0.5	a	-0.25", "-0.5	a	inf", "line 11"),
        ("-0.2	a b", "-0.2	a c", "line 17: 'c' is not among the 1-grams"),
        ("-0.2	a b", "-0.2	<s> a", "an n-gram occurs twice"),
        ("-0.1	<s> a", "-0.1	<s> b", "lacks the shorter one"),
        ("-0.05	<s> a b\n", "", "line 23: expected a 3-gram"),
        ("-0.05	<s> a b\n\n\\end\\\n", "", "expected a 3-gram with its probability, one of 1, not ''"),
        ("\\2-grams:", "\\9-grams:", "expected '\\\\2-grams:'"),
        ("ngram 2=4", "ngram 2=many", "expected 'ngram 2=COUNT'"),
        ("ngram 3=1", "ngram 3=99999999999", "more than there are lines"),
        ("ngram 3=1", "\n".join(f"ngram {n}=1" for n in range(3, 12)), "order 11; at most 10"),
    ],
)
def test_a_damaged_file_is_an_error_that_names_the_line(small_arpa: str, old: str, new: str, message: str) -> None:
    with pytest.raises(OptionsError, match=message) as caught:
        parse_arpa(small_arpa.replace(old, new, 1).encode(), "small.arpa")
    assert caught.value.field == "language_model"
    assert "small.arpa" in caught.value.message


def test_lines_need_not_look_alike(small_arpa: str) -> None:
    loose = small_arpa.replace("-0.2	a b", "\n -0.2  a  b\t").replace("-0.1	<s> a	", "-0.1	<s>	a ")
    assert loose != small_arpa
    plain, other = parse_arpa(small_arpa.encode(), "plain"), parse_arpa(loose.encode(), "loose")
    assert (plain.order, plain.tokens) == (other.order, other.tokens)
    np.testing.assert_array_equal(plain.trie.edges, other.trie.edges)
    np.testing.assert_array_equal(plain.values, other.values)
    np.testing.assert_array_equal(plain.backoffs, other.backoffs)
