"""The unit: systemd takes it, it is locked down, and it waits for the server's own end."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from glyphline.service.settings import ServerSettings, unknown_variables

FOLDER = Path(__file__).parents[2] / "deploy" / "systemd"
MARGIN_SECONDS = 10  # as docs/serving.md promises
WORST_EXPOSURE = 25  # in tenths of what `systemd-analyze security` counts to 10


class Unit(configparser.ConfigParser):
    def optionxform(self, optionstr: str) -> str:
        return optionstr


@pytest.fixture(scope="module")
def service() -> configparser.SectionProxy:
    unit = Unit(interpolation=None)
    unit.read(FOLDER / "glyphline.service")
    return unit["Service"]


@pytest.fixture(scope="module")
def variables() -> dict[str, str]:
    """The variables of the environment file, those that are commented out too."""
    text = (FOLDER / "glyphline.env").read_text(encoding="utf-8")
    return dict(re.findall(r"^#?(\w+)=(.*)$", text, re.MULTILINE))


@pytest.fixture
def analyze(tmp_path: Path) -> tuple[str, Path]:
    """The tool, and the unit with a program that is there."""
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("systemd-analyze is missing (Debian's package systemd)")
    program = tmp_path / "glyphline"
    program.write_text("#!/bin/sh\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    unit = tmp_path / "glyphline.service"
    text = (FOLDER / "glyphline.service").read_text(encoding="utf-8")
    unit.write_text(text.replace("/opt/glyphline/bin/glyphline", str(program)), encoding="utf-8")
    return tool, unit


def run(tool: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "cat"}
    return subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True, check=False, env=environment)


def test_systemd_takes_it(analyze: tuple[str, Path]) -> None:
    tool, unit = analyze
    done = run(tool, "verify", "--man=no", unit)
    ours = [line for line in done.stderr.splitlines() if "glyphline" in line]
    assert (done.returncode, ours) == (0, []), done.stderr


def test_little_is_left_to_whoever_breaks_in(analyze: tuple[str, Path]) -> None:
    tool, unit = analyze
    done = run(tool, "security", "--offline=true", f"--threshold={WORST_EXPOSURE}", unit)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_is_killed_no_earlier_than_it_ends_by_itself(
    service: configparser.SectionProxy, variables: dict[str, str]
) -> None:
    needed = float(variables["GLYPHLINE_DRAIN_SECONDS"]) + float(variables["GLYPHLINE_GRACE_SECONDS"])
    assert float(service["TimeoutStopSec"]) == needed + MARGIN_SECONDS
    assert service["KillMode"] == "mixed"  # workers end with the server
    assert float(service["TimeoutStartSec"]) > ServerSettings.model_fields["start_seconds"].default
    assert service["Type"] == "notify"


def test_the_environment_file_has_settings_only(service: configparser.SectionProxy, variables: dict[str, str]) -> None:
    assert unknown_variables(variables) == []
    assert service["EnvironmentFile"] == "-/etc/glyphline/glyphline.env"
    given = [line for line in (FOLDER / "glyphline.env").read_text().splitlines() if line.startswith("GLYPHLINE_")]
    settings = {name.removeprefix("GLYPHLINE_").lower(): value for name, value in (each.split("=") for each in given)}
    ServerSettings.model_validate(settings)
