"""The documents say what is so: links lead somewhere, commands exist, and what they list is what there is."""

import ast
import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from glyphline.cli.application import app

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/**/*.md", "examples/**/README.md", "tests/**/README.md")
    for path in ROOT.glob(pattern)
    if "node_modules" not in path.parts
)


def blocks(document: str, language: str) -> list[str]:
    """Returns the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / document).read_text(encoding="utf-8"), re.M | re.S)


def commands(document: str) -> list[list[str]]:
    """Returns the commands of a document's console blocks, split into words, without their comments."""
    lines = [line for block in blocks(document, "console") for line in block.replace("\\\n", "").splitlines()]
    return [shlex.split(line.removeprefix("$ "), comments=True) for line in lines if line.startswith("$ ")]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    path = ROOT / document
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_make_has_the_targets(document: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    named = set(re.findall(r"(?:`|\$ )make ([a-z]+)", (ROOT / document).read_text(encoding="utf-8")))
    assert named
    assert named <= targets


def test_the_commands_of_the_documents_exist() -> None:
    parts = get_command(app).commands  # type: ignore[attr-defined]  # typer's own copy of click has no types
    found = [words for document in DOCUMENTS for words in commands(document) if words[0] == "glyphline"]
    assert {words[1] for words in found} >= {"recognize", "transcribe", "serve", "train", "export", "evaluate"}
    for words in found:
        command = parts[words[1]]
        if words[1] == "data":
            command = command.commands[words[2]]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words[2:] if word.startswith("-")} <= known, words


def test_the_scripts_that_the_documents_run_exist() -> None:
    scripts = [
        words[1] for document in DOCUMENTS for words in commands(document) if words[0] == "python" and words[1] != "-c"
    ]
    assert scripts
    assert [script for script in scripts if not (ROOT / script).is_file()] == []


def test_the_python_of_the_readme_imports_what_there_is() -> None:
    for block in blocks("README.md", "python"):
        imports: list[ast.stmt] = [
            node for node in ast.parse(block).body if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        exec(compile(ast.Module(imports, type_ignores=[]), "README.md", "exec"), {})
