import json
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from PIL import Image

from glyphline.cli.exit_codes import ExitCode

Command = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("torch", "matplotlib", "sklearn")), reason="needs the extra `train`"
)


def test_all_studies_run(invoke: Command, tmp_path: Path) -> None:
    from glyphline.training.studies import find_study, study_names  # noqa: PLC0415

    done = invoke("study", "all", "--quick", "--seeds", "2", "--output", tmp_path, "--json", "--animate")
    assert done.returncode == 0, done.stderr
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    assert tuple(each["name"] for each in printed) == tuple(n for n in study_names() if not find_study(n).needs_data)
    for each in printed:
        name = each["name"]
        assert each["options"] == {"seeds": 2, "quick": True}
        assert each["title"] == find_study(name).title
        assert json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8")) == each
        table = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
        for part in each["tables"]:
            assert part["title"] in table
            assert {len(row) for row in part["rows"]} == {len(part["headings"])}
        with Image.open(tmp_path / f"{name}.png") as picture:
            assert picture.format == "PNG"
    with Image.open(tmp_path / "gate-trace.gif") as film:
        assert getattr(film, "n_frames", 1) == 5


def test_a_table_is_printed_as_markdown(invoke: Command, tmp_path: Path) -> None:
    done = invoke("study", "forget-gate", "--quick", "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "| Bias in each vector | In sum |" in done.stdout
    assert "forget-gate.png is the picture" in done.stderr


def test_the_same_options_give_the_same_figures(invoke: Command, tmp_path: Path) -> None:
    first, again = (
        json.loads(invoke("study", "memory", "--quick", "--output", tmp_path, "--json").stdout)["findings"]
        for _ in range(2)
    )
    assert first == again


def test_an_unknown_study_is_refused(invoke: Command) -> None:
    done = invoke("study", "everything")
    assert done.returncode == 2
    assert "no study 'everything'; there are forget-gate, gradient" in done.stderr


def test_a_study_that_reads_data_says_what_it_wants(invoke: Command, tmp_path: Path) -> None:
    done = invoke("study", "heads", "--quick", "--output", tmp_path)
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert "--data-root" in done.stderr
