"""A command whose `--help` shows its many options in groups."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

__all__ = ["grouped"]


def grouped(groups: dict[str, tuple[str, ...]]) -> type[TyperCommand]:
    """Makes the class of a command.

    Args:
        groups: Names of the command's parameters by heading, in the order of the help. What is in none comes last.
    """

    class Grouped(TyperCommand):
        """The command."""

        option_groups = groups

        def format_options(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]  # noqa: ANN401
            """Writes the arguments, then the options by group."""
            records = {
                str(parameter.name): record
                for parameter in self.get_params(ctx)
                if (record := parameter.get_help_record(ctx)) is not None
            }
            placed = {name for names in groups.values() for name in names}
            others = tuple(name for name in records if name not in placed)
            for heading, names in {**groups, "Other options": others}.items():
                rows = [records[name] for name in names if name in records]
                if rows:
                    with formatter.section(heading):
                        formatter.write_dl(rows)

    return Grouped
