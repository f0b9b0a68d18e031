"""One reader in a process of its own, which `peers.py` starts and tells by lines of JSON what to read.

The first line out says what was loaded. Then each line in names files, and each line out has their texts and what they
took of this process's CPU time, user and system. Files are read before the clock starts and decoded after.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from peer_readers import READERS, NotInstalledError, Reader


def read_files(reader: Reader, paths: list[str], batch: int) -> dict[str, Any]:
    """Reads files, `batch` to a call; one that is refused has no text."""
    contents = [Path(path).read_bytes() for path in paths]
    texts: list[str | None] = []
    fault = ""
    wall, cpu = time.perf_counter(), time.process_time()
    for start in range(0, len(contents), batch):
        call = contents[start : start + batch]
        try:
            texts += reader.read(call)
        except Exception as error:  # every peer has its own
            fault = fault or f"{type(error).__name__}: {error}"
            texts += _read_singly(reader, call) if len(call) > 1 else [None]
    cpu_seconds, wall_seconds = time.process_time() - cpu, time.perf_counter() - wall
    return {"texts": texts, "cpu_seconds": cpu_seconds, "wall_seconds": wall_seconds, "fault": fault}


def _read_singly(reader: Reader, contents: list[bytes]) -> list[str | None]:
    """Reads the images of a call that failed, so that only the culprit has no text."""
    texts: list[str | None] = []
    for content in contents:
        try:
            texts += reader.read([content])
        except Exception:  # the call has told of it
            texts.append(None)
    return texts


def load(name: str, settings: dict[str, Any]) -> tuple[Reader | None, dict[str, Any]]:
    """Loads a reader, and says what it is or why it is not there."""
    try:
        reader = READERS[name](**settings)
    except NotInstalledError as error:
        return None, {"missing": str(error)}
    except Exception as error:  # every peer has its own
        return None, {"broken": f"{type(error).__name__}: {error}"}
    return reader, {"version": reader.version, "model_bytes": reader.model_bytes}


def main() -> int:
    """Loads the reader that the first argument names, with the settings of the second, and reads what it is told."""
    # Some peers print; what is told to the parent has a channel of its own.
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    reader, said = load(sys.argv[1], json.loads(sys.argv[2]))
    print(json.dumps(said), file=channel)
    if reader is None:
        return 1
    for line in sys.stdin:
        task = json.loads(line)
        print(json.dumps(read_files(reader, task["paths"], task["batch"])), file=channel)
    return 0


if __name__ == "__main__":
    sys.exit(main())
