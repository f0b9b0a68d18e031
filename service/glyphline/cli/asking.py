"""Commands that can read here or ask a server: what is refused where it would silently do nothing."""

from __future__ import annotations

import typer

from glyphline.cli.exit_codes import CommandError

# Options that do nothing on the other way of reading, and why.
ONLY_HERE = {
    "device": "--device is for reading here: a server runs on the device it was started with",
    "allow_cpu_fallback": "--allow-cpu-fallback is for reading here: a server runs on the device it was started with",
    "provider": "--provider is for reading here: a server has the one it was started with",
    "precision": "--precision is for reading here: a server has the one it was started with",
    "repository": "--model-repository is for reading here: a server has the models it was started with",
    "workers": "--workers is for reading here: a server has those it was started with",
}
ONLY_ASKING = {
    "timeout": "--timeout is for --server: reading here takes as long as it takes",
    "tls": "--tls is for --server: reading here connects to nothing",
    "tls_ca": "--tls-ca is for --server: reading here connects to nothing",
    "tls_name": "--tls-name is for --server: reading here connects to nothing",
    "tls_certificate": "--tls-certificate is for --server: reading here connects to nothing",
    "tls_key": "--tls-key is for --server: reading here connects to nothing",
    "token_file": "--token-file is for --server: reading here needs no token",
}


def refuse_given(context: typer.Context, *, asking: bool) -> None:
    """Refuses options that would silently do nothing; a variable of the environment is no request.

    Args:
        context: The command's.
        asking: Whether a server is asked.

    Raises:
        CommandError: If there is such an option.
    """
    for name, reason in (ONLY_HERE if asking else ONLY_ASKING).items():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise CommandError(reason)


def version_number(version: str | None) -> int | None:
    """Reads the number of a version, which is all that a version can be here.

    Raises:
        CommandError: If it is none.
    """
    if version is None:
        return None
    if not (version.isascii() and version.isdigit()):
        raise CommandError(
            f"--model-version {version}: give a number; labels belong to a server's repository and need --server"
        )
    return int(version)
