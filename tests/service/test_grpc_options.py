"""What gRPC is told follows from the settings."""

from glyphline.service.grpc_options import grpc_options
from glyphline.service.settings import ServerSettings


def test_complaint_22_pings_every_ten_seconds_are_allowed_as_they_arrive() -> None:
    """A ping that is held up on its way makes the next one seem early, which must not count against the client."""
    options = dict(grpc_options(ServerSettings()))
    assert options["grpc.http2.min_ping_interval_without_data_ms"] <= 9_000
    assert options["grpc.keepalive_permit_without_calls"] == 1
