"""What the fuzz targets share: the command line, the folder of inputs, and atheris itself where it is installed."""

from __future__ import annotations

import argparse
import hashlib
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
INSTRUMENTED = ["glyphline", "PIL"]
# Far above what any input of a few kilobytes takes, on a busy machine too.
SLOWEST_INPUT_SECONDS = 20
MOST_MEGABYTES = 2048

Mutator = Callable[[bytes, int, int], bytes]


def _atheris() -> Any:  # noqa: ANN401  # it has no types
    return importlib.import_module("atheris")


@contextmanager
def instrumented() -> Iterator[None]:
    """Has what is imported within tell which of its branches an input took, if atheris is there."""
    try:
        atheris = _atheris()
    except ImportError:  # the tests run the targets without it
        yield
        return
    with atheris.instrument_imports(include=INSTRUMENTED):
        yield


def main(
    name: str,
    check: Callable[[bytes], None],
    seeds: Callable[[], Iterable[bytes]],
    *,
    description: str | None,
    mutate: Mutator | None = None,
) -> int:
    """Runs a target from the command line.

    Args:
        name: Of the target, and of its folder of inputs.
        check: Tries one input, and raises if it finds a fault.
        seeds: Makes inputs to begin with.
        description: Of the target, for `--help`.
        mutate: Makes another input of one: bytes, most bytes, seed.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=300, help="how long to search (default: 300)")
    parser.add_argument("--max-bytes", type=int, default=4096, help="longest input (default: 4096)")
    parser.add_argument("file", nargs="*", type=Path, help="inputs to try once, instead of searching")
    arguments = parser.parse_args()
    if arguments.file:
        for file in arguments.file:
            check(file.read_bytes())
            print(f"{file}: no fault")
        return 0
    try:
        atheris = _atheris()
    except ImportError:
        print("atheris is not installed: pip install atheris", file=sys.stderr)
        return 1
    folder = ROOT / "build" / "fuzz" / name
    folder.mkdir(parents=True, exist_ok=True)
    for content in seeds():
        (folder / f"seed-{hashlib.sha256(content).hexdigest()[:16]}").write_bytes(content)
    options = [
        f"-max_total_time={arguments.seconds}",
        f"-max_len={arguments.max_bytes}",
        f"-timeout={SLOWEST_INPUT_SECONDS}",
        f"-rss_limit_mb={MOST_MEGABYTES}",
        f"-artifact_prefix={folder}/",
        "-print_final_stats=1",
        str(folder),
    ]
    custom = {} if mutate is None else {"custom_mutator": mutate}
    atheris.Setup([sys.argv[0], *options], check, **custom)
    atheris.Fuzz()  # does not return: it ends the process with the exit code of libFuzzer
    return 0
