"""The file of tokens: what a line may say, and that it holds no token."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyphline.service.security.tokens import (
    Grant,
    TokenFile,
    TokenFileError,
    new_token,
    read_tokens,
    token_line,
)

HASH = f"sha256:{hashlib.sha256(b'x').hexdigest()}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.txt"


def test_a_line_says_whose_token_it_is_and_what_limits_it(path: Path) -> None:
    path.write_text(f"# all of them\n\n a: {HASH}  # the first\nb.c-d: {HASH} read-only bytes/s=1e6 images/s=0.5\n")
    digest = hashlib.sha256(b"x").digest()
    assert read_tokens(path) == (Grant("a", digest), Grant("b.c-d", digest, True, 0.5, 1e6))


def test_tokens_are_found_by_nothing_but_themselves(path: Path) -> None:
    tokens = [new_token() for _ in range(3)]
    lines = [token_line("old", tokens[0]), token_line("old", tokens[1]), token_line("new", tokens[2], read_only=True)]
    path.write_text("\n".join(lines))
    assert not any(token in path.read_text() for token in tokens)
    file = TokenFile(path)
    names = [grant.name if (grant := file.find(token)) else None for token in tokens]
    assert names == ["old", "old", "new"]
    for stranger in ("", "old", tokens[0][:-1], tokens[0] + "a", new_token(), "x" * 10**6, "\udcff", "é"):
        assert file.find(stranger) is None


@pytest.mark.parametrize(
    "line",
    [
        "a",
        f"a b: {HASH}",
        f": {HASH}",
        f"{'a' * 65}: {HASH}",
        "a:",
        "a: secret",
        "a: sha256:12",
        f"a: {HASH.upper()}",
        f"a: {HASH} admin",
        f"a: {HASH} images/s=0",
        f"a: {HASH} images/s=nan",
        f"a: {HASH} bytes/s=",
        f"a: {HASH} images/s=-1",
    ],
)
def test_a_line_that_is_none_is_named_and_not_repeated(path: Path, line: str) -> None:
    path.write_text(f"good: {HASH}\n{line}\n")
    with pytest.raises(TokenFileError, match="line 2") as failure:
        read_tokens(path)
    assert "secret" not in str(failure.value)


def test_files_that_hold_no_token(path: Path) -> None:
    with pytest.raises(TokenFileError, match="No such file"):
        read_tokens(path)
    for content in (b"", b"# nothing\n", b"\xff\xfe"):
        path.write_bytes(content)
        with pytest.raises(TokenFileError, match=r"tokens\.txt"):
            read_tokens(path)


def test_a_bad_file_leaves_the_last_good_tokens(path: Path) -> None:
    token = new_token()
    path.write_text(token_line("a", token))
    file = TokenFile(path)
    assert not file.changed()
    for content in ("nonsense", ""):
        path.write_text(content)
        assert file.changed()
        with pytest.raises(TokenFileError):
            file.reload()
        assert not file.changed()  # one try for each version
        assert file.find(token) is not None
    path.unlink()
    assert file.changed()
    path.write_text(token_line("b", new_token()))
    file.reload()
    assert file.find(token) is None


@given(
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True),
    st.booleans(),
    st.none() | st.floats(1e-3, 1e9),
    st.none() | st.floats(1e-3, 1e12),
)
def test_what_is_written_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, name: str, read_only: bool, images: float | None, size: float | None
) -> None:
    path = tmp_path_factory.getbasetemp() / "roundtrip.txt"
    token = new_token()
    line = token_line(name, token, read_only=read_only, images_per_second=images, bytes_per_second=size)
    path.write_text(line)
    (grant,) = read_tokens(path)
    assert (grant.name, grant.read_only) == (name, read_only)
    assert grant.images_per_second == (None if images is None else pytest.approx(images))
    assert grant.bytes_per_second == (None if size is None else pytest.approx(size))


@pytest.mark.parametrize(("name", "rate"), [("a b", None), ("", None), ("a", 0.0), ("a", float("inf"))])
def test_no_line_is_written_that_could_not_be_read(name: str, rate: float | None) -> None:
    with pytest.raises(ValueError, match=r"name|above 0"):
        token_line(name, "t", images_per_second=rate)
