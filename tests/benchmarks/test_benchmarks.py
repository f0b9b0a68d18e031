"""The benchmarks run to their end and report every figure; what the figures are is no matter of a test."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnxruntime", reason="needs the cpu extra")


def run(root: Path, script: str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, f"benchmarks/{script}", *arguments, "--json"],
        cwd=root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_the_recogniser_is_measured_for_every_batch_and_decoder(repository_root: Path) -> None:
    report = run(repository_root, "recognize.py", "--images", "6", "--rounds", "2", "--batch", "1", "4")
    assert report["machine"]["onnxruntime"]
    assert report["model"]["name"] == "digits"
    assert [(row["batch"], row["decoder"]) for row in report["figures"]] == [
        (1, "greedy"),
        (1, "beam"),
        (4, "greedy"),
        (4, "beam"),
    ]
    for row in report["figures"]:
        assert row["ratio_low"] <= row["ratio"] <= row["ratio_high"]
        assert row["images_per_cpu_second"] > 0
        assert row["bare_images_per_cpu_second"] > 0
        assert sum(row["shares"].values()) == pytest.approx(1)


@pytest.mark.slow
def test_a_server_is_measured_beside_bare_sessions(repository_root: Path) -> None:
    arguments = ["--images", "8", "--workers", "1", "--concurrency", "1", "4", "--seconds", "0.3", "--rounds", "1"]
    report = run(repository_root, "serve.py", *arguments)
    assert [row["load"] for row in report["figures"]] == ["1 caller", "4 callers"]
    for row in report["figures"]:
        assert row["calls"] > 0
        assert row["errors"] == {}
        assert row["different"] == 0
        assert row["left_ratio"] >= row["throughput_ratio"] > 0
        assert row["bound_ratio"] > 0
        assert set(row["latency_milliseconds"]) == {"p50", "p95", "p99"}


@pytest.mark.slow
def test_calls_of_several_images_are_measured(repository_root: Path) -> None:
    arguments = ["--images", "8", "--workers", "1", "--concurrency", "2", "--seconds", "0.3", "--rounds", "1"]
    report = run(repository_root, "serve.py", *arguments, "--images-per-call", "3")
    (row,) = report["figures"]
    assert row["calls"] > 0
    assert row["calls"] % 3 == 0
    assert (row["errors"], row["different"]) == ({}, 0)


@pytest.mark.slow
def test_a_server_is_measured_under_random_arrivals(repository_root: Path) -> None:
    arguments = ["--images", "8", "--workers", "1", "--rate", "20", "--seconds", "0.5", "--rounds", "1"]
    report = run(repository_root, "serve.py", *arguments, "--decoder", "beam")
    (row,) = report["figures"]
    assert row["load"] == "20 images/s"
    assert row["calls"] == 10
    assert row["throughput_ratio"] is None


def test_an_unreadable_folder_is_said(repository_root: Path, tmp_path: Path) -> None:
    (tmp_path / "not.png").write_bytes(b"nothing")
    command = [sys.executable, "benchmarks/recognize.py", "--data", str(tmp_path)]
    done = subprocess.run(command, cwd=repository_root, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"no readable image in {tmp_path}" in done.stderr


def test_every_search_is_measured_against_the_plain_beam(repository_root: Path) -> None:
    small = [
        "--count",
        "300",
        "--images",
        "5",
        "--rounds",
        "1",
        "--order",
        "3",
        "--beam-width",
        "3",
        "--batch",
        "1",
        "2",
    ]
    report = run(repository_root, "decode.py", *small)
    assert report["machine"]["numpy"]
    names = [row["search"] for row in report["figures"]]
    assert (names[0], names[1], names[3]) == ("beam", "lexicon of 300 words", "both")
    assert report["figures"][0]["ratio"] == 1.0
    assert all(0.0 <= row["exact"] <= 1.0 and row["milliseconds"] > 0.0 for row in report["figures"])
    assert [(row["beam_width"], row["batch"]) for row in report["steps"]] == [(1, 1), (1, 2), (3, 1), (3, 2)]
    for row in report["steps"]:
        assert min(row["encoder_milliseconds"], row["loop_milliseconds"], row["fused_milliseconds"]) > 0
        assert row["ratio"] > 0
        assert row["whole_ratio"] > 0


@pytest.mark.slow
def test_providers_are_measured_beside_each_other(repository_root: Path) -> None:
    report = run(repository_root, "providers.py", "--images", "6", "--rounds", "1", "--batch", "1", "4")
    rows = report["figures"]
    assert [(row["provider"], row["batch"]) for row in rows if not row["provider"].startswith("OpenVINO")] == [
        ("CPUExecutionProvider", 1),
        ("CPUExecutionProvider int8", 1),
        ("CPUExecutionProvider", 4),
        ("CPUExecutionProvider int8", 4),
    ]
    for row in rows:
        assert row["images_per_cpu_second"] > 0
        assert row["same_text"] >= 0.8
        assert row["probability"] is not None and (row["probability"] < 0.5 or row["provider"].endswith("int8"))
    assert all(
        row["ratio"] == 1 and row["confidence"] == 0 for row in rows if row["provider"] == "CPUExecutionProvider"
    )
