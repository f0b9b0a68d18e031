"""What gRPC is told about connections and messages."""

from __future__ import annotations

from glyphline.service.settings import ServerSettings

__all__ = ["grpc_options"]

_MAX_PENDING_CALLS = 10_000  # that have arrived and were not looked at
_PENDING_SECONDS = 3600  # for which they may wait, unless their own deadline is nearer
_PING_SHARE = 0.8  # of the shortest interval: a ping that is held up on its way makes the next one seem early
_HANDSHAKE_SECONDS = 20.0  # for TLS and the first words of HTTP/2


def grpc_options(settings: ServerSettings) -> list[tuple[str, int]]:
    """Returns the options of gRPC that the settings come to."""
    options = [
        ("grpc.so_reuseport", 0),  # else a second server would share the port without a word
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        ("grpc.max_send_message_length", settings.max_message_bytes),
        ("grpc.keepalive_time_ms", _milliseconds(settings.keepalive_seconds)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.max_connection_idle_ms", _milliseconds(settings.max_idle_seconds)),
        ("grpc.max_concurrent_streams", settings.max_connection_calls),
        # Else gRPC cancels, without a reason, what waits for the event loop for 30 s or behind a thousand calls.
        ("grpc.server.max_pending_requests", _MAX_PENDING_CALLS),
        ("grpc.server.max_pending_requests_hard_limit", _MAX_PENDING_CALLS),
        ("grpc.server_max_unrequested_time_in_server", _PENDING_SECONDS),
        ("grpc.server_handshake_timeout_ms", _milliseconds(min(_HANDSHAKE_SECONDS, settings.max_idle_seconds))),
        ("grpc.http2.min_ping_interval_without_data_ms", _milliseconds(_PING_SHARE * settings.min_ping_seconds)),
    ]
    if settings.max_connection_age_seconds is not None:
        options += [
            ("grpc.max_connection_age_ms", _milliseconds(settings.max_connection_age_seconds)),
            ("grpc.max_connection_age_grace_ms", _milliseconds(settings.max_connection_age_grace_seconds)),
        ]
    return options


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
