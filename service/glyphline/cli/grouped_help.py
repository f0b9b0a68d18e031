"""Commands whose `--help` names arguments plainly, and shows many options in groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand

__all__ = ["PlainCommand", "grouped"]


class PlainCommand(TyperCommand):
    """A command that shows an argument by its name alone: without `<list[str]>` behind it, and braces around it."""

    option_groups: ClassVar[dict[str, tuple[str, ...]]] = {}

    def collect_usage_pieces(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        """Returns the parts of the usage line: `[OPTIONS] BUNDLE [DATASET...]`."""
        arguments = (each for each in self.get_params(ctx) if each.param_type_name == "argument")
        return [self.options_metavar or "", *map(_usage, arguments)]

    def format_options(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]  # noqa: ANN401
        """Writes arguments and options."""
        for heading, rows in self.sections(ctx):
            with formatter.section(heading):
                formatter.write_dl(rows)

    def sections(self, ctx: typer.Context) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yields by heading what the help says of parameters; of those in no group arguments first, options last."""
        parameters = {str(each.name): each for each in self.get_params(ctx)}
        left = [name for name in parameters if all(name not in names for names in self.option_groups.values())]
        arguments = tuple(name for name in left if parameters[name].param_type_name == "argument")
        others = tuple(name for name in left if name not in arguments)
        rest = {"Other options" if self.option_groups else "Options": others}
        for heading, names in ({"Arguments": arguments} | self.option_groups | rest).items():
            records = (_record(parameters[name], ctx) for name in names)
            if rows := [record for record in records if record is not None]:
                yield heading, rows


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

    return Grouped
