"""Comparing with other servers: how figures are made of records, how they are shown, and a run with Glyphline alone."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from math import isnan
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime", reason="needs the cpu extra")

from server_calls import Caller, CallError
from server_client import CANCELLED, WRONG, Recorder, closed_loop, open_loop
from server_figures import Overload, ServerFigures, Window, cancel_figures, load_figures, overload_figures
from server_health import HealthWatch
from server_peers import KINDS, ServerError, installed
from server_report import CANCELS, LOADS, OVERLOADS, plot, show, tables
from servers import choose, parse

TIMED_OUT = "DEADLINE_EXCEEDED"


class Echo(Caller):
    """Reads `text 0` in the first image, and so on; refuses the third, and never answers the fourth."""

    async def read(self, index: int, timeout: float) -> str:
        if index == 2:
            raise CallError("RESOURCE_EXHAUSTED")
        if index == 3:
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        return f"text {index}"

    async def close(self) -> None:
        """Has nothing to close."""


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    async with Echo() as caller:
        yield caller


async def test_a_closed_loop_notes_every_call(caller: Caller) -> None:
    recorder = Recorder(caller, ["text 0", "another", "text 2"])
    await closed_loop(recorder, callers=3, seconds=0.05)
    outcomes = {came for _, _, came in recorder.records}
    assert outcomes == {"", WRONG, "RESOURCE_EXHAUSTED"}
    assert len(recorder.lateness) == len(recorder.records)


async def test_an_open_loop_sends_what_is_due_in_each_phase(caller: Caller) -> None:
    recorder = Recorder(caller, ["text 0"])
    await open_loop(recorder, [(400.0, 0.1), (100.0, 0.1)], deadline=5.0, seed=1)
    due = [moment for moment, _, _ in recorder.records]
    assert sum(moment < 0.1 for moment in due) == 40
    assert sum(moment >= 0.1 for moment in due) == 10
    assert all(came == "" and took >= 0 for _, took, came in recorder.records)


async def test_an_open_loop_cancels_a_share_and_leaves_the_others_alone(caller: Caller) -> None:
    recorder = Recorder(caller, ["text 0", "text 1", "text 2", "never answered"])
    # All are cancelled, but those that are answered first have their answers.
    await open_loop(recorder, [(800.0, 0.1)], 5.0, seed=3, burst=8, cancel_share=1.0, cancel_within=0.001)
    outcomes = [came for _, _, came in recorder.records]
    assert len(outcomes) == 80
    assert outcomes.count(CANCELLED) >= 20
    assert set(outcomes) <= {"", CANCELLED, "RESOURCE_EXHAUSTED"}


def window(*records: tuple[float, float, str], seconds: float = 2.0) -> Window:
    return Window(seconds, records, 0.001, 0.004, 0.006)


def test_latencies_are_those_of_right_answers() -> None:
    rounds = [
        window((0.0, 0.010, ""), (0.1, 0.030, ""), (0.2, 9.0, TIMED_OUT)),
        window((0.0, 0.020, ""), (0.1, 1, WRONG)),
    ]
    figures = load_figures(rounds, callers=1)
    assert figures.load == "1 caller"
    assert figures.images_per_second == pytest.approx((1.0 + 0.5) / 2)
    assert figures.latency_milliseconds["p50"] == pytest.approx(20)
    assert figures.failed == {TIMED_OUT: 1}
    assert (figures.calls, figures.wrong) == (5, 1)
    assert figures.cpu_milliseconds == pytest.approx((3.0 + 6.0) / 2)


def overload(*after: tuple[float, float, str]) -> Overload:
    during = [(0.1, 0.2, ""), (0.2, 1.5, ""), (0.3, 0.0, "RESOURCE_EXHAUSTED"), (0.9, 1.0, TIMED_OUT)]
    usual = window(*[(0.0, 0.1, "")] * 4)
    return Overload(window(*during, *after), usual, 1, 4.0, 1.0, 1.0, [0.002, 0.004], 1)


def test_goodput_is_what_came_in_time() -> None:
    figures = overload_figures([overload((1.5, 0.1, ""))])
    assert (figures.goodput, figures.goodput_ratio) == (1.0, 0.5)
    assert (figures.refused, figures.late, figures.failed) == (0.25, 0.5, 0.0)
    assert figures.recovery_seconds == 0.0
    assert figures.health_p99_milliseconds == pytest.approx(4, abs=0.1)
    assert figures.health_failed == 1


def test_what_the_client_takes_of_shared_cores_is_no_loss_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [(0.0, 0.1, "")] * 2
    usual, busy = Window(1.0, calls * 2, 0, 0.2, 1.0), Window(2.0, [*calls, *[(1.5, 0.1, "")] * 2], 0, 1.0, 1.0)
    seen = Overload(busy, usual, 2, 12.0, 1.0, 1.0, [], 0)
    for cores, left in ((2, 4 * 0.75 / 0.9), (3, 4.0)):
        monkeypatch.setattr("machine.available_threads", lambda cores=cores: cores)
        assert seen.left_capacity == pytest.approx(left)
        assert overload_figures([seen]).left_ratio == pytest.approx(2 / left)


def test_a_server_has_recovered_when_no_call_is_slow_any_more() -> None:
    assert overload((1.2, 0.9, ""), (1.4, 0.1, ""), (1.6, 0.4, ""), (1.9, 0.1, "")).recovery_seconds == pytest.approx(
        0.9
    )
    assert overload((1.2, 0.1, ""), (1.4, 0.0, TIMED_OUT)).recovery_seconds is None
    rounds = [overload((1.5, 0.1, "")), overload((1.5, 0.9, ""))]
    assert overload_figures(rounds).recovery_seconds is None


def test_whoever_hangs_is_no_mere_failure() -> None:
    during = window((0.0, 0.1, ""), (0.0, 0.1, CANCELLED), (0.0, 5.0, TIMED_OUT), (0.0, 0.1, "UNKNOWN"), (0, 1, WRONG))
    figures = cancel_figures([during], [window((0.0, 0.1, ""), (0.1, 0.1, WRONG), (0.2, 5.0, TIMED_OUT))])
    assert (figures.calls, figures.cancelled, figures.right, figures.wrong, figures.hung) == (5, 1, 1, 1, 1)
    assert figures.failed == {"UNKNOWN": 1}
    assert (figures.after, figures.after_wrong, figures.after_failed) == (3, 1, 1)


@pytest.fixture
def figures() -> list[ServerFigures]:
    loads = [load_figures([window((0.0, 0.1, ""))], callers=4), load_figures([window()], offered=100.0)]
    rows = []
    for name in ("ours", "the|irs"):
        over, cancels = overload_figures([overload()]), cancel_figures([window()], [])
        rows.append(ServerFigures(name, "1", 2**20, loads, over, cancels))
    return rows


def test_tables_in_markdown(figures: list[ServerFigures], capsys: pytest.CaptureFixture[str]) -> None:
    assert isnan(figures[0].loads[1].latency_milliseconds["p99"])
    titles = {"load": "loads", "overload": "too much", "cancels": "cancelled"}
    for (title, _, rows), headings in zip(tables(figures, titles), (LOADS, OVERLOADS, CANCELS), strict=True):
        assert title in titles.values()
        assert rows[0] == headings
        assert {len(row) for row in rows} == {len(headings)}
    show(figures, titles, {"cores": "2"})
    printed = capsys.readouterr().out
    assert "| 4 callers | ours | 0 | 100.0 |" in printed
    assert "the\\|irs" in printed
    assert printed.endswith("cores 2\n")


def test_a_plot_is_a_picture(figures: list[ServerFigures], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the train extra")
    plot(tmp_path / "plot.png", figures, "title")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_not_installed_is_named_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert "glyphline" in installed(sys.executable)
    assert choose(["litserve", "glyphline", "glyphline"], {"glyphline": "1", "litserve": "2"}) == ["glyphline"]
    said = capsys.readouterr().err
    assert "left out: LitServe: no aiohttp: pip install" in said
    with pytest.raises(ServerError, match="does not start"):
        installed("/no/such/python")


def test_all_servers_are_compared_if_nothing_is_said() -> None:
    assert parse([]).servers == list(KINDS)
    for wrong in (["--cancel-share", "1"], ["--seconds", "0"], ["--rounds", "0"]):
        with pytest.raises(SystemExit):
            parse(wrong)


class NeverWell:
    def ask(self, timeout: float) -> str:
        time.sleep(0)
        return "not well"

    def close(self) -> None:
        """Has nothing to close."""


def test_health_is_asked_at_least_once() -> None:
    with HealthWatch(NeverWell()) as health:
        pass
    assert health.failures
    assert not health.latencies


@pytest.mark.slow
def test_one_run_with_glyphline_alone(repository_root: Path, tmp_path: Path) -> None:
    command = [sys.executable, "benchmarks/servers.py", "--servers", "glyphline", "--workers", "1", "--images", "8"]
    command += ["--callers", "1", "4", "--load", "0.3", "--seconds", "0.3", "--rounds", "1", "--json"]
    # Nothing may depend on how fast the machine is.
    command += ["--deadline", "20", "--patience", "60"]
    done = subprocess.run(
        command, cwd=repository_root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    (row,) = report["servers"]
    assert row["server"] == "Glyphline"
    assert [load["callers"] for load in row["loads"]] == [1, 4, None]
    for load in row["loads"]:
        assert load["calls"] > 0
        assert load["failed"] == {}
        assert load["wrong"] == 0
    assert row["overload"]["goodput"] > 0
    assert row["overload"]["failed"] == 0
    assert row["cancels"]["wrong"] == row["cancels"]["hung"] == row["cancels"]["after_failed"] == 0
    assert row["cancels"]["failed"] == {}
