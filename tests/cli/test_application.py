import subprocess
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from glyphline.cli import app
from glyphline.cli.exit_codes import MEANINGS, ExitCode

COMMANDS = ["evaluate", "export", "models", "recognize", "serve", "train", "transcribe"]
HEAVY = ["PIL", "grpc", "numpy", "onnxruntime", "prometheus_client", "pydantic", "rapidfuzz", "rich", "torch"]


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"glyphline {version('glyphline')}\n"


def test_help_lists_commands_and_exit_codes() -> None:
    text = CliRunner().invoke(app, ["--help"]).stdout
    for command in COMMANDS:
        assert f"  {command} " in text
    assert "..." not in text.partition("Commands:")[2]
    for code, meaning in MEANINGS.items():
        assert f"{code.value}  {meaning}" in text
    assert set(MEANINGS) == set(ExitCode)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_teaches_with_examples(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"glyphline {command}" in result.stdout.partition("Examples:")[2]
    assert "<list[" not in result.stdout
    assert "<str>" not in result.stdout
    assert "{" not in result.stdout.partition("\n")[0]


def test_help_loads_nothing_heavy() -> None:
    program = f"import sys, glyphline.cli; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("arguments", [["nonsense"], ["recognize"], ["transcribe", "x"], ["recognize", "--nonsense"]])
def test_wrong_usage(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == ExitCode.USAGE
    assert "Usage: " in result.stderr


def test_no_arguments_show_the_help() -> None:
    result = CliRunner().invoke(app, [])
    assert "Exit codes:" in result.output
