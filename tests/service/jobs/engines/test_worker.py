from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from glyphline.models.bundle import load_bundle
from glyphline.models.decoding import DecodingOptions, Reading
from glyphline.models.errors import BundleError, ImageError, OptionsError
from glyphline.models.image import GreyImage, ImageLimits
from glyphline.models.recognizer import Recognizer, StageTimings
from glyphline.service.jobs.engines import worker
from glyphline.service.jobs.engines.worker import WorkerSettings
from glyphline.service.jobs.pictures import FilePicture
from glyphline.service.jobs.rows import Outcome, RowError


def read_files(paths: Sequence[str]) -> list[Outcome]:
    return worker.read_pictures([FilePicture(path) for path in paths])


@pytest.fixture(autouse=True)
def fresh_worker() -> Iterator[None]:
    yield
    worker._State.recognizer = None


def test_one_outcome_a_file_in_order(bundle: Path, bad_files: dict[str, str], strips: list[tuple[Path, str]]) -> None:
    worker.start(WorkerSettings(bundle))
    good = [str(path) for path, _ in strips[:5]]
    mixed = [path for pair in zip(bad_files, good, strict=False) for path in pair] + list(bad_files)
    outcomes = read_files(mixed)
    alone = Recognizer.load(load_bundle(bundle)).recognize([Path(path).read_bytes() for path in good])
    expected = {path: reading.text for path, reading in zip(good, alone, strict=True) if isinstance(reading, Reading)}
    for path, outcome in zip(mixed, outcomes, strict=True):
        if isinstance(outcome, RowError):
            assert outcome.code == bad_files[path]
            assert outcome.message
        else:
            assert outcome.text == expected[path]


def test_a_file_above_the_limit_is_not_read(bundle: Path, tmp_path: Path) -> None:
    worker.start(WorkerSettings(bundle, limits=ImageLimits(max_bytes=1_000)))
    with (tmp_path / "large.png").open("wb") as stream:
        stream.truncate(2**40)  # a terabyte of holes: reading it would be noticed
    (outcome,) = read_files([str(tmp_path / "large.png")])
    assert isinstance(outcome, RowError)
    assert outcome.code == "image_too_large"
    assert "1,000" in outcome.message


def test_complaint_37_files_are_recognised_before_too_many_bytes_are_held(
    bundle: Path, strips: list[tuple[Path, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [str(path) for path, _ in strips[:6]]
    worker.start(WorkerSettings(bundle))
    whole = read_files(paths)
    monkeypatch.setattr(worker, "_BATCH_BYTES", 1)
    assert [one.text for one in read_files(paths) if isinstance(one, Reading)] == [
        one.text for one in whole if isinstance(one, Reading)
    ]


class Failing(Recognizer):
    """A recogniser that runs out of memory with one image."""

    poison = b""

    def recognize(
        self,
        images: Sequence[bytes | GreyImage],
        options: DecodingOptions = DecodingOptions(),  # noqa: B008  (frozen)
        *,
        limits: ImageLimits = ImageLimits(),  # noqa: B008  (frozen)
        max_batch: int = 32,
        timings: StageTimings | None = None,
    ) -> list[Reading | ImageError]:
        if self.poison in images:
            raise MemoryError("no more")
        return super().recognize(images, options, limits=limits, max_batch=max_batch, timings=timings)


def test_an_unforeseen_error_fails_only_its_image(
    bundle: Path, strips: list[tuple[Path, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "Recognizer", Failing)
    monkeypatch.setattr(Failing, "poison", strips[1][0].read_bytes())
    worker.start(WorkerSettings(bundle))
    outcomes = read_files([str(path) for path, _ in strips[:4]])
    assert [isinstance(outcome, RowError) for outcome in outcomes] == [False, True, False, False]
    assert outcomes[1] == RowError("internal_error", "MemoryError: no more")


def test_what_concerns_every_image_is_raised(bundle: Path, tmp_path: Path, strips: list[tuple[Path, str]]) -> None:
    worker.start(WorkerSettings(bundle, options=DecodingOptions(allowed_characters="€")))
    with pytest.raises(OptionsError):
        read_files([str(strips[0][0])])
    worker._State.recognizer = None
    worker.start(WorkerSettings(tmp_path))
    with pytest.raises(BundleError, match=r"manifest\.json"):
        read_files([str(strips[0][0])])
