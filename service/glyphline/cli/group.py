"""The group of commands: turns errors into one line on the standard error stream and an exit code."""

from __future__ import annotations

import sys

import typer
from typer.core import TyperGroup

from glyphline.cli.exit_codes import ExitCode, exit_code_of


class CommandGroup(TyperGroup):
    """Runs a command; what a user can put right is told without a traceback."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]  # typer.Context is what comes
        """Runs the command that `ctx` names.

        Raises:
            typer.Exit: With the code of an error that is the user's to put right.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            tell("stopped", ctx.invoked_subcommand)
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except Exception as error:
            code = exit_code_of(error)
            if code is None:
                raise
            tell(_message(error), ctx.invoked_subcommand)
            raise typer.Exit(code) from None


def tell(message: str, command: str | None = None) -> None:
    """Prints one line for people on the standard error stream."""
    name = "glyphline" if command is None else f"glyphline {command}"
    print(f"{name}: {message}".encode("utf-8", "backslashreplace").decode(), file=sys.stderr, flush=True)


def _message(error: Exception) -> str:
    if isinstance(error, OSError):
        parts = (error.filename, error.strerror or str(error))
        return ": ".join(str(part) for part in parts if part)
    return str(error)
