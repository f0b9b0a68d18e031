"""What the exit code of `glyphline` says: one table for all commands."""

from __future__ import annotations

import errno
from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes."""

    OK = 0
    FAULT = 1
    FINDINGS = 1
    USAGE = 2
    IMAGES = 3
    MODEL = 4
    SERVER = 5
    SYSTEM = 6
    INTERRUPTED = 130
    PIPE_CLOSED = 141
    TERMINATED = 143


MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FAULT: "a fault in Glyphline itself, shown with a traceback; from `data validate`: errors in the data",
    ExitCode.USAGE: "an option, path, data set or configuration is wrong, or a package is missing",
    ExitCode.IMAGES: "some images could not be read; all others were",
    ExitCode.MODEL: "the model is missing or damaged, or its device is not there",
    ExitCode.SERVER: "the server or the cluster cannot start, cannot be reached, or is too busy",
    ExitCode.SYSTEM: "a file could not be read or written (permissions, full disk)",
    ExitCode.INTERRUPTED: "stopped by Ctrl-C",
    ExitCode.PIPE_CLOSED: "the reader of the output has gone, as `head` does when it has enough",
    ExitCode.TERMINATED: "stopped by SIGTERM",
}

# By name, so that finding the code of an error imports nothing. A subclass has the code of its nearest base.
_ERRORS = {
    "AlphabetError": ExitCode.USAGE,
    "BundleError": ExitCode.MODEL,
    "ClusterError": ExitCode.SERVER,
    "DeviceError": ExitCode.MODEL,
    "DeviceRefusedError": ExitCode.MODEL,
    "ExportError": ExitCode.MODEL,
    "GlyphlineError": ExitCode.USAGE,
    "ImageError": ExitCode.IMAGES,
    "InvalidRequestError": ExitCode.USAGE,
    "JobError": ExitCode.SYSTEM,
    "ModelNotFoundError": ExitCode.MODEL,
    "ModelRefusedError": ExitCode.MODEL,
    "NotFoundError": ExitCode.MODEL,
    "OSError": ExitCode.SYSTEM,
    "OptionsError": ExitCode.USAGE,
    "RecognitionError": ExitCode.SERVER,
    "ServiceError": ExitCode.SERVER,
    "SettingError": ExitCode.USAGE,
}


class CommandError(Exception):
    """A command cannot do what it was asked to; the message names the thing and what to do.

    Attributes:
        code: Exit code.
    """

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.code = code


def exit_code_of(error: BaseException) -> ExitCode | None:
    """Returns the exit code for an error a user can do something about, or None for a fault in the program."""
    if isinstance(error, CommandError):
        return error.code
    if isinstance(error, OSError) and error.errno == errno.EPIPE:
        return ExitCode.PIPE_CLOSED
    names = [kind.__name__ for kind in type(error).__mro__]
    return next((_ERRORS[name] for name in names if name in _ERRORS), None)


def table() -> str:
    """Formats the codes for `--help`."""
    return "\n".join(f"{code.value:>5}  {meaning}" for code, meaning in MEANINGS.items())
