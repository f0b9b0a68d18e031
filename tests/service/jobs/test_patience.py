"""Storages that fail: a real one over HTTP that has moments of weakness, and then goes away."""

from __future__ import annotations

import http.server
import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from glyphline.models.errors import UndecodableImageError
from glyphline.models.image import ImageLimits
from glyphline.service.jobs import (
    Inputs,
    JobError,
    Journal,
    Layout,
    LocalEngine,
    ModelIdentity,
    RowError,
    RowFormat,
    WorkerSettings,
    patience,
    run,
)
from glyphline.service.jobs.patience import patiently
from glyphline.service.jobs.pictures import FilePicture, fetch

LIMITS = ImageLimits()


class Bucket(http.server.ThreadingHTTPServer):
    """Serves one picture under every name; what is asked for is counted.

    Attributes:
        asked: How often, by path.
        failures: Answers of 503 that every path begins with.
        gone: After how many pictures it answers no more; None for never.
    """

    daemon_threads = True
    asked: Counter[str]
    failures = 0
    gone: int | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def bucket(strips: list[tuple[Path, str]]) -> Iterator[Bucket]:
    content = strips[0][0].read_bytes()

    class Handler(http.server.BaseHTTPRequestHandler):
        server: Bucket

        def do_GET(self) -> None:
            self.server.asked[self.path] += 1
            if self.server.gone is not None and len(self.server.asked) > self.server.gone:
                self.close_connection = True  # without a word
                return
            status = 200
            if "lost" in self.path:
                status = 404
            elif "refused" in self.path:
                status = 403
            elif self.server.asked[self.path] <= self.server.failures:
                status = 503
            self.send_response(status)
            self.send_header("Content-Length", str(len(content) if status == 200 else 0))
            self.end_headers()
            if status == 200:
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = Bucket(("127.0.0.1", 0), Handler)
    server.asked = Counter()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same number of tries, without the pauses."""
    monkeypatch.setattr(patience, "PAUSES", (0.0,) * len(patience.PAUSES))
    monkeypatch.setattr(patience, "_given_up", set())


def test_a_moment_of_weakness_is_waited_for(bucket: Bucket) -> None:
    pytest.importorskip("aiohttp")
    bucket.failures = 2
    assert isinstance(fetch(FilePicture(f"{bucket.uri}/a.png"), LIMITS), bytes)
    assert bucket.asked["/a.png"] >= 3


@pytest.mark.parametrize("name", ["lost", "refused"])
def test_what_will_not_change_is_asked_for_once(bucket: Bucket, name: str) -> None:
    pytest.importorskip("aiohttp")
    outcome = fetch(FilePicture(f"{bucket.uri}/{name}.png"), LIMITS)
    assert isinstance(outcome, RowError)
    assert bucket.asked[f"/{name}.png"] == 1


def test_patience_has_an_end_and_comes_back() -> None:
    tries = itertools.count()

    def fail() -> None:
        next(tries)
        raise TimeoutError

    for most in (len(patience.PAUSES) + 1, 1):  # the second picture finds a storage that is known to fail
        before = next(tries)
        with pytest.raises(TimeoutError):
            patiently("s3://bucket/a.png", fail)
        assert next(tries) - before == most + 1
    assert patiently("s3://bucket/b.png", lambda: 1) == 1
    before = next(tries)
    with pytest.raises(TimeoutError):
        patiently("s3://bucket/a.png", fail)
    assert next(tries) - before == len(patience.PAUSES) + 2


@pytest.mark.parametrize(("location", "error"), [("a.png", OSError()), ("s3://b/a", UndecodableImageError("x"))])
def test_disks_and_damage_are_not_waited_for(location: str, error: Exception) -> None:
    tries = itertools.count()

    def fail() -> None:
        next(tries)
        raise error

    with pytest.raises(type(error)):
        patiently(location, fail)
    assert next(tries) == 1


@pytest.mark.slow
def test_a_bucket_that_goes_away_stops_the_job_and_another_run_ends_it(
    bucket: Bucket, bundle: Path, identity: ModelIdentity, tmp_path: Path
) -> None:
    pytest.importorskip("aiohttp")
    names = tmp_path / "list.csv"
    names.write_text("path\n" + "".join(f"{bucket.uri}/{number:03d}.png\n" for number in range(120)))
    inputs = Inputs((str(names),), allow_http=True)
    layout = Layout.of(tmp_path / "out.jsonl", "jsonl", folder=False)
    engine = LocalEngine(WorkerSettings(bundle), identity, 1)
    bucket.gone = 50
    with pytest.raises(JobError, match="is the disk or the storage there"), Journal(layout, {}, "new") as journal:
        run(inputs.chunks(40), engine, journal, RowFormat(identity))
    assert not layout.output.exists()
    bucket.gone = None
    with Journal(layout, {}, "resume") as journal:
        assert journal.kept == 40, "the chunk within which it went is read again"
        tally = run(inputs.chunks(40), engine, journal, RowFormat(identity))
    assert (tally.images, tally.failed) == (120, 0)
    assert len(set(layout.output.read_text().splitlines())) == 120
