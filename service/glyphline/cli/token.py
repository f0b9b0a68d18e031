"""`glyphline token`: makes a token for callers of a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from glyphline.cli.exit_codes import CommandError
from glyphline.cli.group import tell

EXAMPLES = """\b
Examples:
  glyphline token counter --file tokens.txt > counter.token
  glyphline token partner --file tokens.txt --read-only --images-per-second 50 > partner.token
  glyphline serve --tokens tokens.txt
  glyphline recognize cheque.png --server localhost:50051 --token-file counter.token

\b
Prints the token, once: the file has only its hash. Without --file the line for it goes to standard error. To replace a
token, make another of the same name, hand it out, and then take the old line out: a running server reads its file again
when it changes. To withdraw one, take its line out.
"""


def token(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who will have it; appears in logs.", show_default=False)],
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Add the line to this file.", show_default=False)
    ] = None,
    read_only: Annotated[
        bool,
        typer.Option("--read-only", help="It may read, and not hand in true texts, of which the error rate is made."),
    ] = False,
    images_per_second: Annotated[
        float | None, typer.Option(metavar="N", help="Most images a second.  [default: no limit]")
    ] = None,
    bytes_per_second: Annotated[
        float | None, typer.Option(metavar="N", help="Most bytes of images a second.  [default: no limit]")
    ] = None,
) -> None:
    """Makes a token for callers of a server, and the line that a server knows it by."""
    from glyphline.service.security.tokens import new_token, token_line

    made = new_token()
    try:
        line = token_line(
            name, made, read_only=read_only, images_per_second=images_per_second, bytes_per_second=bytes_per_second
        )
    except ValueError as error:
        raise CommandError(str(error)) from error
    if file is None:
        tell(f"add this line to the server's file of tokens: {line}", "token")
    else:
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        with file.open("a", encoding="utf-8") as output:
            output.write(line + "\n" if not before or before.endswith("\n") else f"\n{line}\n")
        tell(f"added {name} to {file}", "token")
    print(made)
