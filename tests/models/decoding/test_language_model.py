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
            assert model.log_probability(text) == pytest.approx(oracle_text(table, text), abs=1e-5)

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
        assert total == pytest.approx(oracle_text(table, "".join(alphabet.symbols[s - 1] for s in symbols)), abs=1e-5)

    def test_a_small_model_by_hand(self, small_arpa: str) -> None:
        model = CharacterModel(small_arpa.encode())
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

    def test_an_alphabet_of_which_it_knows_nothing_is_an_error(self, small_arpa: str) -> None:
        model = CharacterModel(small_arpa.encode())
        assert model.fits(Alphabet("axy"))
        assert not model.fits(Alphabet("xyz"))
        with pytest.raises(OptionsError, match="none of the characters"):
            model.bind(Alphabet("xyz"))


class TestFile:
    def test_it_is_read_packed_or_not_and_can_be_sent_to_another_process(self, tmp_path: Path, small_arpa: str) -> None:
        (tmp_path / "small.arpa").write_text(small_arpa, encoding="utf-8")
        (tmp_path / "small.arpa.gz").write_bytes(gzip.compress(small_arpa.replace("\n", "\r\n").encode()))
        plain, packed = CharacterModel.read(tmp_path / "small.arpa"), CharacterModel.read(tmp_path / "small.arpa.gz")
        assert plain.log_probability("ab a") == packed.log_probability("ab a")
        assert pickle.loads(pickle.dumps(plain)) == plain
        assert hash(plain) == hash(CharacterModel(small_arpa.encode()))

    @pytest.mark.parametrize("content", [b"", b"\xff\xff", b"\x1f\x8bnot really", gzip.compress(b"x", mtime=0)[:-4]])
    def test_what_is_no_text_is_an_error_that_names_the_file(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "small.arpa"
        path.write_bytes(content)
        with pytest.raises(OptionsError) as caught:
            CharacterModel.read(path)
        assert str(path) in caught.value.message

    def test_a_missing_file_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(OptionsError, match="No such file"):
            CharacterModel.read(tmp_path / "none.arpa")


def test_rows_cannot_be_changed(small_arpa: str) -> None:
    bound = CharacterModel(small_arpa.encode()).bind(Alphabet("ab"))
    with pytest.raises(ValueError, match="read-only"):
        bound.row(bound.start)[0] = 1.0
    assert np.isfinite(bound.row(bound.start)).all()
