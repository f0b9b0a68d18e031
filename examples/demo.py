"""Start a server, read the strips beside this file over gRPC, stop the server: `python examples/demo.py`.

In two terminals it would be

    glyphline serve
    glyphline recognize examples/strips/*.jpg --server localhost:50051
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

from glyphline.service.client import Client

STRIPS = Path(__file__).parent / "strips"


def free_port() -> int:
    """Returns a port that nothing listens on, so that the demonstration disturbs no server of yours."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def read_strips(target: str) -> None:
    """Reads every strip with the server at `target`, and prints the reading beside the truth."""
    labels = dict(line.split("\t") for line in (STRIPS / "labels.tsv").read_text(encoding="utf-8").splitlines())
    with Client(target) as client:
        client.wait_until_ready(timeout=120)  # a second or two, unless the machine is busy
        print(f"{'strip':22}{'read':12}{'truth':12}{'confidence':12}{'time':>8}")
        for name, truth in labels.items():
            result = client.recognize(STRIPS / name, reference=truth)
            milliseconds = f"{1000 * result.metadata.inference_seconds:.0f} ms"
            print(f"{name:22}{result.text:12}{truth:12}{result.confidence:<12.1%}{milliseconds:>8}")


def main() -> int:
    """Runs the demonstration; the exit code is the server's own."""
    port = free_port()
    command = [sys.executable, "-m", "glyphline", "serve", "--port", str(port), "--metrics-port", "-1"]
    print(f"$ glyphline {' '.join(command[3:])} &", flush=True)
    with subprocess.Popen([*command, "--drain-seconds", "0", "--log-level", "warning"]) as server:
        try:
            read_strips(f"127.0.0.1:{port}")
        finally:
            server.send_signal(signal.SIGTERM)
    return server.returncode


if __name__ == "__main__":
    sys.exit(main())
