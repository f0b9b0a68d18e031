"""Lexicons and the trie they rest on."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.models.alphabet import Alphabet
from glyphline.models.decoding.lexicon import Lexicon
from glyphline.models.decoding.trie import ROOT, build_trie
from glyphline.models.errors import OptionsError

LETTERS = Alphabet("abcdé ")

words_of_symbols = st.lists(st.lists(st.integers(1, 4), max_size=6).map(tuple), max_size=30)


class TestTrie:
    @given(words_of_symbols)
    def test_it_holds_what_was_put_in_and_nothing_else(self, words: list[tuple[int, ...]]) -> None:
        lengths = np.array([len(word) for word in words], dtype=np.int64)
        trie = build_trie(np.array([value for word in words for value in word], dtype=np.int64), lengths, 5)
        prefixes = {word[:length] for word in words for length in range(len(word) + 1)} | {()}
        assert len(trie) == len(prefixes)
        reached = {prefix: trie.find(prefix) for prefix in prefixes}
        assert sorted(reached.values()) == list(range(len(prefixes)))
        for prefix, node in reached.items():
            assert bool(trie.ends[node]) == (prefix in words)
            following = {symbol for symbol in range(5) if (*prefix, symbol) in prefixes}
            assert set(trie.children(node)) == following
            assert trie.children(node) == {symbol: reached[*prefix, symbol] for symbol in following}
            steps = trie.follow(np.full(5, node), np.arange(5))
            assert steps.tolist() == [reached.get((*prefix, symbol), -1) for symbol in range(5)]

    def test_nowhere_leads_nowhere(self) -> None:
        trie = build_trie(np.array([1, 2]), np.array([2]), 3)
        assert trie.follow(np.array([-1, ROOT]), np.array([2, 2])).tolist() == [-1, -1]
        assert trie.find([2, 1, 1]) == -1


class TestLexicon:
    def test_words_are_normalised_and_each_counts_once(self) -> None:
        lexicon = Lexicon(["  cab ", "bad\n", "", "cab", "de\u0301d"])
        assert lexicon.words == ("bad", "cab", "déd")
        assert lexicon == Lexicon(["dé\u0064", "bad", "cab"])
        assert hash(lexicon) == hash(Lexicon(reversed(lexicon.words)))
        assert lexicon != Lexicon(["bad"])

    def test_it_can_be_sent_to_another_process(self) -> None:
        lexicon = Lexicon(["cab", "bad"])
        lexicon.bind(LETTERS)
        assert pickle.loads(pickle.dumps(lexicon)) == lexicon

    @pytest.mark.parametrize("words", [[], ["", "  ", "\n"]])
    def test_an_empty_one_is_an_error(self, words: list[str]) -> None:
        with pytest.raises(OptionsError) as caught:
            Lexicon(words)
        assert caught.value.field == "lexicon"

    def test_words_that_cannot_be_written_are_counted_and_their_characters_named(self) -> None:
        bound = Lexicon(["cab", "zoo", "fad", "zab"]).bind(LETTERS)
        assert bound.left_out == 3
        assert bound.unknown == {"z": 2, "o": 1, "f": 1}
        assert bound.warning() == "3 words left out: the model's alphabet lacks 'z', 'f', 'o'"
        assert Lexicon(["cab"]).bind(LETTERS).warning() is None

    def test_one_of_which_nothing_can_be_written_is_an_error(self) -> None:
        lexicon = Lexicon(["zoo", "fog"])
        assert not lexicon.fits(LETTERS)
        with pytest.raises(OptionsError, match="lacks 'o'") as caught:
            lexicon.bind(LETTERS)
        assert caught.value.field == "lexicon"

    @given(st.lists(st.text("abcdé xy", min_size=1, max_size=5), min_size=1, max_size=20).filter("".join))
    def test_whole_arrays_are_spelt_as_single_words_are(self, words: list[str]) -> None:
        try:
            lexicon = Lexicon(words)
        except OptionsError:
            assert not any(word.strip() for word in words)
            return
        spellable = [word for word in lexicon.words if not LETTERS.unknown_characters(word)]
        assert lexicon.fits(LETTERS) == bool(spellable)
        if spellable:
            bound = lexicon.bind(LETTERS)
            assert int(bound.trie.ends.sum()) == len(spellable)
            assert all(bound.trie.ends[bound.trie.find(LETTERS.encode(word))] for word in spellable)
            assert bound.left_out == len(lexicon) - len(spellable)

    def test_symbols_of_several_characters_are_taken_as_labels_are(self) -> None:
        pieces = Alphabet(["a", "b", "ab", "c"])
        bound = Lexicon(["abc", "bx", "ba"]).bind(pieces)
        assert bound.trie.ends[bound.trie.find([3, 4])]
        assert bound.trie.find([1, 2]) == -1
        assert (bound.left_out, bound.unknown) == (1, {"x": 1})


class TestFile:
    def test_a_word_a_line(self, tmp_path: Path) -> None:
        path = tmp_path / "words.txt"
        path.write_bytes("\ufeffcab\r\nde\u0301d\r\n\r\nbad dad\r\n".encode())
        assert Lexicon.read(path).words == ("bad dad", "cab", "déd")

    @pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe\x00", None])
    def test_what_is_no_list_of_words_is_an_error_that_names_the_file(
        self, tmp_path: Path, content: bytes | None
    ) -> None:
        path = tmp_path / "words.txt"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(OptionsError, match=r"words\.txt") as caught:
            Lexicon.read(path)
        assert caught.value.field == "lexicon"


def test_a_large_lexicon_is_small() -> None:
    random = np.random.default_rng(1)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    lexicon = Lexicon("".join(letters[random.integers(0, 26, 9)]) for _ in range(50_000))
    trie = lexicon.bind(Alphabet("".join(letters))).trie
    assert int(trie.ends.sum()) == len(lexicon)
    assert trie.edges.nbytes + trie.ends.nbytes <= 9 * len(trie)
