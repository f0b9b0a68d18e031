"""Serves the page, to this machine unless told otherwise, and lets the browser ask nobody else for anything."""

from __future__ import annotations

import signal
import socket
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import gradio
import uvicorn
from fastapi import FastAPI

from glyphline.service.playground.page import resource

__all__ = ["serve_page"]

# The page's library makes functions of its templates and styles in place, hence what stands between quotes.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'none'"
)
_HEADERS = [(b"content-security-policy", _POLICY.encode()), (b"referrer-policy", b"no-referrer")]
_CLOSING_SECONDS = 1

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_Application = Callable[[_Message, _Receive, _Send], Awaitable[None]]


def serve_page(page: gradio.Blocks, host: str, port: int, ready: Callable[[int], None]) -> None:
    """Serves the page until Ctrl-C or SIGTERM.

    Args:
        page: The page.
        host: Address to listen on.
        port: Port; 0 for any that is free.
        ready: Is told the port when the page can be opened.
    """
    config = uvicorn.Config(
        _restricted(_application(page)),
        host.strip("[]"),
        port,
        log_level="warning",
        timeout_graceful_shutdown=_CLOSING_SECONDS,
    )
    _Server(config, ready).run()


class _Server(uvicorn.Server):  # type: ignore[misc]  # it may not be installed where types are checked
    """Says when it listens; a signal ends it, and that is all a signal does."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[int], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to listen."""
        await super().startup(sockets)
        if self.started:
            self._ready(self.servers[0].sockets[0].getsockname()[1])

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ends at a signal. It is not raised again afterwards, for here it is how one leaves."""
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _application(page: gradio.Blocks) -> _Application:
    application: _Application = gradio.mount_gradio_app(
        FastAPI(openapi_url=None),
        page,
        "/",
        css=resource("page.css"),
        theme=gradio.themes.Default(primary_hue="blue"),
        footer_links=[],
        ssr_mode=False,
    )
    return application


def _restricted(application: _Application) -> _Application:
    """Adds to every answer what the browser may ask for: nothing of anybody else."""

    async def answer(scope: _Message, receive: _Receive, send: _Send) -> None:
        async def send_with_headers(message: _Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        await application(scope, receive, send_with_headers)

    return answer
