from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding import DecodingOptions, Reading
from glyphline.models.image import ImageLimits
from glyphline.models.recognizer import Recognizer
from glyphline.service.client import Client, NotFoundError, RecognitionError
from glyphline.service.client.retry import RetryPolicy
from glyphline.service.jobs import Inputs, Item, Journal, Layout, ModelIdentity, RowError, RowFormat, run
from glyphline.service.jobs.engines.server import ServerEngine, ServerPlan
from glyphline.service.jobs.items import chunks_of
from glyphline.service.jobs.pictures import CutPicture, FilePicture, Picture
from glyphline.service.jobs.rows import Outcome

ONCE = RetryPolicy(attempts=1)


def plan_for(client: Client, **changes: object) -> ServerPlan:
    info = client.get_model()
    settings = {"options": DecodingOptions(), "limits": ImageLimits(), "batch_size": 8} | changes
    return ServerPlan(info.name, info.version, **settings)  # type: ignore[arg-type]


def read_all(engine: ServerEngine, pictures: Iterable[Picture], size: int = 16) -> list[Outcome]:
    items = (Item(str(number), picture) for number, picture in enumerate(pictures))
    with engine:
        done = sorted(engine.read(chunks_of(items, size), in_order=False), key=lambda each: each.chunk.number)
    return [outcome for each in done for outcome in each.outcomes]


@pytest.fixture
def ask(server_target: str, identity: ModelIdentity) -> Iterator[Callable[..., ServerEngine]]:
    """Returns a function that makes an engine with two clients of one server."""
    with Client(server_target) as first, Client(server_target) as second:
        yield lambda **changes: ServerEngine([first, second], plan_for(first, **changes), identity)


def test_a_server_reads_as_this_process_does(
    ask: Callable[..., ServerEngine], bundle: Path, strips: list[tuple[Path, str]], bad_files: dict[str, str]
) -> None:
    recognizer = Recognizer.load(load_bundle(bundle))
    good = [str(path) for path, _ in strips]
    outcomes = read_all(ask(), map(FilePicture, [*good, *bad_files]))
    for path, outcome in zip(good, outcomes, strict=False):
        (reading,) = recognizer.recognize([Path(path).read_bytes()])
        assert isinstance(reading, Reading)
        assert isinstance(outcome, Reading)
        assert outcome.text == reading.text
    codes = [outcome.code for outcome in outcomes[len(good) :] if isinstance(outcome, RowError)]
    assert codes == list(bad_files.values())


def test_strips_are_cut_before_they_are_sent(
    ask: Callable[..., ServerEngine], strips: list[tuple[Path, str]], tmp_path: Path
) -> None:
    path, text = strips[0]
    strip = np.asarray(Image.open(path).convert("L"))
    page = np.full((strip.shape[0] + 40, strip.shape[1] + 60), 128, np.uint8)
    page[20 : 20 + strip.shape[0], 30 : 30 + strip.shape[1]] = strip
    Image.fromarray(page).save(tmp_path / "page.png")
    corners = ((30.0, 20.0), (29.0 + strip.shape[1], 19.0 + strip.shape[0]))
    (outcome,) = read_all(ask(), [CutPicture(FilePicture(str(tmp_path / "page.png")), corners)])
    assert isinstance(outcome, Reading)
    assert outcome.text == text


def test_what_is_refused_for_good_ends_the_job(
    ask: Callable[..., ServerEngine], identity: ModelIdentity, strips: list[tuple[Path, str]]
) -> None:
    engine = ask()
    lost = ServerEngine(engine._clients, ServerPlan("nonsense", 1, DecodingOptions(), ImageLimits()), identity)
    with pytest.raises(NotFoundError):
        read_all(lost, [FilePicture(str(strips[0][0]))])


@pytest.mark.slow
def test_a_server_that_vanishes_stops_the_job_and_another_run_ends_it(
    start: Callable[..., object], identity: ModelIdentity, strips: list[tuple[Path, str]], tmp_path: Path
) -> None:
    names = list(itertools.islice(itertools.cycle(str(path) for path, _ in strips), 64))
    for number, name in enumerate(names):
        (tmp_path / "scans").mkdir(exist_ok=True)
        (tmp_path / "scans" / f"{number:02d}{Path(name).suffix}").write_bytes(Path(name).read_bytes())
    inputs = Inputs((str(tmp_path / "scans"),))
    layout = Layout.of(tmp_path / "out.jsonl", "jsonl", folder=False)
    server = start()
    with Client(server.target, retry=ONCE, timeout=5) as client:  # type: ignore[attr-defined]
        client.wait_until_ready(60)
        plan = plan_for(client, patience=0.2, calls=1)

        def stop(_: object) -> None:
            server.process.kill()  # type: ignore[attr-defined]

        with (
            pytest.raises(RecognitionError),
            Journal(layout, {}, "new") as journal,
            ServerEngine([client], plan, identity) as engine,
        ):
            run(inputs.chunks(8), engine, journal, RowFormat(identity), watch=stop)
    assert not layout.output.exists()
    other = start()
    with Client(other.target) as client:  # type: ignore[attr-defined]
        client.wait_until_ready(60)
        with Journal(layout, {}, "resume") as journal, ServerEngine([client], plan, identity) as engine:
            assert 0 < journal.kept < 64
            tally = run(inputs.chunks(8), engine, journal, RowFormat(identity))
    assert (tally.images, tally.failed) == (64, 0)
    assert len(set(layout.output.read_text().splitlines())) == 64
