"""The command `glyphline`.

Hardly anything is imported here, so that a Ctrl-C that comes while the rest is loaded finds `main` at work.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from glyphline.cli.application import app

__all__ = ["app", "main"]


def main() -> None:
    """Loads the commands, runs the one that the command line names, and exits with its code."""
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # else gRPC tells of every try to connect, beside our own messages
    try:
        from glyphline.cli.application import main as run

        run()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it may come twice, as from `timeout`
        print("glyphline: stopped", file=sys.stderr, flush=True)
        if "glyphline.cli.stopping" in sys.modules:
            from glyphline.cli.exit_codes import ExitCode
            from glyphline.cli.stopping import leave_at_once

            leave_at_once(ExitCode.INTERRUPTED)
        os._exit(128 + signal.SIGINT)  # nothing has been begun


def __getattr__(name: str) -> object:
    if name == "app":
        from glyphline.cli.application import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
