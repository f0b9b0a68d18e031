"""Commands whose `--help` names arguments plainly, and shows many options in groups."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

__all__ = ["PlainCommand", "grouped"]


class PlainCommand(TyperCommand):
    """A command that shows an argument by its name alone, without `<list[str]>` behind it."""

    def format_options(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]  # noqa: ANN401
        """Writes the arguments, then the options."""
        parameters = self.get_params(ctx)
        for heading, kind in (("Arguments", "argument"), ("Options", "option")):
            chosen = (each for each in parameters if each.param_type_name == kind)
            rows = [row for each in chosen if (row := _record(each, ctx)) is not None]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def _record(parameter: Any, ctx: typer.Context) -> tuple[str, str] | None:  # noqa: ANN401  (click's, or Typer's copy)
    """Returns what the help says of a parameter; None of one that is hidden."""
    record = parameter.get_help_record(ctx)
    if record is None or parameter.param_type_name != "argument":
        return record  # type: ignore[no-any-return]
    return record[0].partition(" <")[0], record[1]


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
                if (record := _record(parameter, ctx)) is not None
            }
            placed = {name for names in groups.values() for name in names}
            others = tuple(name for name in records if name not in placed)
            for heading, names in {**groups, "Other options": others}.items():
                rows = [records[name] for name in names if name in records]
                if rows:
                    with formatter.section(heading):
                        formatter.write_dl(rows)

    return Grouped
