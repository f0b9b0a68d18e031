import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnxruntime
import pytest
from PIL import Image
from rich.console import Console

from glyphline.cli.exit_codes import ExitCode
from glyphline.cli.tables import print_readings
from glyphline.models.decoding import Alternative, Reading
from glyphline.models.recognizer import load_recognizer
from glyphline.service.jobs import Row, RowError

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def texts(strips: list[tuple[Path, str]]) -> dict[str, str]:
    """What the default model reads, without the command line."""
    readings = load_recognizer().recognize([path.read_bytes() for path, _ in strips])
    return {
        str(path): reading.text
        for (path, _), reading in zip(strips, readings, strict=True)
        if isinstance(reading, Reading)
    }


def test_plain_lines_where_there_is_no_terminal(glyphline: Command, texts: dict[str, str]) -> None:
    done = glyphline("recognize", *texts)
    assert done.returncode == ExitCode.OK, done.stderr
    assert done.stdout == "".join(f"{path}\t{text}\n" for path, text in texts.items())
    assert done.stderr == ""


def test_json_has_one_object_a_line(shipped_version: int, invoke: Command, texts: dict[str, str]) -> None:
    done = invoke("recognize", "--json", *texts)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["source"]: row["text"] for row in rows} == texts
    for row in rows:
        assert 0 <= row["confidence"] <= 1
        assert (row["error"], row["truncated"], row["model"], row["version"]) == (
            None,
            False,
            "digits",
            shipped_version,
        )
        assert "tokens" not in row
        assert "alternatives" not in row


def test_alternatives_and_tokens(invoke: Command, texts: dict[str, str]) -> None:
    path = next(iter(texts))
    row = json.loads(invoke("recognize", path, "--json", "--alternatives", "3", "--tokens").stdout)
    assert 1 <= len(row["alternatives"]) <= 3
    assert row["alternatives"][0]["text"] == row["text"]
    assert "".join(token["text"] for token in row["tokens"]) == row["text"]
    plain = invoke("recognize", path, "-n", "3").stdout.rstrip("\n").split("\t")
    assert plain == [path, *(each["text"] for each in row["alternatives"])]


def test_beam_of_one_reads_as_greedy(invoke: Command, texts: dict[str, str]) -> None:
    greedy = invoke("recognize", *texts, "--decoder", "greedy").stdout
    assert invoke("recognize", *texts, "--beam-width", "1").stdout == greedy


def test_only_allowed_characters_are_read(invoke: Command, texts: dict[str, str]) -> None:
    done = invoke("recognize", *texts, "--allowed", "01", "--json")
    assert done.returncode == 0, done.stderr
    assert set("".join(json.loads(line)["text"] for line in done.stdout.splitlines())) <= {"0", "1"}


def test_standard_input(glyphline: Command, texts: dict[str, str]) -> None:
    path, text = next(iter(texts.items()))
    done = glyphline("recognize", "-", stdin=Path(path).read_bytes())
    assert (done.returncode, done.stdout) == (0, f"-\t{text}\n")
    twice = glyphline("recognize", "-", "-", stdin=Path(path).read_bytes())
    assert twice.returncode == ExitCode.USAGE
    assert "once" in twice.stderr
    empty = glyphline("recognize", "-", "--json", stdin=b"")
    assert empty.returncode == ExitCode.IMAGES
    assert json.loads(empty.stdout)["error"]["code"] == "empty_image"


def test_a_bad_picture_harms_no_other(
    glyphline: Command, texts: dict[str, str], text_file: Path, tmp_path: Path
) -> None:
    path, text = next(iter(texts.items()))
    missing, folder = tmp_path / "missing.png", tmp_path
    done = glyphline("recognize", missing, path, text_file, folder, path)
    assert done.returncode == ExitCode.IMAGES
    assert done.stdout == f"{path}\t{text}\n" * 2
    for name, reason in ((missing, "No such file"), (text_file, ""), (folder, "is a folder")):
        assert f"glyphline recognize: {name}: {reason}" in done.stderr
    assert "Traceback" not in done.stderr
    rows = [json.loads(line) for line in glyphline("recognize", missing, path, text_file, "--json").stdout.splitlines()]
    assert [row["error"] and row["error"]["code"] for row in rows] == ["file_not_found", None, "undecodable_image"]


def test_a_file_above_the_limits(invoke: Command, texts: dict[str, str]) -> None:
    path = next(iter(texts))
    for option in ("--max-bytes", "--max-pixels"):
        done = invoke("recognize", path, option, "100", "--json")
        assert done.returncode == ExitCode.IMAGES
        error = json.loads(done.stdout)["error"]
        assert error["code"] == "image_too_large"
        assert "100" in error["message"]


def test_file_names_in_any_script(glyphline: Command, texts: dict[str, str], tmp_path: Path) -> None:
    path, text = next(iter(texts.items()))
    names = ["чек 12.png", "小切手🧾.png", os.fsdecode(b"latin\xe9.png")]
    for name in names:
        shutil.copyfile(path, tmp_path / name)
    done = glyphline("recognize", *names, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["source"] for row in rows] == [*names[:2], "latin\\xe9.png"]
    assert {row["text"] for row in rows} == {text}
    assert glyphline("recognize", names[2], cwd=tmp_path).stdout == f"latin\\xe9.png\t{text}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="names of files have no such characters")
def test_what_would_end_a_cell_is_escaped(invoke: Command, texts: dict[str, str], tmp_path: Path) -> None:
    path, text = next(iter(texts.items()))
    shutil.copyfile(path, tmp_path / "a\tb\n.png")
    done = invoke("recognize", "a\tb\n.png", "c\nd.png", cwd=tmp_path)
    assert done.stdout == f"a%09b%0A.png\t{text}\n"
    assert done.stderr == "glyphline recognize: c%0Ad.png: No such file or directory\n"


def test_show_draws_beside_the_picture(invoke: Command, texts: dict[str, str], tmp_path: Path) -> None:
    path, text = next(iter(texts.items()))
    copy = tmp_path / "strip.img"
    shutil.copyfile(path, copy)
    done = invoke("recognize", copy, "--show", "--json")
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    assert row["text"] == text
    assert "tokens" not in row
    with Image.open(tmp_path / "strip.reading.png") as drawing:
        assert drawing.height > 150
    assert f"drew {tmp_path / 'strip.reading.png'}" in done.stderr


def test_show_output_collects_drawings(invoke: Command, texts: dict[str, str], text_file: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "x", tmp_path / "y"]
    for folder in folders:
        folder.mkdir()
        shutil.copyfile(next(iter(texts)), folder / "a.png")
    pictures = [folder / "a.png" for folder in folders]
    done = invoke("recognize", *pictures, text_file, "--show-output", tmp_path / "new" / "out")
    assert done.returncode == ExitCode.IMAGES
    assert sorted(os.listdir(tmp_path / "new" / "out")) == ["a.png.reading.png", "a.reading.png"]


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["--model", "nonsense"], ExitCode.MODEL, "digits"),
        (["--model-version", "99"], ExitCode.MODEL, "99"),
        (["--model-version", "stable"], ExitCode.USAGE, "labels belong to a server's repository"),
        (["--model", "./nowhere"], ExitCode.USAGE, "no such folder"),
        (["--model-repository", "nowhere"], ExitCode.USAGE, "no such folder"),
        (["--decoder", "magic"], ExitCode.USAGE, "'--decoder': 'magic' is not one of"),
        (["--decoder", "greedy", "--beam-width", "3"], ExitCode.USAGE, "--decoder beam"),
        (["--beam-width", "0"], ExitCode.USAGE, "--beam-width"),
        (["--device", "tpu"], ExitCode.USAGE, "unknown device 'tpu'"),
        (["--device", "cuda:0,1"], ExitCode.USAGE, "'cuda:0,1' is several"),
        (["--provider", "tensorrt"], ExitCode.MODEL, "runs on a GPU only"),
        (
            ["--beam-width", "3", "--alternatives", "4"],
            ExitCode.USAGE,
            "recognize: --alternatives: 4 is more than the beam width of 3",
        ),
        (["--alternatives", "100000"], ExitCode.USAGE, "recognize: --alternatives: must be from 1 to 256, not 100000"),
        (["--beam-width", "1000"], ExitCode.USAGE, "recognize: --beam-width: must be from 1 to 256, not 1000"),
        (["--allowed", ""], ExitCode.USAGE, "recognize: --allowed: must hold at least one"),
        (["--allowed", "€"], ExitCode.USAGE, "recognize: --allowed: nothing is left to read"),
        (["--tokens"], ExitCode.USAGE, "--tokens needs --json"),
        (["--tokens", "--show"], ExitCode.USAGE, "--tokens needs --json"),
        (["--server", "localhost:1", "--device", "cpu"], ExitCode.USAGE, "--device is for reading here"),
        (["--server", "localhost:1", "--allow-cpu-fallback"], ExitCode.USAGE, "--allow-cpu-fallback is for"),
        (["--server", "localhost:1", "--model-repository", "x"], ExitCode.USAGE, "--model-repository is for"),
        (["--timeout", "3"], ExitCode.USAGE, "--timeout is for --server"),
        (["--server", "localhost:1", "--timeout", "0"], ExitCode.USAGE, "--timeout 0: "),
        (["--server", "localhost:1", "--timeout", "-1"], ExitCode.USAGE, "--timeout -1: "),
        (["--server", "localhost:1", "--timeout", "nan"], ExitCode.USAGE, "--timeout nan: "),
        (["--server", "localhost:1", "--timeout", "inf"], ExitCode.USAGE, "--timeout inf: "),
    ],
)
def test_mistakes_are_explained(
    invoke: Command, texts: dict[str, str], arguments: list[str], code: ExitCode, reason: str
) -> None:
    done = invoke("recognize", next(iter(texts)), *arguments)
    assert done.returncode == code, done.stderr
    assert reason in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_a_device_that_is_not_there(invoke: Command, texts: dict[str, str], tmp_path: Path) -> None:
    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("the device is there")
    path, text = next(iter(texts.items()))
    for command in (["recognize", path], ["transcribe", path, "-o", "-", "--workers", "1"]):
        done = invoke(*command, "--device", "cuda")
        assert done.returncode == ExitCode.MODEL, done.stderr
        assert "device 'cuda' is not available" in done.stderr
        assert "pip install 'glyphline[gpu]'" in done.stderr
        assert done.stderr.endswith("or choose device 'cpu', or pass --allow-cpu-fallback\n")
        assert "Traceback" not in done.stderr
    done = invoke("recognize", path, "--device", "cuda", "--allow-cpu-fallback")
    assert (done.returncode, done.stdout) == (0, f"{path}\t{text}\n")


def test_a_bundle_may_be_given_as_a_folder(invoke: Command, texts: dict[str, str]) -> None:
    described = json.loads(invoke("models", "digits", "--json").stdout)
    path, text = next(iter(texts.items()))
    for folder in (Path(described["path"]), Path(described["path"]).parent):
        assert invoke("recognize", path, "--model", folder).stdout == f"{path}\t{text}\n"


def test_reading_here_loads_neither_grpc_nor_torch(texts: dict[str, str]) -> None:
    program = (
        "import sys\nfrom typer.testing import CliRunner\nfrom glyphline.cli import app\n"
        f"result = CliRunner().invoke(app, ['recognize', {next(iter(texts))!r}])\n"
        "print(result.exit_code, [name for name in ('grpc', 'torch', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "0 []\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_what_is_not_a_regular_file_is_refused(invoke: Command, texts: dict[str, str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.png")
    path, text = next(iter(texts.items()))
    done = invoke("recognize", tmp_path / "fifo.png", os.devnull, path)
    assert (done.returncode, done.stdout) == (ExitCode.IMAGES, f"{path}\t{text}\n")
    for name in (tmp_path / "fifo.png", os.devnull):
        assert f"{name}: is not a regular file" in done.stderr


def run_unread(environment: dict[str, str], *arguments: str) -> tuple[int, bytes]:
    """Runs the command with a standard output that nobody reads; returns its code and what it says otherwise."""
    ours, theirs = os.pipe()
    os.close(ours)
    with os.fdopen(theirs, "wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "glyphline", *arguments],
            stdout=output,
            stderr=subprocess.PIPE,
            env=environment,
            check=False,
        )
    return done.returncode, done.stderr


@pytest.mark.parametrize("json_lines", [[], ["--json"]])
def test_a_reader_that_goes_away_ends_the_command_quietly(
    texts: dict[str, str], environment: dict[str, str], json_lines: list[str]
) -> None:
    assert run_unread(environment, "recognize", *texts, *json_lines) == (ExitCode.PIPE_CLOSED, b"")


@pytest.mark.parametrize("arguments", [["models"], ["models", "digits"], ["--help"], ["models", "--help"]])
def test_so_do_commands_that_print_at_the_end(environment: dict[str, str], arguments: list[str]) -> None:
    assert run_unread(environment, *arguments) == (ExitCode.PIPE_CLOSED, b"")


def test_table() -> None:
    readings = [
        Row(
            "[bold]a.png",
            Reading("12[red]", 0.987, (Alternative("12[red]", 0.987, 0.0), Alternative("72", 0.1, -3.0))),
            "d",
            1,
        ),
        Row("blank.png", Reading("", 1.0, (Alternative("", 1.0, 0.0),)), "d", 1),
        Row("long.png", Reading("999", 0.5, (Alternative("999", 0.5, 0.0),), truncated=True), "d", 1),
        Row("bad.png", RowError("undecodable_image", "not an image"), "d", 1),
    ]
    stream = io.StringIO()
    assert print_readings(readings, alternatives=True, console=Console(file=stream, width=100)) == 1
    table = stream.getvalue()
    for part in ("[bold]a.png", "12[red]", "98.7%", "72", "(blank)", "999 … cut short", "not an image"):
        assert part in table


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_a_terminal_gets_a_table(texts: dict[str, str], environment: dict[str, str]) -> None:
    path, text = next(iter(texts.items()))
    ours, theirs = os.openpty()
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        process = subprocess.Popen(
            [sys.executable, "-m", "glyphline", "recognize", path], stdout=theirs, env=environment
        )
        os.close(theirs)
        shown = b""
        try:
            while part := terminal.read(4096):
                shown += part
        except OSError:  # how Linux ends a terminal whose other side is closed
            pass
        assert process.wait() == 0
    assert "Confidence" in shown.decode()
    assert text in shown.decode()
