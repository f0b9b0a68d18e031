"""The pages of the documentation's site, gathered from the repository into one folder that is complete in itself.

Written pages are taken from `docs/`, generated ones from the API, the command line and the models. What a page links to
elsewhere in the repository comes along, so that the site needs neither the repository nor a network.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from command_reference import render as render_commands
from formulas import show_formulas
from markdown_text import escape, outside_code, table
from proto_reference import describe
from proto_reference import render as render_api
from typer.main import get_command

from glyphline.cli.application import app

__all__ = ["ELSEWHERE", "Page", "Pages", "gather", "rewrite_links"]

ELSEWHERE = PurePosixPath("repository")
"""Folder of the site for what is not documentation and is linked to: sources, configurations, licences."""

_MADE = ".made-by-build_pages"
"""Marks a folder that may be removed to be made anew."""

_PRETRAINED = PurePosixPath("models/glyphline/models/pretrained")
_PROTO = PurePosixPath("protos/glyphline/recognition/v1/recognition.proto")
_AS_THEY_ARE = {".gif", ".jpeg", ".jpg", ".json", ".png", ".svg"}
_LANGUAGES = {".py": "python", ".proto": "protobuf", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".sh": "bash"}
_LEFT_OUT = {"__pycache__", "node_modules"}
_LINK = re.compile(r"\]\((?P<path>[^)#\s]+)(?P<rest>[^)]*)\)")
_NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"


@dataclass(frozen=True)
class Page:
    """A page.

    Attributes:
        source: Where its links start from, in the repository.
        target: Where it is on the site.
        text: Markdown, with links as they are in the repository.
    """

    source: PurePosixPath
    target: PurePosixPath
    text: str


def rewrite_links(text: str, change: Callable[[str], str]) -> str:
    """Changes where the links of a page lead to.

    Args:
        text: Markdown.
        change: Is given the path of each link, without its anchor; not of addresses, nor of anchors alone.
    """

    def replace(match: re.Match[str]) -> str:
        path = match["path"]
        external = "://" in path or path.startswith(("/", "mailto:"))
        return match.group() if external else f"]({change(path)}{match['rest']})"

    return outside_code(text, lambda part: _LINK.sub(replace, part))


class Pages:
    """Pages that are placed, and what their links bring along."""

    def __init__(self, root: Path, output: Path) -> None:
        """Begins with nothing.

        Args:
            root: The repository.
            output: Folder that the pages are written to.
        """
        self._root = root
        self._output = output
        self._places: dict[PurePosixPath, PurePosixPath] = {}
        self._waiting: list[Page] = []

    def add(self, page: Page) -> None:
        """Adds a page; links to its source lead to it from then on."""
        self._places[page.source] = page.target
        self._waiting.append(page)

    def write(self) -> None:
        """Writes all pages, and what they link to."""
        while self._waiting:
            page = self._waiting.pop()
            self._write(page.target, show_formulas(rewrite_links(page.text, partial(self._lead, page))))

    def _lead(self, page: Page, path: str) -> str:
        """Where a link of a page leads to on the site. One to nothing is left, for the build to complain of."""
        there = PurePosixPath(os.path.normpath(page.source.parent / path))
        if not (self._root / there).exists() or ".." in there.parts:
            return path
        place = self._places.get(there) or self._bring(there)
        return PurePosixPath(os.path.relpath(place, page.target.parent)).as_posix()

    def _bring(self, source: PurePosixPath) -> PurePosixPath:
        """Places what a link leads to."""
        path = self._root / source
        if source.suffix in _AS_THEY_ARE or (path.is_file() and b"\0" in path.read_bytes()):
            inside = source.is_relative_to("docs")
            place = source.relative_to("docs") if inside else ELSEWHERE / source
            self._places[source] = place
            (self._output / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, self._output / place)
            return place
        if path.is_dir() and (path / "README.md").is_file():
            self._places[source] = self._places.get(source / "README.md") or self._bring(source / "README.md")
            return self._places[source]
        if path.is_dir():
            page = Page(source, ELSEWHERE / source / "index.md", _folder_page(path, source))
        elif source.suffix == ".md":
            page = Page(source, ELSEWHERE / source, path.read_text(encoding="utf-8"))
        else:
            page = Page(source, ELSEWHERE / f"{source}.md", _source_page(path, source))
        self.add(page)
        return page.target

    def _write(self, target: PurePosixPath, text: str) -> None:
        path = self._output / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _folder_page(path: Path, source: PurePosixPath) -> str:
    shown = [each for each in sorted(path.iterdir()) if each.name not in _LEFT_OUT and not each.name.startswith(".")]
    links = "".join(f"- [`{each.name}{'/' * each.is_dir()}`]({source.name}/{each.name})\n" for each in shown)
    return f"{_NOT_SEARCHED}# {escape(source.as_posix())}\n\n{links}"


def _source_page(path: Path, source: PurePosixPath) -> str:
    text = path.read_text(encoding="utf-8").rstrip()
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    language = _LANGUAGES.get(source.suffix, "text")
    return f"{_NOT_SEARCHED}# {escape(source.name)}\n\n`{source}`\n\n{fence}{language}\n{text}\n{fence}\n"


def gather(root: Path, output: Path) -> None:
    """Writes all pages of the site.

    Args:
        root: The repository.
        output: Folder for the pages. One that this function has made before is made anew.

    Raises:
        FileExistsError: If it is any other folder with something in it.
    """
    if (output / _MADE).is_file():
        shutil.rmtree(output)
    if output.exists() and any(output.iterdir()):
        raise FileExistsError(f"{output} holds what was not made here; name another folder, or remove it")
    output.mkdir(parents=True, exist_ok=True)
    (output / _MADE).touch()
    shutil.copytree(root / "docs" / "assets", output / "assets")
    pages = Pages(root, output)
    for path in sorted((root / "docs").glob("*.md")):
        pages.add(Page(PurePosixPath("docs", path.name), PurePosixPath(path.name), path.read_text(encoding="utf-8")))
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        text = (root / name).read_text(encoding="utf-8")
        pages.add(Page(PurePosixPath(name), PurePosixPath(name.lower()), text))
    for page in (_api(root), _commands(), *_models(root)):
        pages.add(page)
    pages.write()


def _api(root: Path) -> Page:
    text = render_api(describe(root / _PROTO, root / "protos"), "gRPC API")
    return Page(PurePosixPath("docs/generated/api"), PurePosixPath("api.md"), text)


def _commands() -> Page:
    text = render_commands(get_command(app), "Command line")
    return Page(PurePosixPath("docs/generated/commands"), PurePosixPath("commands.md"), text)


def _models(root: Path) -> list[Page]:
    """The card of every shipped model, and a page that compares them."""
    cards = [PurePosixPath(path.relative_to(root)) for path in sorted((root / _PRETRAINED).glob("*/*/model_card.md"))]
    pages = [_card(root, source) for source in cards]
    rows = []
    for source in cards:
        manifest = json.loads((root / source.parent / "manifest.json").read_text(encoding="utf-8"))
        size = sum(path.stat().st_size for path in (root / source.parent).iterdir())
        name = f"[`{manifest['name']}` {manifest['version']}]({source.relative_to(_PRETRAINED)})"
        symbols = str(len(manifest["alphabet"]))
        rows.append((name, escape(manifest["task"]), manifest["head"], symbols, f"{size / 1e6:.1f} MB"))
    listing = table(("model", "reads", "head", "symbols", "size"), rows)
    pages.append(Page(_PRETRAINED / "index", PurePosixPath("models/index.md"), _MODELS.format(table=listing)))
    return pages


_MODELS = """# Models

What reads your strips. These models come with Glyphline; `glyphline models` lists them, and `--model NAME` chooses one.
A card says what its model was made for and of what, how well it reads, and what it gets wrong. Its figures are in the
manifest, too, to which the end of each card links: that is the raw data.

{table}
For strips unlike these, [train a model of your own](../../../../docs/training.md).
"""


def _card(root: Path, source: PurePosixPath) -> Page:
    text = (root / source).read_text(encoding="utf-8").rstrip()
    name = source.parts[-3]
    raw = "## Raw data\n\n[`manifest.json`](manifest.json) has all figures of this card, and the hash of every file."
    return Page(source, PurePosixPath("models", f"{name}.md"), f"{text}\n\n{raw}\n")
