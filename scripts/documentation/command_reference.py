"""The reference of the command line: Markdown from what `--help` says."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent
from typing import Any

from markdown_text import escape, paragraphs, table

__all__ = ["prose", "render"]

_KEEP = "\b"  # begins a paragraph whose lines are kept as they are
_WIDE = 1000


def render(application: Any, title: str) -> str:  # noqa: ANN401  (typer's own copy of click has no types)
    """Writes the reference of a command with subcommands.

    Args:
        application: The click group that typer makes.
        title: Heading of the page.

    Returns:
        Markdown: every command with its usage, its options and its examples.
    """
    context = _context(application, application.name, None)
    parts = [f"# {title}\n", prose(application.help or ""), _commands_table(application, context)]
    for command, inner in _commands(application, context):
        parts += _command(command, inner)
    parts += ["## Exit codes\n", prose(application.epilog or "")]
    return "\n".join(part for part in parts if part)


def _context(command: Any, name: str, parent: Any) -> Any:  # noqa: ANN401
    return command.context_class(command, info_name=name, parent=parent, terminal_width=_WIDE, max_content_width=_WIDE)


def _commands(group: Any, context: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401
    """Every command that does something, in the order of the help, with its context."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inner = _context(command, name, context)
        if hasattr(command, "commands"):
            yield from _commands(command, inner)
        else:
            yield command, inner


def _commands_table(group: Any, context: Any) -> str:  # noqa: ANN401
    rows = [
        (f"[`{inner.command_path}`](#{_anchor(inner)})", escape(command.get_short_help_str(_WIDE)))
        for command, inner in _commands(group, context)
    ]
    return table(("command", "what it does"), rows)


def _anchor(context: Any) -> str:  # noqa: ANN401
    return str(context.command_path).replace(" ", "-")


def _command(command: Any, context: Any) -> list[str]:  # noqa: ANN401
    path = context.command_path
    usage = command.get_usage(context).removeprefix("Usage: ")
    parts = [f"## {path} {{ #{_anchor(context)} }}\n", f"```text\n{usage}\n```\n", prose(command.help or "")]
    for heading, rows in command.sections(context):
        parts.append(table((heading, ""), [(f"`{name}`", escape(said)) for name, said in rows]))
    return [*parts, prose(command.epilog or "")]


def prose(text: str) -> str:
    """Turns a help text into Markdown: what is indented in it becomes code, all else paragraphs."""
    return "\n".join(_paragraph(part) for part in paragraphs(text))


def _paragraph(text: str) -> str:
    lines = [line for line in text.splitlines() if line != _KEEP]
    first = next((number for number, line in enumerate(lines) if line.startswith("  ")), len(lines))
    said, shown = lines[:first], lines[first:]
    parts = [f"{escape(chr(10).join(said))}\n"] if said else []
    if shown:
        code = "\n".join(shown)
        parts.append(f"```text\n{dedent(code)}\n```\n")
    return "\n".join(parts)
