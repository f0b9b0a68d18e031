"""All that protects a server, as its settings ask for it."""

from __future__ import annotations

import asyncio
from functools import partial

import grpc
from prometheus_client import Counter, Gauge

from glyphline.models.errors import GlyphlineError
from glyphline.service.errors import SettingError
from glyphline.service.grpc_metrics import MetricsInterceptor
from glyphline.service.metrics import Metrics
from glyphline.service.security.authentication import AuthenticationInterceptor
from glyphline.service.security.certificates import Certificates
from glyphline.service.security.limits import LimitsInterceptor
from glyphline.service.security.tokens import TokenFile
from glyphline.service.security.watching import Reloadable, follow
from glyphline.service.settings import ServerSettings

__all__ = ["Protection"]


class Protection:
    """The certificate, the tokens and the limits of a server, which follow their files while it runs.

    Args:
        settings: How the server serves.
        metrics: What is counted.

    Raises:
        SettingError: If a file cannot be used.
    """

    def __init__(self, settings: ServerSettings, metrics: Metrics) -> None:
        self._metrics = metrics
        self._expiry = Gauge(
            "glyphline_certificate_expiry_timestamp_seconds",
            "When the server's certificate expires; 0 without TLS.",
            registry=metrics.registry,
        )
        self._reloads = Counter(
            "glyphline_security_reloads_total",
            "Times that a changed certificate or file of tokens was read again.",
            ("file", "outcome"),
            registry=metrics.registry,
        )
        try:
            self._certificates = _certificates(settings)
            self._tokens = None if settings.tokens is None else TokenFile(settings.tokens)
        except GlyphlineError as error:
            raise SettingError(str(error)) from error
        followed = {"certificate": self._certificates, "tokens": self._tokens}
        self._followed: dict[str, Reloadable] = {what: files for what, files in followed.items() if files is not None}
        self._following: list[asyncio.Task[None]] = []
        for what in followed:
            for outcome in ("ok", "failed"):
                self._reloads.labels(what, outcome)
        self._tell_expiry()
        self.limits = LimitsInterceptor(metrics, idle_seconds=settings.max_idle_seconds)

    def door(self, calls: MetricsInterceptor) -> list[grpc.aio.ServerInterceptor]:
        """Returns what calls must pass before they are looked at; nothing if callers need no token.

        Args:
            calls: Where refused calls are counted.
        """
        return [] if self._tokens is None else [AuthenticationInterceptor(self._tokens.find, self._metrics, calls)]

    def bind(self, server: grpc.aio.Server, address: str) -> int:
        """Has a server listen on an address, over TLS if there is a certificate, and returns the port."""
        if self._certificates is None:
            return server.add_insecure_port(address)
        return server.add_secure_port(address, self._certificates.credentials())

    def follow(self) -> None:
        """Reads the files again when they change, from now on."""
        for what, files in self._followed.items():
            self._following.append(asyncio.create_task(follow(what, files, partial(self._on_result, what))))

    async def close(self) -> None:
        """Follows the files no longer."""
        for task in self._following:
            task.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)
        self._following.clear()

    def _on_result(self, what: str, good: bool) -> None:
        self._reloads.labels(what, "ok" if good else "failed").inc()
        self._tell_expiry()

    def _tell_expiry(self) -> None:
        if self._certificates is not None:
            self._expiry.set(self._certificates.not_after.timestamp())


def _certificates(settings: ServerSettings) -> Certificates | None:
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    return Certificates(settings.tls_certificate, settings.tls_key, settings.tls_client_ca)
