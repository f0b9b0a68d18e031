"""Commands whose `--help` names arguments plainly, and shows many options in groups."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

__all__ = ["PlainCommand", "grouped"]


class PlainCommand(TyperCommand):
    """A command that shows an argument by its name alone: without `<list[str]>` behind it, and braces around it."""

    def collect_usage_pieces(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Returns the parts of the usage line: `[OPTIONS] BUNDLE [DATASET...]`."""
        arguments = (each for each in self.get_params(ctx) if each.param_type_name == "argument")
        return [self.options_metavar or "", *map(_usage, arguments)]

    def format_options(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]  # noqa: ANN401
        """Writes the arguments, then the options."""
        self.write_groups({}, "Options", ctx, formatter)

    def write_groups(self, groups: dict[str, tuple[str, ...]], others: str, ctx: typer.Context, formatter: Any) -> None:  # noqa: ANN401
        """Writes arguments and options by group.

        Args:
            groups: Names of parameters by heading. Of what is in none, arguments come first and options last.
            others: Heading of these options.
            ctx: Of the call.
            formatter: What writes.
        """
        parameters = {str(each.name): each for each in self.get_params(ctx)}
        left = [name for name in parameters if all(name not in names for names in groups.values())]
        arguments = tuple(name for name in left if parameters[name].param_type_name == "argument")
        options = tuple(name for name in left if name not in arguments)
        for heading, names in {"Arguments": arguments, **groups, others: options}.items():
            records = (_record(parameters[name], ctx) for name in names)
            if rows := [record for record in records if record is not None]:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def _name(argument: Any) -> str:  # noqa: ANN401  (click's, or Typer's copy)
    return str(argument.metavar or argument.name.upper())


def _usage(argument: Any) -> str:  # noqa: ANN401  (as above)
    name = _name(argument) + ("..." if argument.nargs != 1 else "")
    return name if argument.required else f"[{name}]"


def _record(parameter: Any, ctx: typer.Context) -> tuple[str, str] | None:  # noqa: ANN401  (as above)
    """Returns what the help says of a parameter; None of one that is hidden."""
    record = parameter.get_help_record(ctx)
    if record is None or parameter.param_type_name != "argument":
        return record  # type: ignore[no-any-return]
    return _name(parameter), record[1]


def grouped(groups: dict[str, tuple[str, ...]]) -> type[TyperCommand]:
    """Makes the class of a command.

    Args:
        groups: Names of the command's parameters by heading, in the order of the help.
    """

    class Grouped(PlainCommand):
        """The command."""

        option_groups = groups

        def format_options(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]  # noqa: ANN401
            """Writes the options by group."""
            self.write_groups(groups, "Other options", ctx, formatter)

    return Grouped
