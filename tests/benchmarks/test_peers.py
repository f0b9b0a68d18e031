"""Comparing with other recognisers: what is compared, how it is shown, and one run with Glyphline alone."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnxruntime", reason="needs the cpu extra")

from hypothesis import given
from hypothesis import strategies as st
from labelled import spread, suffix_of, write_files
from peer_figures import PeerFigures, figures_of
from peer_processes import ReaderError, ReaderPlan, ReaderProcess, Readings, read_in_turns
from peer_readers import READERS, NotInstalledError, TesseractReader, import_peer
from peer_report import HEADINGS, cells, markdown, plot
from peer_worker import read_files
from peers import LABELS, make_plan, parse

from glyphline.training.errors import DataError
from glyphline.training.report.comparison import COMPARISONS


@given(st.lists(st.integers(), max_size=50), st.one_of(st.none(), st.integers(1, 60)))
def test_a_limit_takes_from_all_over(items: list[int], limit: int | None) -> None:
    numbered = list(enumerate(items))
    taken = spread(numbered, limit)
    assert len(taken) == (len(items) if limit is None else min(limit, len(items)))
    places = [place for place, _ in taken]
    assert places == sorted(set(places))
    gaps = {after - before for before, after in pairwise(places)}
    assert not gaps or max(gaps) - min(gaps) <= 1
    assert not places or places[0] == 0


def test_figures_count_refusals_as_nothing_read() -> None:
    readers = [("ours", "1", 1000), ("theirs", "2", 0)]
    ours = Readings(["12", "a3"], [(1, 0.010, 0.011), (1, 0.020, 0.021)])
    theirs = Readings(["12", None], [(2, 0.150, 0.2)], "no")
    first, second = figures_of(readers, ["12", "3"], [ours, theirs], "digits")
    assert (first.exact, first.cer, first.refused, first.relative_cost) == (1.0, 0.0, 0, 1.0)
    assert first.cpu_milliseconds == pytest.approx(15)
    assert first.cpu_range == pytest.approx((10, 20))
    assert (second.exact, second.refused) == (0.5, 1)
    assert second.cer == pytest.approx(1 / 3)
    assert second.relative_cost == pytest.approx(5)
    assert second.wall_milliseconds == pytest.approx(100)
    assert second.exact_interval[0] < 0.5 < second.exact_interval[1]
    (strict, _) = figures_of(readers, ["12", "3"], [ours, theirs], "all")
    assert strict.exact == 0.5


@pytest.fixture
def figures() -> PeerFigures:
    (row,) = figures_of([("one|two", "1 (x)", 2_100_000)], ["1"], [Readings(["1"], [(1, 0.004, 0.004)])], "all")
    return row


def test_a_table_in_markdown(figures: PeerFigures) -> None:
    assert len(cells(figures)) == len(HEADINGS)
    title, _, heading, rule, row = markdown("strips", [figures]).splitlines()
    assert title == "strips"
    assert heading.count("|") == rule.count("|") == len(HEADINGS) + 1
    assert row == "| one\\|two | 1 (x) | 2.1 MB | 100.0 % (20.7–100.0) | 0.0 % (0.0–0.0) | 4.00 | × 1.00 | 0 |"


def test_a_plot_is_a_picture(figures: PeerFigures, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the train extra")
    plot(tmp_path / "plot.png", {"a": [figures], "b": [figures]})
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_the_usual_plan_has_every_peer() -> None:
    assert [plan.label for plan in make_plan(parse([]))] == ["Glyphline digits", "RapidOCR", "Tesseract", "ddddocr"]
    assert set(LABELS) | {"glyphline"} == set(READERS)
    assert parse([]).compare is None
    assert set(COMPARISONS) == {"all", "letters-and-digits", "digits"}


def test_the_plan_has_every_way_that_was_named_once() -> None:
    peers = ["--peers", "tesseract", "glyphline", "--peers", "tesseract", "--peer-python", "other"]
    ways = ["--model", "digits", "digits-ctc", "--model", "digits", "--decoder", "greedy", "beam"]
    arguments = parse(["x", *peers, *ways, "--beam-width", "4", "--batch", "8"])
    plans = make_plan(arguments)
    assert [plan.label for plan in plans] == [
        "Tesseract",
        "Glyphline digits (greedy, batch 8)",
        "Glyphline digits (beam 4, batch 8)",
        "Glyphline digits-ctc (greedy, batch 8)",
        "Glyphline digits-ctc (beam 4, batch 8)",
    ]
    assert [plan.batch for plan in plans] == [1, 8, 8, 8, 8]
    assert [plan.python for plan in plans] == ["other"] + [sys.executable] * 4
    usual = {"provider": "onnxruntime", "precision": "fp32"}
    assert plans[2].settings == {"model": "digits", "decoder": "beam", "beam_width": 4} | usual


def test_providers_and_precisions_are_ways_too() -> None:
    arguments = parse(["--peers", "glyphline", "--provider", "onnxruntime", "openvino", "--precision", "int8"])
    plans = make_plan(arguments)
    assert [plan.label for plan in plans] == [
        "Glyphline digits (onnxruntime, int8)",
        "Glyphline digits (openvino, int8)",
    ]
    assert plans[1].settings["provider"] == "openvino"
    assert plans[1].settings["precision"] == "int8"


@pytest.mark.parametrize("arguments", [["--limit", "0"], ["--peers", "nobody"], ["--compare", "nothing"]])
def test_a_wrong_option_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(arguments)
    assert arguments[0] in capsys.readouterr().err


def test_images_of_a_folder_keep_their_bytes(strips_folder: Path, tmp_path: Path) -> None:
    files = write_files(str(strips_folder), Path("data"), 5, tmp_path / "images")
    assert len(files.paths) == len(files.texts) == 5
    originals = {path.read_bytes() for path in strips_folder.iterdir()}
    assert all(path.read_bytes() in originals for path in files.paths)
    again = write_files(str(tmp_path / "images"), Path("data"), None, tmp_path / "again")
    assert again.texts == files.texts
    assert [path.read_bytes() for path in again.paths] == [path.read_bytes() for path in files.paths]
    with pytest.raises(DataError, match="not empty"):
        write_files(str(strips_folder), Path("data"), 5, tmp_path / "images")


def test_drawn_strips_become_png(tmp_path: Path) -> None:
    files = write_files("blank", tmp_path, 3, tmp_path / "images")
    assert files.texts == ("", "", "")
    assert [path.suffix for path in files.paths] == [".png"] * 3


def test_an_image_is_named_by_what_it_is() -> None:
    assert suffix_of(b"\xff\xd8\xff\xe0") == ".jpg"
    assert suffix_of(b"P5 1 1 255\n0") == ".pnm"


class Fussy:
    """A reader that refuses what it does not like."""

    version = "1"
    model_bytes = 0

    def read(self, contents: Sequence[bytes]) -> list[str]:
        if b"bad" in contents:
            raise ValueError("bad is bad")
        return [content.decode().upper() for content in contents]


def test_one_refused_image_harms_no_other(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a", "bad", "c")]
    for path in paths:
        path.write_bytes(path.name.encode())
    for batch in (1, 2, 8):
        answer = read_files(Fussy(), [str(path) for path in paths], batch)
        assert answer["texts"] == ["A", None, "C"]
        assert answer["fault"] == "ValueError: bad is bad"
        assert answer["cpu_seconds"] >= 0


def test_a_peer_that_is_not_there_says_how_to_install_it() -> None:
    with pytest.raises(NotInstalledError, match=r"^pip install no-such-peer \("):
        import_peer("no_such_peer", "pip install no-such-peer")


def test_a_reader_that_does_not_start_says_why() -> None:
    with pytest.raises(ReaderError, match="Peer: /no/python does not start: No such file"):
        ReaderProcess(ReaderPlan("rapidocr", "Peer", python="/no/python"))
    with pytest.raises(ReaderError, match=r"Peer does not load: ModelNotFoundError: .*nothing"):
        ReaderProcess(ReaderPlan("glyphline", "Peer", {"model": "nothing"}))


@pytest.fixture(scope="module")
def glyphline() -> Iterator[ReaderProcess]:
    with ReaderProcess(ReaderPlan("glyphline", "Glyphline", {"model": "digits-ctc"}, batch=4)) as reader:
        yield reader


def test_readers_take_turns_over_all_images(glyphline: ReaderProcess, strips: list[tuple[Path, str]]) -> None:
    paths, texts = [path for path, _ in strips[:5]], [text for _, text in strips[:5]]
    seen: list[int] = []
    first, second = read_in_turns([glyphline, glyphline], paths, turn=2, warm_up=2, progress=seen.append)
    assert first.texts == second.texts == texts
    assert [images for images, _, _ in first.turns] == [2, 2, 1]
    assert all(cpu > 0 for _, cpu, _ in first.turns)
    assert seen == [2, 4, 5]


def test_a_process_that_ends_is_told_of(glyphline: ReaderProcess, tmp_path: Path) -> None:
    with (
        ReaderProcess(ReaderPlan("glyphline", "Glyphline", {"model": "digits-ctc"})) as reader,
        pytest.raises(ReaderError, match=r"its process ended with exit code 1: (?s:.*)FileNotFoundError"),
    ):
        reader.read([tmp_path / "missing.png"])


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "benchmarks/peers.py", *arguments],
        cwd=root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_glyphline_alone_on_the_strips_that_come_with_it(repository_root: Path, tmp_path: Path) -> None:
    readings = tmp_path / "readings.jsonl"
    done = run(
        repository_root,
        *("--peers", "glyphline", "--model", "digits-ctc", "--limit", "6", "--turn", "4", "--compare", "digits"),
        *("--readings", str(readings), "--keep", str(tmp_path / "kept"), "--json"),
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    (measured,) = report["sets"]
    assert measured["compare"] == "digits"
    (row,) = measured["figures"]
    assert (row["reader"], row["images"], row["exact"], row["refused"]) == ("Glyphline digits-ctc", 6, 1.0, 0)
    assert row["cpu_milliseconds"] > 0
    assert row["relative_cost"] == 1
    records = [json.loads(line) for line in readings.read_text(encoding="utf-8").splitlines()]
    assert [record["read"]["Glyphline digits-ctc"] for record in records] == [record["text"] for record in records]
    assert len((tmp_path / "kept" / "1" / "labels.tsv").read_text(encoding="utf-8").splitlines()) == 6


def test_data_that_are_not_there_are_told_of(repository_root: Path, tmp_path: Path) -> None:
    done = run(repository_root, str(tmp_path / "nothing"), "--peers", "glyphline")
    assert done.returncode == 1
    assert "nothing is neither a folder" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("peer", "module"), [("rapidocr", "rapidocr"), ("ddddocr", "ddddocr"), ("ddddocr-beta", "ddddocr")]
)
def test_an_installed_peer_reads(peer: str, module: str, strips_folder: Path) -> None:
    pytest.importorskip(module, reason=f"needs {module}")
    with ReaderProcess(ReaderPlan(peer, peer)) as reader:
        answer = reader.read([strips_folder / "register_fran_0025_0293_l_0_0024.jpg"])
    assert answer["fault"] == ""
    assert answer["texts"] == ["568"]
    assert reader.model_bytes > 1_000_000


def test_tesseract_reads_where_it_is_installed(strips_folder: Path) -> None:
    try:
        reader = TesseractReader()
    except NotInstalledError as error:
        pytest.skip(str(error))
    assert reader.model_bytes > 1_000_000
    path = strips_folder / "register_fran_0025_0293_l_0_0024.jpg"
    assert reader.read([path.read_bytes()] * 2) == ["568", "568"]
    with pytest.raises(OSError, match="cannot identify"):
        reader.read([b"nothing"])
