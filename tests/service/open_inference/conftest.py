"""A server of the Open Inference Protocol that asks for tokens, and its calls as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf.message import Message

from glyphline.open_inference.v2 import open_inference_pb2_grpc as rpc
from glyphline.service.client import Client
from glyphline.service.security.tokens import new_token, token_line

if TYPE_CHECKING:
    from tests.service.conftest import ServerProcess


@dataclass(frozen=True)
class Served:
    """A server, what may be shown to it, and a connection."""

    server: ServerProcess
    tokens: dict[str, str]
    channel: grpc.Channel

    def call(self, method: str, request: Message, token: str = "all") -> Any:  # noqa: ANN401  # of any method
        """Calls a method of the protocol, and returns its answer."""
        stub = rpc.GRPCInferenceServiceStub(self.channel)
        return getattr(stub, method)(request, timeout=60, metadata=self.metadata(token))

    def metadata(self, token: str = "all") -> tuple[tuple[str, str], ...]:
        """What shows a token."""
        return (("authorization", f"Bearer {self.tokens[token]}"),) if token else ()

    def client(self) -> Client:
        """A client of Glyphline's own API."""
        return Client(self.server.target, timeout=60, token=self.tokens["all"])


@pytest.fixture(scope="module")
def served(
    start_process: Callable[..., ServerProcess], guide_files: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """A server with one worker and a lexicon. It must end in order."""
    tokens = {name: new_token() for name in ("all", "reader", "slow")}
    file = tmp_path_factory.mktemp("tokens") / "tokens.txt"
    lines = [
        token_line("all", tokens["all"]),
        token_line("reader", tokens["reader"], read_only=True),
        token_line("slow", tokens["slow"], images_per_second=0.01),
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    server = start_process(
        open_inference=True,
        models="digits,digits-ctc",
        tokens=file,
        max_request_images=40,
        lexicons=f"codes={guide_files / 'codes.txt'}",
    )
    try:
        server.wait_for_line("ready")
        with grpc.insecure_channel(server.target) as channel:
            yield Served(server, tokens, channel)
        assert server.stop() == 0, "".join(server.raw)
        assert not [line for line in server.lines if line["level"] == "error"]
    finally:
        server.close()
