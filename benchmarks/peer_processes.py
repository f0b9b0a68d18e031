"""Readers in processes of their own, and the turns that they take over the same images."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

WORKER = Path(__file__).with_name("peer_worker.py")
# Before a library of any peer makes its threads.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OMP_THREAD_LIMIT": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


@dataclass(frozen=True, slots=True)
class ReaderPlan:
    """A reader that is to be compared.

    Attributes:
        reader: Its name in `peer_readers.READERS`.
        label: What it is called in tables.
        settings: What it is loaded with.
        batch: Images to a call.
        python: The interpreter that has it.
    """

    reader: str
    label: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    batch: int = 1
    python: str = sys.executable


@dataclass(slots=True)
class Readings:
    """What one reader made of a data set.

    Attributes:
        texts: What it read in each image; None where it refused one.
        turns: Images, CPU seconds and seconds by the clock of each turn.
        fault: What it said of the first image that it refused.
    """

    texts: list[str | None] = field(default_factory=list)
    turns: list[tuple[int, float, float]] = field(default_factory=list)
    fault: str = ""


class ReaderError(Exception):
    """A reader is not there, or its process has ended."""


class ReaderProcess:
    """One reader in a process of its own."""

    def __init__(self, plan: ReaderPlan) -> None:
        """Starts the process and waits until the model is loaded.

        Raises:
            ReaderError: If the reader is not installed or does not load; the message says what to do.
        """
        self.plan = plan
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (it is closed with the process)
        try:
            self._process = subprocess.Popen(
                [plan.python, str(WORKER), plan.reader, json.dumps(plan.settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
                encoding="utf-8",
                env={**os.environ, **ONE_THREAD},
            )
        except OSError as error:
            self._log.close()
            raise ReaderError(f"{plan.label}: {plan.python} does not start: {error.strerror}") from error
        try:
            said = self._answer()
            if "missing" in said:
                raise ReaderError(f"{plan.label} is not installed: {said['missing']}")
            if "broken" in said:
                raise ReaderError(f"{plan.label} does not load: {said['broken']}")
        except BaseException:
            self.close()
            raise
        self.version = str(said["version"])
        self.model_bytes = int(said["model_bytes"])

    def __enter__(self) -> Self:
        """Returns the reader."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the process."""
        self.close()

    def read(self, paths: Sequence[Path]) -> dict[str, Any]:
        """Has files read; returns their texts, what they took and the first fault.

        Raises:
            ReaderError: If the process ends over it.
        """
        assert self._process.stdin is not None
        task = {"paths": [str(path) for path in paths], "batch": self.plan.batch}
        try:
            self._process.stdin.write(json.dumps(task) + "\n")
            self._process.stdin.flush()
        except OSError:
            pass  # the answer tells why
        return self._answer()

    def close(self) -> None:
        """Ends the process: its input ends, and so does it; if not, it is killed."""
        try:
            self._process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._log.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            self._log.seek(0)
            last = self._log.read().decode(errors="replace").strip()[-2000:]
            raise ReaderError(f"{self.plan.label}: its process ended with exit code {code}: {last}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def read_in_turns(
    readers: Sequence[ReaderProcess],
    paths: Sequence[Path],
    *,
    turn: int,
    warm_up: int,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Readings]:
    """Has every reader read every image, a few at a time, one reader after the other and no two at once.

    So a machine that others keep busy disturbs all alike. Who begins changes from turn to turn.

    Args:
        readers: The readers.
        paths: Image files.
        turn: Images to a turn.
        warm_up: Images that each reads once before its time counts, from all over the set.
        progress: Is told after each turn how many images all have read.

    Returns:
        What each reader made of them.

    Raises:
        ReaderError: If a process ends over an image.
    """
    step = max(1, len(paths) // max(warm_up, 1))
    for reader in readers:
        if warm_up:
            reader.read(paths[::step][:warm_up])
    found = [Readings() for _ in readers]
    for number, start in enumerate(range(0, len(paths), turn)):
        part = paths[start : start + turn]
        for place in range(len(readers)):
            index = (place + number) % len(readers)
            answer = readers[index].read(part)
            found[index].texts += answer["texts"]
            found[index].turns.append((len(part), answer["cpu_seconds"], answer["wall_seconds"]))
            found[index].fault = found[index].fault or answer["fault"]
        progress(start + len(part))
    return found
