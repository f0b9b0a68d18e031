"""Character language models against a slow reading of the definition."""

import gzip
import math
import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glyphline.models.alphabet import Alphabet
from glyphline.models.decoding.language_model import CharacterModel
from glyphline.models.errors import OptionsError

Gram = tuple[str, ...]
Table = dict[Gram, tuple[float, float]]  # log10 probability, log10 back-off

SMALL = r"""
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


def write(table: Table) -> bytes:
    order = max(map(len, table))
    lines = ["\\data\\", *(f"ngram {n}={sum(len(gram) == n for gram in table)}" for n in range(1, order + 1))]
    for n in range(1, order + 1):
        lines += ["", f"\\{n}-grams:"]
        lines += [f"{v!r}\t{' '.join(gram)}\t{b!r}" for gram, (v, b) in table.items() if len(gram) == n]
    return "\n".join([*lines, "", "\\end\\", ""]).encode()


def oracle(table: Table, context: Gram, token: str) -> float:
    """Natural log-probability, straight from the definition."""
    if (*context, token) in table:
        return table[*context, token][0] * math.log(10)
    if not context:
        return oracle(table, (), "<unk>")
    return table.get(context, (0.0, 0.0))[1] * math.log(10) + oracle(table, context[1:], token)


def oracle_text(table: Table, text: str) -> float:
    order = max(map(len, table))
    known = {gram[0] for gram in table if len(gram) == 1}
    tokens = [{" ": "<space>"}.get(each, each) for each in text]
    tokens = ["<s>", *(token if token in known else "<unk>" for token in tokens), "</s>"]
    return sum(
        oracle(table, tuple(tokens[max(0, place - order + 1) : place]), tokens[place])
        for place in range(1, len(tokens))
    )


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Any back-off model over a and b, as files may hold it: suffixes of n-grams may be missing, prefixes may not."""
    values = st.floats(-3.0, 0.0).map(lambda value: round(value, 3))
    backoffs = st.floats(-1.0, 0.5).map(lambda value: round(value, 3))
    table: Table = {(token,): (draw(values), draw(backoffs)) for token in ("<s>", "</s>", "<unk>", "a", "b")}
    for length in range(2, draw(st.integers(1, 4)) + 1):
        shorter = [gram for gram in table if len(gram) == length - 1 and gram[-1] != "</s>"]
        for gram, token in product(shorter, ("a", "b", "</s>")):
            if draw(st.booleans()):
                table[*gram, token] = draw(values), draw(backoffs)
    return table


class TestProbabilities:
    @settings(max_examples=100, deadline=None)
    @given(tables(), st.lists(st.text("abx", max_size=6), min_size=1, max_size=4))
    def test_backing_off_is_as_defined(self, table: Table, texts: list[str]) -> None:
        model = CharacterModel(write(table))
        for text in texts:
            assert model.log_probability(text) == pytest.approx(oracle_text(table, text), abs=1e-9)

    @settings(max_examples=50, deadline=None)
    @given(tables(), st.lists(st.integers(1, 4), max_size=5))
    def test_a_symbol_of_several_characters_is_worth_its_characters(self, table: Table, symbols: list[int]) -> None:
        alphabet = Alphabet(["a", "b", "ab", "bxa"])
        bound = CharacterModel(write(table)).bind(alphabet)
        state, total = bound.start, 0.0
        for symbol in symbols:
            total += float(bound.row(state)[symbol])
            state = bound.follow(state, symbol)
        total += float(bound.row(state)[0])
        assert total == pytest.approx(oracle_text(table, "".join(alphabet.symbols[s - 1] for s in symbols)), abs=1e-9)

    def test_a_small_model_by_hand(self) -> None:
        model = CharacterModel(SMALL.encode())
        assert (model.order, len(model), model.characters) == (3, 11, frozenset("ab "))

        def tens(text: str) -> float:
            return model.log_probability(text) / math.log(10)

        assert tens("ab") == pytest.approx(-0.1 - 0.05 - 0.4 - 0.3)  # </s> after "ab": back off, then "b </s>"
        assert tens("") == pytest.approx(-0.5 - 1.0)
        assert tens("b") == pytest.approx(-0.5 - 0.75 - 0.3)
        assert tens("b b") == pytest.approx(-0.5 - 0.75 - 0.6 - 0.75 - 0.3)
        assert tens("é") == tens("e\u0301") == pytest.approx(-0.5 - 2.0 - 1.0)

    def test_what_a_file_lacks(self) -> None:
        """Without <s> a text begins anywhere, without </s> its end costs nothing, without <unk> the unseen is rare."""
        model = CharacterModel(write({("a",): (-0.2, 0.0), ("b",): (-0.5, 0.0)}))
        assert model.log_probability("ab") == pytest.approx(-0.7 * math.log(10))
        assert model.log_probability("q") == pytest.approx(-1.5 * math.log(10))

    def test_an_alphabet_of_which_it_knows_nothing_is_an_error(self) -> None:
        model = CharacterModel(SMALL.encode())
        assert model.fits(Alphabet("axy"))
        assert not model.fits(Alphabet("xyz"))
        with pytest.raises(OptionsError, match="none of the characters"):
            model.bind(Alphabet("xyz"))


class TestFile:
    def test_it_is_read_packed_or_not_and_can_be_sent_to_another_process(self, tmp_path: Path) -> None:
        (tmp_path / "small.arpa").write_text(SMALL, encoding="utf-8")
        (tmp_path / "small.arpa.gz").write_bytes(gzip.compress(SMALL.replace("\n", "\r\n").encode()))
        plain, packed = CharacterModel.read(tmp_path / "small.arpa"), CharacterModel.read(tmp_path / "small.arpa.gz")
        assert plain.log_probability("ab a") == packed.log_probability("ab a")
        assert pickle.loads(pickle.dumps(plain)) == plain
        assert hash(plain) == hash(CharacterModel(SMALL.encode()))

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
            ("\\2-grams:", "\\9-grams:", "expected '\\\\2-grams:'"),
            ("ngram 2=4", "ngram 2=many", "expected 'ngram 2=COUNT'"),
            ("ngram 3=1", "ngram 3=99999999999", "more than there are lines"),
            ("ngram 3=1", "\n".join(f"ngram {n}=1" for n in range(3, 12)), "order 11; at most 10"),
        ],
    )
    def test_a_damaged_file_is_an_error_that_names_the_line(
        self, tmp_path: Path, old: str, new: str, message: str
    ) -> None:
        path = tmp_path / "small.arpa"
        path.write_text(SMALL.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(OptionsError, match=message) as caught:
            CharacterModel.read(path)
        assert caught.value.field == "language_model"
        assert str(path) in caught.value.message

    def test_lines_need_not_look_alike(self) -> None:
        loose = SMALL.replace("-0.2	a b", "\n -0.2  a  b\t").replace("-0.1	<s> a	", "-0.1	<s>	a ")
        assert loose != SMALL
        plain, other = CharacterModel(SMALL.encode()), CharacterModel(loose.encode())
        assert len(plain) == len(other)
        assert [plain.log_probability(text) for text in ("", "ab", "ba", "a b")] == [
            other.log_probability(text) for text in ("", "ab", "ba", "a b")
        ]

    @pytest.mark.parametrize("content", [b"", b"\xff\xff", b"\x1f\x8bnot really", gzip.compress(b"x", mtime=0)[:-4]])
    def test_what_is_no_text_is_an_error(self, content: bytes) -> None:
        with pytest.raises(OptionsError):
            CharacterModel(content)

    def test_a_missing_file_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(OptionsError, match="No such file"):
            CharacterModel.read(tmp_path / "none.arpa")


def test_rows_cannot_be_changed() -> None:
    bound = CharacterModel(SMALL.encode()).bind(Alphabet("ab"))
    with pytest.raises(ValueError, match="read-only"):
        bound.row(bound.start)[0] = 1.0
    assert np.isfinite(bound.row(bound.start)).all()
