import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from glyphline.cli import app
from glyphline.cli.exit_codes import CommandError, ExitCode
from glyphline.cli.training_room import training_room


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["train", "missing.toml"], "missing.toml: no such file"),
        (["export", "missing", "--output", "out", "--name", "digits"], "missing: no such folder"),
        (["export", ".", "--output", "out", "--name", "digits", "--head", "two"], "attention"),
    ],
)
def test_mistakes_are_explained(arguments: list[str], reason: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == ExitCode.USAGE
    assert reason in result.stderr


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.toml").touch()
    train = ["train", str(tmp_path / "config.toml")]
    export = ["export", str(tmp_path), "--output", "models", "--name", "digits"]
    for arguments in (train, export):
        program = "import sys\nsys.modules['torch'] = None\nfrom glyphline.cli import main\nmain()"
        done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == ExitCode.USAGE, done.stderr
        assert "pip install 'glyphline[train]' (from a clone: pip install -e '.[train]')" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_missing_module_of_ours_is_a_fault() -> None:
    with pytest.raises(ModuleNotFoundError), training_room():
        raise ModuleNotFoundError(name="glyphline.training.nowhere")
    with pytest.raises(CommandError, match="somewhere"), training_room():
        raise ModuleNotFoundError(name="somewhere")
