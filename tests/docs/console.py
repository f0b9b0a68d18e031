"""What documents tell a reader to type: found in their text, and taken apart as a shell would."""

from __future__ import annotations

import glob
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

__all__ = ["Call", "Step", "call_of", "plain", "program", "steps"]

_FENCE = re.compile(r"^( *)(`{3,})([\w-]*)[^\n]*\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"(?:^|\s+)#\s.*$")
_BEYOND = re.compile(r"[`$;|&<()]")
_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Step:
    """Something to type: a command, or a block of Python.

    Attributes:
        page: The document.
        line: Where it stands.
        language: `console` or `python`.
        text: The command without its prompt and its remark, or the block.
    """

    page: str
    line: int
    language: str
    text: str

    @property
    def name(self) -> str:
        """What the step is listed by: the command, or the first line of the block that is no import."""
        if self.language == "console":
            return self.text
        lines = [line for line in self.text.splitlines() if line and not line.startswith(("import ", "from "))]
        return lines[0] if lines else self.text.strip()


@dataclass(frozen=True)
class Call:
    """A command of Glyphline that needs no shell.

    Attributes:
        arguments: What comes after `glyphline`.
        output: File that the standard output goes to; None for none.
    """

    arguments: tuple[str, ...]
    output: str | None = None


def steps(text: str, page: str) -> list[Step]:
    """Finds all commands and blocks of Python of a document, in order.

    Args:
        text: Markdown.
        page: Name of the document.
    """
    found = []
    for match in _FENCE.finditer(text):
        first = text.count("\n", 0, match.start()) + 2
        language, body = match[3], dedent(match[4])
        if language == "console":
            found += [Step(page, first + number, language, plain(command)) for number, command in _commands(body)]
        elif language == "python":
            found.append(Step(page, first, language, body))
    return found


def _commands(body: str) -> list[tuple[int, str]]:
    """The commands of a block with their line numbers; a backslash joins the next line, all else is output."""
    found: list[tuple[int, str]] = []
    goes_on = False
    for number, line in enumerate(body.splitlines()):
        if goes_on:
            start, command = found[-1]
            found[-1] = (start, f"{command[:-1].rstrip()} {line.removeprefix('>').strip()}")
        elif line.strip().startswith("$ "):
            found.append((number, line.strip().removeprefix("$ ")))
        else:
            continue
        goes_on = line.endswith("\\")
    return found


def plain(command: str) -> str:
    """Returns a command without the remark behind it."""
    return _COMMENT.sub("", command).strip()


def program(command: str) -> str:
    """Returns the program that a command runs first."""
    words = shlex.split(command)
    return next((word for word in words if "=" not in word), "")


def call_of(command: str, folder: Path) -> Call | None:
    """Takes a command of Glyphline apart.

    Args:
        command: The command.
        folder: Where it is typed, for patterns.

    Returns:
        The call; None for another program, and for what only a shell can do.
    """
    lexer = shlex.shlex(command, posix=False, punctuation_chars=">")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words = list(lexer)
    output = None
    if len(words) > 2 and words[-2] == ">":
        words, output = words[:-2], words[-1]
    if words[0] != "glyphline" or any(_needs_shell(word) for word in words):
        return None
    return Call(tuple(argument for word in words[1:] for argument in _expand(word, folder)), output)


def _needs_shell(word: str) -> bool:
    if _quoted(word):
        return word[0] == '"' and bool(re.search(r"[`$][\w({]|`", word))
    return word == ">" or bool(_BEYOND.search(word))


def _quoted(word: str) -> bool:
    return len(word) > 1 and word[0] == word[-1] and word[0] in "'\""


def _expand(word: str, folder: Path) -> list[str]:
    """What the shell makes of a word."""
    if _quoted(word):
        return [word[1:-1]]
    word = str(Path(word).expanduser()) if word.startswith("~") else word
    if _PATTERN.search(word):
        return sorted(glob.glob(word, root_dir=folder)) or [word]
    return [word]
