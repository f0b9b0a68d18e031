"""`glyphline playground`: a page to try models by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glyphline.cli.access import (
    ServerAccess,
    TlsCaOption,
    TlsCertificateOption,
    TlsKeyOption,
    TlsNameOption,
    TlsOption,
    TokenFileOption,
)
from glyphline.cli.asking import refuse_given
from glyphline.cli.exit_codes import CommandError, ExitCode
from glyphline.cli.group import tell
from glyphline.cli.options import AskedModelOption, RepositoryOption

if TYPE_CHECKING:
    from glyphline.models.bundle import Bundle
    from glyphline.service.playground import Model, Reader

EXAMPLES = """\b
Examples:
  glyphline playground                                    then open http://127.0.0.1:7860
  glyphline playground --open                             opens it in the browser
  glyphline playground --model models/strips/1            a model of one's own, beside those that come with Glyphline
  glyphline playground --server localhost:50051           a server reads

\b
Draw digits, drop or paste a picture, or choose an example; choose model and decoder. The page shows the reading, the
alternatives, how sure the model is of each character, and where it found it. It needs
`pip install 'glyphline[playground]'`.

\b
The page asks nobody but this command for anything: it works without a network, and nothing is told to anybody.
Whoever reaches --host and --port can use it, so others should be let in only where that is meant. Ctrl-C ends it.
"""

GROUPS = {
    "Models": ("model", "repository"),
    "Server": ("server", "tls", "tls_ca", "tls_name", "tls_certificate", "tls_key", "token_file"),
    "Page": ("host", "port", "open_browser"),
}
_COMMAND = "playground"
_TIMEOUT_SECONDS = 30.0


def playground(
    context: typer.Context,
    *,
    model: AskedModelOption = None,
    repository: RepositoryOption = None,
    server: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Have this server read instead of reading here.", show_default=False),
    ] = None,
    tls: TlsOption = False,
    tls_ca: TlsCaOption = None,
    tls_name: TlsNameOption = None,
    tls_certificate: TlsCertificateOption = None,
    tls_key: TlsKeyOption = None,
    token_file: TokenFileOption = None,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65_535, help="Port of the page; 0 takes any free one.")
    ] = 7860,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Shows a page on which models can be tried by hand: draw, drop or paste a picture, and see how it is read."""
    refuse_given(context, asking=server is not None)
    if find_spec("gradio") is None:
        raise CommandError("the page needs gradio: pip install 'glyphline[playground]'")
    from glyphline.service.addresses import bracketed, check_address

    check_address(host, port)  # first, for the page takes seconds to load
    access = ServerAccess(tls, tls_ca, tls_certificate, tls_key, token_file, tls_name)
    with _local(model, repository) if server is None else _asking(server, access, model) as (reader, chosen):
        from glyphline.service.playground.page import build_page
        from glyphline.service.playground.web import serve_page

        page = build_page(reader, chosen)

        def ready(port: int) -> None:
            address = f"http://{bracketed(host)}:{port}"
            print(f"the playground is at {address}; Ctrl-C ends it", flush=True)
            if open_browser:
                import webbrowser

                webbrowser.open(address)

        serve_page(page, host, port, ready)


@contextmanager
def _local(model: str | None, repository: Path | None) -> Iterator[tuple[Reader, Model]]:
    """Reads here, by the model that is named and all others of the repository."""
    from glyphline.cli.models import all_bundles
    from glyphline.cli.selection import find_bundle
    from glyphline.service.playground import LocalReader

    first = find_bundle(model, None, repository)
    others, damaged = all_bundles(repository)
    for each in damaged:
        tell(f"{each.name} {each.version} is left out, as it is damaged: {each.error}", _COMMAND)
    known = {_identity(bundle): bundle for bundle in (*others, first)}  # what is named takes the place of its like
    del known[_identity(first)]
    reader = LocalReader([first, *known.values()])
    yield reader, reader.models()[0]


def _identity(bundle: Bundle) -> tuple[str, int]:
    return bundle.manifest.name, bundle.manifest.version


@contextmanager
def _asking(target: str, access: ServerAccess, model: str | None) -> Iterator[tuple[Reader, Model]]:
    """Has a server read."""
    from glyphline.service.playground import ServerReader

    with access.client(target, _TIMEOUT_SECONDS) as client:
        reader = ServerReader(client, target)
        with access.connecting(target):
            models = reader.models()
        chosen = next((each for each in models if model in (None, each.name)), None)
        if chosen is None:
            known = ", ".join(dict.fromkeys(each.name for each in models))
            raise CommandError(f"--model {model}: the server has no such model; it has {known}", ExitCode.MODEL)
        yield reader, chosen
