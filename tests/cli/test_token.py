"""Tokens are printed once, and only their hashes are kept."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from glyphline.cli.exit_codes import ExitCode
from glyphline.service.security.tokens import TokenFile

Command = Callable[..., subprocess.CompletedProcess[str]]


def test_the_file_knows_the_token_and_does_not_hold_it(invoke: Command, tmp_path: Path) -> None:
    path = tmp_path / "tokens.txt"
    path.write_text("# callers")  # without an end of line
    first = invoke("token", "counter", "--file", path)
    second = invoke("token", "partner", "--file", path, "--read-only", "--images-per-second", "50")
    tokens = [first.stdout.strip(), second.stdout.strip()]
    assert first.stdout == f"{tokens[0]}\n"
    assert not any(token in path.read_text() for token in tokens)
    file = TokenFile(path)
    counter, partner = (file.find(token) for token in tokens)
    assert counter is not None
    assert partner is not None
    assert (counter.name, counter.read_only, counter.images_per_second) == ("counter", False, None)
    assert (partner.name, partner.read_only, partner.images_per_second) == ("partner", True, 50)


def test_without_a_file_the_line_is_shown_apart_from_the_token(invoke: Command, tmp_path: Path) -> None:
    done = invoke("token", "counter")
    path = tmp_path / "tokens.txt"
    path.write_text(done.stderr.partition("tokens: ")[2])
    found = TokenFile(path).find(done.stdout.strip())
    assert found is not None
    assert done.stdout.strip() not in done.stderr


@pytest.mark.parametrize(
    "arguments", [["a b"], ["-"], ["a", "--images-per-second", "0"], ["a", "--bytes-per-second", "-1"]]
)
def test_what_makes_no_line_makes_no_token(invoke: Command, tmp_path: Path, arguments: list[str]) -> None:
    done = invoke("token", *arguments, "--file", tmp_path / "tokens.txt")
    assert done.returncode == ExitCode.USAGE
    assert done.stdout == ""
    assert not (tmp_path / "tokens.txt").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--token-file", "{}"], "--token-file is for --server"),
        (["--tls-ca", "{}"], "--tls-ca is for --server"),
        (["--server", "10.0.0.1:1", "--token-file", "{}"], "add --tls"),
        (["--server", "localhost:1", "--token-file", "{}"], "a token and nothing else"),
        (["--server", "localhost:1", "--tls-ca", "{}"], "is no PEM file"),
        (["--server", "localhost:1", "--tls", "--tls-certificate", "{}"], "give both or neither"),
    ],
)
def test_half_a_secret_is_refused_before_anything_is_sent(
    invoke: Command, text_file: Path, arguments: list[str], words: str
) -> None:
    text_file.write_text("two words")
    done = invoke("recognize", text_file, *(each.format(text_file) for each in arguments))
    assert done.returncode == ExitCode.USAGE
    assert words in done.stderr
