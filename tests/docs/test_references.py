"""The generated pages: from a descriptor, from the command line, from the text of pages."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path, PurePosixPath
from typing import Annotated

import pytest
import typer
from typer.main import get_command

pytest.importorskip("latex2mathml", reason="needs the extra `docs`")

from command_reference import render as render_commands
from formulas import show_formulas
from markdown_text import cell, escape, outside_code
from pages import Page, Pages, gather, rewrite_links
from proto_reference import describe
from proto_reference import render as render_api

from glyphline.cli import app
from glyphline.cli.grouped_help import PlainCommand
from glyphline.service.settings import ServerSettings
from glyphline.service.status import _TABLE

ROOT = Path(__file__).parents[2]

PROTO = """syntax = "proto3";

// What it is for.
//
// Rules:
//   * One, which
//     goes on.
//   * Two.
package some.v1;

import "google/rpc/status.proto";

// Reads <things>.
service Reader {
  // Reads one.
  rpc Read(Question) returns (Answer);
  // Reads many.
  rpc ReadAll(stream Question) returns (stream Answer);
}

// Asked.
message Question {
  // Names: a | b.
  repeated string names = 1;
  // Perhaps.
  optional float share = 3;
  // Which it is.
  oneof choice {
    // The first.
    Kind kind = 4;
    // The second.
    google.rpc.Status status = 5;
  }
  // Inside.
  message Part {}
  // A part.
  Part part = 6;
}

// Told.
message Answer {}

// Kinds.
enum Kind {
  // Nothing said.
  KIND_UNSPECIFIED = 0;
}
"""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("protos")
    (folder / "some.proto").write_text(PROTO)
    return render_api(describe(folder / "some.proto", folder), "API")


@pytest.mark.parametrize(
    "part",
    [
        "# API\n\nPackage `some.v1`.\n\nWhat it is for.\n\nRules:\n\n- One, which\n  goes on.\n- Two.\n",
        "## Reader\n\nReads \\<things\\>.\n",
        "### Read { #reader-read }\n\n`/some.v1.Reader/Read`: [Question](#question) → [Answer](#answer)\n\nReads one.",
        "`/some.v1.Reader/ReadAll`: a stream of [Question](#question) → a stream of [Answer](#answer)\n",
        "| `names` | repeated string | Names: a \\| b. | 1 |\n",
        "| `share` | optional float | Perhaps. | 3 |\n",
        "| `kind` | [Kind](#kind), one of `choice` | The first. | 4 |\n",
        "| `status` | `google.rpc.Status`, one of `choice` | The second. | 5 |\n",
        "| `part` | [Question.Part](#question-part) | A part. | 6 |\n",
        "`choice`: Which it is.\n",
        "### Question.Part { #question-part }\n\nInside.\n",
        "### Kind { #kind }\n\nKinds.\n",
        "| `KIND_UNSPECIFIED` | Nothing said. | 0 |\n",
    ],
)
def test_an_api_is_told_by_its_descriptor(api: str, part: str) -> None:
    assert part in api


def test_a_proto_that_does_not_compile_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bad.proto").write_text("message {")
    with pytest.raises(ValueError, match=r"bad\.proto does not compile"):
        describe(tmp_path / "bad.proto", tmp_path)


def test_everything_of_our_api_has_a_comment() -> None:
    proto = ROOT / "protos" / "glyphline" / "recognition" / "v1" / "recognition.proto"
    page = render_api(describe(proto, ROOT / "protos"), "gRPC API")
    assert re.findall(r"^\|.*\|  \| \d+ \|$", page, re.MULTILINE) == []
    headings = re.findall(r"^### (.+) \{ #(\S+) \}\n\n(.)", page, re.MULTILINE)
    assert len(headings) > 30
    assert [name for name, _, first in headings if first in "|#"] == []
    anchors = [anchor for _, anchor, _ in headings]
    assert len(set(anchors)) == len(anchors)


def test_a_command_line_is_told_by_its_help() -> None:
    tool = typer.Typer(
        name="tool", help="What it does.\n\n\b\n  tool go    at once\n", epilog="\b\nCodes:\n  0  done\n"
    )

    @tool.command(
        "go",
        cls=PlainCommand,
        short_help="Go.",
        epilog="\b\nExamples:\n  tool go --fast <place>\n\n\b\nMore is *not*\nsaid.\n",
    )
    def go(place: str, fast: Annotated[bool, typer.Option("--fast", help="Or [slow].")] = False) -> None:
        """Goes to `a <place>`."""

    inner = typer.Typer()
    tool.add_typer(inner, name="data")
    inner.command("show", cls=PlainCommand)(lambda: None)
    inner.command("hide", cls=PlainCommand)(lambda: None)

    page = render_commands(get_command(tool), "Commands")
    assert page.startswith("# Commands\n\nWhat it does.\n\n```text\ntool go    at once\n```\n\n| command |")
    assert "| [`tool go`](#tool-go) | Go. |\n" in page
    assert "## tool go { #tool-go }\n\n```text\ntool go [OPTIONS] PLACE\n```\n\nGoes to `a <place>`.\n" in page
    assert re.search(r"^\| Arguments \|.*\n.*\n\| `PLACE` \|", page, re.MULTILINE)
    assert re.search(r"^\| `--fast` \| Or \\\[slow\\\]\.", page, re.MULTILINE)
    assert "\nExamples:\n\n```text\ntool go --fast <place>\n```\n\nMore is \\*not\\*\nsaid.\n" in page
    assert "## tool data show { #tool-data-show }\n" in page
    assert page.endswith("## Exit codes\n\nCodes:\n\n```text\n0  done\n```\n")


def test_the_examples_of_the_help_name_options_that_there_are() -> None:
    group = get_command(app)
    examples = re.findall(
        r"^(?:.*\| |[A-Z_]+=\S+ )?glyphline ([a-z][^;\n]*)$", render_commands(group, "Commands"), re.MULTILINE
    )
    assert len(examples) > 80
    for example in examples:
        name, *words = shlex.split(re.split(r"\s{3,}", example)[0])
        command = group.commands[name]  # type: ignore[attr-defined]  # typer's own copy of click has no types
        if hasattr(command, "commands"):
            command, words = command.commands[words[0]], words[1:]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("-") and word != "-"} <= known, example


def test_code_stays_as_it_is() -> None:
    text = "a `b` ``c ` d`` e\n```x\nf ` g\n```\nh"
    assert outside_code(text, str.upper) == "A `b` ``c ` d`` E\n```x\nf ` g\n```\nH"
    assert escape("a*b `c*d`") == "a\\*b `c*d`"
    assert cell("a |\nb `c|d`") == "a \\| b `c|d`"


def test_links_are_changed_and_addresses_left() -> None:
    text = "[`a`](b.md#c) ![d](e.png) [f](https://g/h) [i](#j) `[k](l)`"
    assert rewrite_links(text, str.upper) == "[`a`](B.MD#c) ![d](E.PNG) [f](https://g/h) [i](#j) `[k](l)`"


def test_formulas_become_mathml_and_prices_do_not() -> None:
    page = show_formulas("From $x_1 * 2$ on.\n\n$$y$$\n\n```console\n$ ls $HOME\n```\n\n$5 and $6, `$z$`.")
    assert '<span class="formula"><math' in page
    assert '<div class="formula"><math' in page
    assert "*" not in page.partition("</math>")[0]
    assert "```console\n$ ls $HOME\n```\n\n$5 and $6, `$z$`." in page


def test_what_is_linked_to_comes_along(tmp_path: Path) -> None:
    root, output = tmp_path / "repository", tmp_path / "pages"
    for name, text in {
        "docs/a.md": "[b](b.md#x) [c](../lib/c.py) [d](../lib) [e](e.png) [f](nowhere.md) [g](../g.md) [h](../../h)",
        "docs/b.md": "[a](a.md)",
        "docs/e.png": "picture",
        "lib/c.py": "print('```')",
        "g.md": "[c](lib/c.py) [raw](lib/r.json)",
        "lib/r.json": "{}",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (tmp_path / "h").touch()
    pages = Pages(root, output)
    for name in ("a.md", "b.md"):
        pages.add(Page(PurePosixPath("docs", name), PurePosixPath("in", name), (root / "docs" / name).read_text()))
    pages.write()
    links = re.findall(r"\]\((.+?)\)", (output / "in" / "a.md").read_text())
    assert links == [
        "b.md#x",
        "../repository/lib/c.py.md",
        "../repository/lib/index.md",
        "../e.png",
        "nowhere.md",
        "../repository/g.md",
        "../../h",
    ]
    source = (output / "repository" / "lib" / "c.py.md").read_text()
    assert "# c.py\n\n`lib/c.py`\n\n````python\nprint('```')\n````\n" in source
    assert "[`c.py`](c.py.md)" in (output / "repository" / "lib" / "index.md").read_text()
    assert (output / "repository" / "lib" / "r.json").read_text() == "{}"


def test_only_folders_of_its_own_making_are_made_anew(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs" / "assets", docs / "assets")
    with pytest.raises(FileExistsError, match="was not made here"):
        gather(ROOT, docs)
    assert (docs / "assets" / "site.css").exists()
    for _ in range(2):
        gather(ROOT, tmp_path / "pages")
    assert (tmp_path / "pages" / "index.md").exists()


def test_the_page_of_limits_has_every_status() -> None:
    page = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| .+ \| `([A-Z_]+)` \| `([A-Z_]+)` \|", page, re.MULTILINE)
    assert sorted(listed) == sorted((row.code.name, row.reason) for row in _TABLE.values())


def test_the_page_of_limits_has_the_settings_as_they_are() -> None:
    page = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    units = {"": 1, " MiB": 2**20, " million": 1e6}
    found: dict[str, float] = {}
    for names, values in re.findall(r"^\| (`--.+?`) \| (.+?) \|", page, re.MULTILINE):
        options = re.findall(r"--([\w-]+)", names)
        numbers = re.findall(r"(\d+(?:,\d{3})*)( MiB| million|)", values)
        found |= dict(
            zip(options, [int(digits.replace(",", "")) * units[unit] for digits, unit in numbers], strict=False)
        )
    assert len(found) > 10
    fields = ServerSettings.model_fields
    assert found == {option: fields[option.replace("-", "_")].default for option in found}
