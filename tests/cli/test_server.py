import json
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from glyphline.cli.exit_codes import ExitCode
from glyphline.models.bundle import write_manifest
from glyphline.models.recognizer import load_recognizer
from glyphline.models.repository import LABELS_NAME, ModelRepository, pretrained_root

Command = Callable[..., subprocess.CompletedProcess[str]]


@contextmanager
def serving(models: Path, environment: dict[str, str]) -> Iterator[re.Match[str]]:
    """A server that `glyphline serve` started and that must end with 0 when told to: the line that says it is ready."""
    log = models.with_name("log")
    command = [sys.executable, "-m", "glyphline", "serve"]
    with log.open("wb") as messages:
        process = subprocess.Popen(
            [*command, "--port", "0", "--metrics-port", "0", "--workers", "1", "--model-repository", models],
            stdout=subprocess.PIPE,
            stderr=messages,
            env=environment | {"GLYPHLINE_DRAIN_SECONDS": "0"},
            text=True,
        )
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            match = re.fullmatch(r"serving (.+) at (127\.0\.0\.1:\d+); metrics at (http://\S+)\n", line)
            assert match, f"{line!r} {log.read_text()}"
            yield match
            process.send_signal(signal.SIGTERM)
            rest, _ = process.communicate()
            assert process.returncode == ExitCode.OK, log.read_text()
            assert rest == ""
        finally:
            process.kill()


@pytest.fixture(scope="module")
def server(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[re.Match[str]]:
    labelled = tmp_path_factory.mktemp("serve") / "models"
    shutil.copytree(pretrained_root(), labelled, ignore=shutil.ignore_patterns("words", "handwriting"))
    version = ModelRepository([labelled]).latest("digits")
    (labelled / "digits" / LABELS_NAME).write_text(f"stable = {version}\n")
    with serving(labelled, environment) as ready:
        yield ready


def test_the_ready_line_tells_what_where_and_the_metrics(shipped_version: int, server: re.Match[str]) -> None:
    assert f"digits:{shipped_version}" in server[1]
    with urllib.request.urlopen(server[3]) as answer:
        assert b"glyphline_model_ready" in answer.read()


@pytest.mark.parametrize(
    "options", [[], ["--alternatives", "3", "--tokens"], ["--decoder", "greedy"], ["--allowed", "01"]]
)
def test_a_server_reads_as_this_process_does(
    invoke: Command, server: re.Match[str], strips: list[tuple[Path, str]], options: list[str]
) -> None:
    paths = [path for path, _ in strips]
    here = invoke("recognize", *paths, "--json", *options)
    there = invoke("recognize", *paths, "--json", *options, "--server", server[2])
    assert there.returncode == 0, there.stderr
    for ours, theirs in zip(here.stdout.splitlines(), there.stdout.splitlines(), strict=True):
        expected, found = json.loads(ours), json.loads(theirs)
        assert found["text"] == expected["text"]
        assert found["confidence"] == pytest.approx(expected["confidence"], abs=1e-4)
        assert found.keys() == expected.keys()
        assert (found["model"], found["version"]) == (expected["model"], expected["version"])


def test_a_job_that_asks_servers_reads_as_this_process_does(
    glyphline: Command, server: re.Match[str], strips_folder: Path, tmp_path: Path
) -> None:
    here = glyphline("transcribe", strips_folder, "-o", tmp_path / "here.jsonl", "--workers", "1", "-q")
    targets = f"{server[2]},{server[2].replace('127.0.0.1', 'localhost')}"
    there = glyphline("transcribe", strips_folder, "-o", tmp_path / "there.jsonl", "--server", targets, "-q")
    assert (here.returncode, there.returncode) == (0, 0), there.stderr
    ours, theirs = (
        [json.loads(line) for line in (tmp_path / name).read_text(encoding="utf-8").splitlines()]
        for name in ("here.jsonl", "there.jsonl")
    )
    for expected, found in zip(ours, theirs, strict=True):
        assert found.keys() == expected.keys()
        for name in ("id", "text", "model", "version", "sha256", "decoder"):
            assert found[name] == expected[name]
    targets = f"127.0.0.1:1,{server[2]}"
    one = glyphline(
        "transcribe", strips_folder, "-o", tmp_path / "one.jsonl", "--server", targets, "--timeout", "20", "-q"
    )
    assert one.returncode == ExitCode.OK, one.stderr
    assert "127.0.0.1:1 is left out" in one.stderr
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "there.jsonl").read_bytes()
    gone = glyphline("transcribe", strips_folder, "-o", tmp_path / "x", "--server", "127.0.0.1:1", "--timeout", "1")
    assert gone.returncode == ExitCode.SERVER
    assert not (tmp_path / "x").exists()


def test_bad_pictures_have_the_same_codes(
    invoke: Command, server: re.Match[str], strips: list[tuple[Path, str]], tmp_path: Path
) -> None:
    for name, content in (("empty", b""), ("text", b"no picture"), ("cut", strips[0][0].read_bytes()[:60])):
        (tmp_path / name).write_bytes(content)
    names = ["empty", str(strips[0][0]), "text", "missing", "cut"]
    here, there = (
        invoke("recognize", *names, "--json", *where, cwd=tmp_path) for where in ([], ["--server", server[2]])
    )
    assert here.returncode == there.returncode == ExitCode.IMAGES
    codes = [
        [row["error"] and row["error"]["code"] for row in map(json.loads, done.stdout.splitlines())]
        for done in (here, there)
    ]
    assert codes[0] == codes[1] == ["empty_image", None, "undecodable_image", "file_not_found", "undecodable_image"]


@pytest.mark.parametrize(
    ("options", "code", "reason"),
    [
        (["--model", "nonsense"], ExitCode.MODEL, "nonsense"),
        (["--model-version", "99"], ExitCode.MODEL, "99"),
        (["--model-version", "beta"], ExitCode.MODEL, "beta"),
        (["--allowed", "€"], ExitCode.USAGE, "€"),
    ],
)
def test_refusals_are_explained(
    invoke: Command,
    server: re.Match[str],
    strips: list[tuple[Path, str]],
    options: list[str],
    *,
    code: int,
    reason: str,
) -> None:
    done = invoke("recognize", strips[0][0], "--server", server[2], *options)
    assert done.returncode == code, done.stderr
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


def test_a_label_stands_for_a_version(invoke: Command, server: re.Match[str], strips: list[tuple[Path, str]]) -> None:
    done = invoke("recognize", strips[0][0], "--server", server[2], "--model-version", "stable", "--json")
    assert done.returncode == ExitCode.OK, done.stderr
    row = json.loads(done.stdout)
    assert (row["model"], row["version"]) == ("digits", ModelRepository([pretrained_root()]).latest("digits"))


def test_show_works_with_a_server(
    invoke: Command, server: re.Match[str], strips: list[tuple[Path, str]], tmp_path: Path
) -> None:
    done = invoke("recognize", strips[0][0], "--server", server[2], "--show-output", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"{strips[0][0].stem}.reading.png").exists()


def test_servers_with_two_models_of_one_version_are_told_apart(
    invoke: Command, server: re.Match[str], environment: dict[str, str], strips_folder: Path, tmp_path: Path
) -> None:
    models = tmp_path / "models"
    kept = load_recognizer("digits").bundle
    changed = models / "digits" / str(kept.manifest.version)
    shutil.copytree(kept.path, changed)
    write_manifest(changed, kept.manifest.model_copy(update={"task": "other digits"}))
    with serving(models, environment) as other:
        targets = f"{server[2]},{other[2]}"
        done = invoke("transcribe", strips_folder, "-o", tmp_path / "texts.jsonl", "--server", targets)
    assert done.returncode == ExitCode.USAGE
    assert f"{other[2]} has another digits {kept.manifest.version} than {server[2]}" in done.stderr
    assert not (tmp_path / "texts.jsonl").exists()


def test_a_port_that_is_taken(glyphline: Command, server: re.Match[str]) -> None:
    done = glyphline("serve", "--port", server[2].rpartition(":")[2], "--metrics-port", "-1", "--workers", "1")
    assert done.returncode == ExitCode.SERVER
    assert "the port is taken" in done.stderr
    assert "E1" not in done.stderr  # of gRPC
    assert "Traceback" not in done.stderr


def test_a_server_that_is_not_there(invoke: Command, strips: list[tuple[Path, str]]) -> None:
    done = invoke("recognize", strips[0][0], "--server", "127.0.0.1:1", "--timeout", "5")
    assert done.returncode == ExitCode.SERVER
    assert "127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr


def test_words_of_a_file_are_sent(
    invoke: Command, server: re.Match[str], strips: list[tuple[Path, str]], tmp_path: Path
) -> None:
    (tmp_path / "words.txt").write_text("7777\n90\n", encoding="utf-8")
    pictures = [path for path, text in strips if text][:3]
    done = invoke("recognize", *pictures, "--server", server[2], "--lexicon", tmp_path / "words.txt")
    assert done.returncode == ExitCode.OK, done.stderr
    assert {line.split("\t")[1] for line in done.stdout.splitlines()} <= {"7777", "90"}
    (tmp_path / "m.arpa").touch()
    for option, message in (
        (["--lexicon", "streets"], "no lexicon 'streets'"),
        (["--language-model", "letters"], "no language model 'letters'"),
        (["--language-model", tmp_path / "m.arpa"], "a file cannot be sent"),
    ):
        done = invoke("recognize", *pictures, "--server", server[2], *option)
        assert done.returncode in (ExitCode.USAGE, ExitCode.MODEL)
        assert message in done.stderr
