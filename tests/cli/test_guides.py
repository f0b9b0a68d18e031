"""Lexicons and language models on the command line: made, read with, and refused."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from glyphline.cli.exit_codes import ExitCode

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text("7777\n123\n90\n12x\n", encoding="utf-8")
    return path


def test_only_words_of_the_lexicon_are_read(invoke: Command, strips: list[tuple[Path, str]], words: Path) -> None:
    pictures = [path for path, text in strips if text][:4]
    done = invoke("recognize", *pictures, "--lexicon", words)
    assert done.returncode == ExitCode.OK, done.stderr
    assert {line.split("\t")[1] for line in done.stdout.splitlines()} <= {"7777", "123", "90"}
    assert "1 words left out: the model's alphabet lacks 'x'" in done.stderr


@pytest.mark.slow
def test_a_job_reads_with_both(invoke: Command, strips: list[tuple[Path, str]], words: Path, tmp_path: Path) -> None:
    invoke("language-model", words, "--output", tmp_path / "words.arpa")
    pictures, rows = [path for path, text in strips if text][:4], tmp_path / "rows.jsonl"
    arguments = ["--lexicon", words, "--several-words", "--language-model", tmp_path / "words.arpa"]
    done = invoke("transcribe", *pictures, "--output", rows, "--workers", "1", *arguments, "--quiet")
    assert done.returncode == ExitCode.OK, done.stderr
    texts = [json.loads(line)["text"] for line in rows.read_text(encoding="utf-8").splitlines()]
    assert {part for text in texts for part in text.split(" ")} <= {"7777", "123", "90"}


class TestMakingAModel:
    def test_it_is_written_and_measured(self, invoke: Command, words: Path, tmp_path: Path) -> None:
        output = tmp_path / "models" / "words.arpa.gz"
        done = invoke(
            "language-model", words, "-", "--order", "3", "--test", words, "--output", output, stdin=b"5\n5\n"
        )
        assert done.returncode == ExitCode.OK, done.stderr
        first, second = done.stdout.splitlines()
        assert first.startswith(f"{output}: 11 + ")
        assert "6 texts, 8 characters" in first
        assert second.startswith(f"{words}: ")
        assert second.endswith("bits a character, of 4 texts")
        assert invoke("language-model", words, "--output", output).returncode == ExitCode.USAGE
        assert invoke("language-model", words, "--output", output, "--overwrite").returncode == ExitCode.OK

    @pytest.mark.parametrize(
        ("content", "message"), [(None, "no such file"), (b"\xff\xfe", "UTF-8"), (b" \n", "hold no text")]
    )
    def test_what_is_no_text(self, invoke: Command, tmp_path: Path, content: bytes | None, message: str) -> None:
        if content is not None:
            (tmp_path / "a.txt").write_bytes(content)
        done = invoke("language-model", tmp_path / "a.txt", "--output", tmp_path / "a.arpa")
        assert done.returncode == ExitCode.USAGE
        assert message in done.stderr
        assert not (tmp_path / "a.arpa").exists()


@pytest.mark.parametrize("command", [["recognize"], ["transcribe", "--output", "rows.jsonl"]])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--lexicon", "none.txt"], "--lexicon: none.txt: No such file"),
        (["--lexicon", "words.txt", "--decoder", "greedy"], "needs the beam search"),
        (["--lexicon", "words.txt", "--allowed", "12"], "leave out the allowed characters"),
        (["--lexicon", "letters.txt"], "no word can be written"),
        (["--language-model", "words.txt"], "no ARPA file"),
        (["--language-model-weight", "1"], "--language-model-weight needs --language-model"),
        (["--several-words"], "--several-words needs --lexicon"),
        (["--length-bonus", "1"], "--length-bonus needs"),
        (["--lexicon", "words.txt", "--length-bonus", "99"], "--length-bonus: must be from -10 to 10"),
    ],
)
def test_what_is_refused(
    invoke: Command,
    strips: list[tuple[Path, str]],
    words: Path,
    command: list[str],
    arguments: list[str],
    message: str,
) -> None:
    (words.parent / "letters.txt").write_text("alpha\n", encoding="utf-8")
    done = invoke(*command, strips[0][0].resolve(), *arguments, cwd=words.parent)
    assert done.returncode == ExitCode.USAGE
    assert message in done.stderr
    assert not list(words.parent.glob("rows*"))
