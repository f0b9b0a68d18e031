import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import onnxruntime
import pytest
from typer.testing import CliRunner

from glyphline.cli import app, serve
from glyphline.cli.exit_codes import CommandError, ExitCode
from glyphline.service.settings import ServerSettings

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def help_text() -> str:
    """The help with every option on one line."""
    text = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "120"}).stdout
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("name", ServerSettings.model_fields)
def test_every_setting_is_an_option_with_its_default(help_text: str, name: str) -> None:
    option = f"--{serve._SINGULAR.get(name, name).replace('_', '-')}"
    assert option in help_text
    default = ServerSettings.model_fields[name].default
    shown = help_text.partition(f"{option} ")[2].partition("[default: ")[2].partition("]")[0]
    number = re.sub(r",|( MiB)", lambda match: " * 1048576" if match[1] else "", shown)
    if type(default) in (int, float):
        factors = [float(factor) for factor in number.split(" * ")]
        assert factors[0] * (factors[1] if len(factors) > 1 else 1) == default
    elif isinstance(default, str):
        assert shown == default


def test_options_become_settings() -> None:
    settings = serve._settings(
        {"port": 0, "device": "cuda", "models": "digits,other:2", "log_format": serve.LogFormat.JSON}
    )
    assert settings == ServerSettings(port=0, device="cuda", models=["digits", "other:2"], log_format="json")


def test_the_command_line_counts_more_than_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLYPHLINE_PORT", "1234")
    monkeypatch.setenv("GLYPHLINE_MAX_BATCH", "7")
    settings = serve._settings({"port": 99})
    assert (settings.port, settings.max_batch) == (99, 7)


def test_mistakes_are_named_where_they_were_made(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError, match=r"--port: .*not 99999"):
        serve._settings({"port": 99_999})
    with pytest.raises(CommandError, match=r"^--max-request-images 99 is more than --max-queue 9: "):
        serve._settings({"max_request_images": 99, "max_queue": 9})
    assert serve._settings({"max_queue": 9}).request_images == 9
    with pytest.raises(CommandError, match=r"^--port and --metrics-port are both 9090: give each its own$"):
        serve._settings({"port": 9090})
    assert serve._settings({"port": 0, "metrics_port": 0}).metrics_port == 0
    with pytest.raises(CommandError, match=r"^--host: .*at least 1 character, not ''$"):
        serve._settings({"host": ""})
    with pytest.raises(CommandError, match=r"^--lexicon: 'words.txt' should be name=file$"):
        serve._settings({"lexicons": ["words.txt"]})
    monkeypatch.setenv("GLYPHLINE_MAX_QUEUE", "many")
    with pytest.raises(CommandError, match=r"GLYPHLINE_MAX_QUEUE: .*not 'many'"):
        serve._settings({})


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["--port", "99999"], ExitCode.USAGE, "not 99999"),
        (["--port", "abc"], ExitCode.USAGE, "--port"),
        (["--device", "cuda:0,0"], ExitCode.USAGE, "--device: device 'cuda:0,0' names a GPU twice"),
        (["--models", "nonsense"], ExitCode.MODEL, "there is digits"),
        (["--models", "digits:first"], ExitCode.USAGE, "digits:1"),
        (["--model-repository", "nowhere"], ExitCode.USAGE, "nowhere: no such folder"),
        (["--model-repository", "."], ExitCode.USAGE, "no model here"),
        (["--tls-certificate", "no.pem", "--tls-key", "no.key"], ExitCode.USAGE, "no.pem: No such file"),
        (["--models", "handwriting", "--workers", "1", "--precision", "int8"], ExitCode.MODEL, "int8"),
        pytest.param(
            ["--models", "digits-ctc", "--workers", "1", "--device", "cuda"],
            ExitCode.MODEL,
            "cuda",
            marks=pytest.mark.skipif(
                "CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="the device is there"
            ),
        ),
    ],
)
def test_what_cannot_be_served_is_refused(
    glyphline: Command, tmp_path: Path, *, arguments: list[str], code: ExitCode, reason: str
) -> None:
    done = glyphline("serve", "--port", "0", "--metrics-port", "0", *arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
