"""A language model that is small enough to follow by hand."""

import pytest

SMALL_ARPA = r"""
\data\
ngram 1=6
ngram 2=4
ngram 3=1

\1-grams:
-99	<s>	-0.5
-1.0	</s>
-2.0	<unk>
-0.5	a	-0.25
-0.75	b	-0.125
-1.25	<space>	0

\2-grams:
-0.1	<s> a	-0.3
-0.2	a b	-0.4
-0.3	b </s>
-0.6	b <space>

\3-grams:
-0.05	<s> a b

\end\
"""


@pytest.fixture
def small_arpa() -> str:
    """The content of an ARPA file."""
    return SMALL_ARPA
