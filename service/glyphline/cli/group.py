"""The group of commands: turns errors into one line on the standard error stream and an exit code."""

from __future__ import annotations

import os
import select
import shlex
import sys
from contextlib import suppress
from typing import Any

import typer
from typer.core import TyperGroup

from glyphline.cli.access import advised
from glyphline.cli.exit_codes import ExitCode, exit_code_of

_GIVEN = "glyphline.given"

_FALLBACK, _FALLBACK_OPTION = "allow falling back to the CPU", "--allow-cpu-fallback"  # as models say it, and we

# Options whose names are not those of the fields that they set.
_SHORTER = {"allowed_characters": "--allowed", "max_alternatives": "--alternatives"}


class CommandGroup(TyperGroup):
    """Runs a command; what a user can put right is told without a traceback."""

    def make_context(self, *args: Any, **kwargs: Any) -> typer.Context:  # noqa: ANN401  (whatever the library passes)
        """Parses the arguments, and keeps them; an option such as `--help` prints while it is parsed.

        Raises:
            typer.Exit: If nobody reads what is printed, or Ctrl-C comes.
        """
        given = tuple(kwargs["args"] if "args" in kwargs else args[1])  # the parser empties the list
        try:
            context = super().make_context(*args, **kwargs)
        except BrokenPipeError:
            _drop_output()
            raise typer.Exit(ExitCode.PIPE_CLOSED) from None
        except KeyboardInterrupt:
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        context.meta[_GIVEN] = given
        return context  # type: ignore[return-value]

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]  # typer.Context is what comes
        """Runs the command that `ctx` names.

        Raises:
            typer.Exit: With the code of an error that is the user's to put right.
        """
        try:
            try:
                return super().invoke(ctx)
            finally:
                _flush()
        except KeyboardInterrupt:
            with suppress(KeyboardInterrupt):  # it may come twice, as from `timeout`
                tell("stopped", ctx.invoked_subcommand)
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except Exception as error:
            code = exit_code_of(error)
            if isinstance(error, typer.BadParameter):
                error.message = error.message.removeprefix("Value error, ")
            if code is None:
                raise
            if code is ExitCode.PIPE_CLOSED and _is_unread():
                _drop_output()
            else:
                if code is ExitCode.PIPE_CLOSED:  # the pipe to another process, which is no concern of our reader
                    code = ExitCode.SYSTEM
                tell(_message(error, self._options_of(ctx)), ctx.invoked_subcommand)
            raise typer.Exit(code) from None

    def _options_of(self, ctx: typer.Context) -> set[str]:
        """Names the options of the command that `ctx` names, as they are typed."""
        command = self.commands.get(ctx.invoked_subcommand or "")
        return set() if command is None else {name for parameter in command.params for name in parameter.opts}


def command_as_given(context: typer.Context) -> str:
    """Returns the command line that runs, quoted for a shell.

    What a variable of the environment gave stands in it as an option, so that the line does the same without it.
    """
    words = list(context.meta.get(_GIVEN, ()))
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name) if parameter.name else None
        if source is not None and source.name == "ENVIRONMENT" and parameter.name:
            words[1:1] = [parameter.opts[0], str(context.params[parameter.name])]
    return shlex.join(["glyphline", *words])


def _flush() -> None:
    """Writes what is still held back: here its failure has a code, at the interpreter's end it would be a traceback."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


def _is_unread() -> bool:
    """Tells whether the reader of the standard output has gone."""
    try:
        output = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):  # there is none, or it is no file
        return False
    if not hasattr(select, "poll"):  # Windows
        return True
    poll = select.poll()
    poll.register(output, select.POLLOUT)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def _drop_output() -> None:
    """Lets the interpreter's last flush go nowhere: nobody reads the standard output any more."""
    with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def tell(message: str, command: str | None = None) -> None:
    """Prints one line for people on the standard error stream."""
    name = "glyphline" if command is None else f"glyphline {command}"
    print(f"{name}: {message}".encode("utf-8", "backslashreplace").decode(), file=sys.stderr, flush=True)


def _message(error: Exception, options: set[str]) -> str:
    """Says what is wrong, and what to do about it by the options that the command has."""
    message = _plain_message(error, options)
    if "--tls" in options:
        message = advised(getattr(error, "reason", ""), message)
    if _FALLBACK_OPTION in options:
        return message.replace(_FALLBACK, f"pass {_FALLBACK_OPTION}")
    return message.replace(f", or {_FALLBACK}", "")


def _plain_message(error: Exception, options: set[str]) -> str:
    field, message = getattr(error, "field", None), getattr(error, "message", None)
    if isinstance(field, str) and isinstance(message, str):  # about an option, by its name in Python
        option = _SHORTER.get(field, f"--{field.replace('_', '-')}")
        return f"{option}: {message}" if option in options else str(error)
    if isinstance(error, OSError):
        parts = (error.filename, error.strerror or str(error))
        return ": ".join(str(part) for part in parts if part)
    return str(error)
