"""Serves the page, to this machine unless told otherwise, and lets the browser ask nobody else for anything."""

from __future__ import annotations

import socket
from collections.abc import Callable
from types import FrameType

import gradio
import uvicorn
from fastapi import FastAPI, Request, Response
from starlette.middleware.base import RequestResponseEndpoint

from glyphline.service.playground.page import resource

__all__ = ["serve_page"]

# The page's library makes functions of its templates and styles in place, hence what stands between quotes.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'none'"
)
_CLOSING_SECONDS = 1


def serve_page(page: gradio.Blocks, host: str, port: int, ready: Callable[[int], None]) -> None:
    """Serves the page until Ctrl-C or SIGTERM.

    Args:
        page: The page.
        host: Address to listen on.
        port: Port; 0 for any that is free.
        ready: Is told the port when the page can be opened.
    """
    server = _Server(
        uvicorn.Config(_application(page), host, port, log_level="warning", timeout_graceful_shutdown=_CLOSING_SECONDS),
        ready,
    )
    server.run()


class _Server(uvicorn.Server):
    """Says when it listens, and ends in order at the first signal."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[int], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to listen."""
        await super().startup(sockets)
        if self.started:
            self._ready(self.servers[0].sockets[0].getsockname()[1])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Ends; that is what Ctrl-C is for here, so it is not raised again afterwards."""
        super().handle_exit(sig, frame)
        self._captured_signals.clear()


def _application(page: gradio.Blocks) -> FastAPI:
    application = FastAPI(openapi_url=None)

    @application.middleware("http")
    async def restrict(request: Request, proceed: RequestResponseEndpoint) -> Response:
        response = await proceed(request)
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["Referrer-Policy"] = "no-referrer"
        return response

    return gradio.mount_gradio_app(
        application,
        page,
        "/",
        css=resource("page.css"),
        theme=gradio.themes.Default(primary_hue="blue"),
        footer_links=[],
        ssr_mode=False,
    )
