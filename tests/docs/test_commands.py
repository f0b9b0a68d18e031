"""What README and documents tell to type works: every command is run, or stands here with the reason why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest
from belongings import lay_out
from console import Step, call_of, plain, program, steps
from newcomer import Newcomer, Serving, serving

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("README.md", "CONTRIBUTING.md", "docs/*.md", "examples/**/README.md")
    for path in ROOT.glob(pattern)
    if "node_modules" not in path.parts
)

PROGRAMS_NOT_RUN = {
    "apt-get": "changes the machine",
    "docker": "needs a container engine; tests/deploy tests what it would be given",
    "examples/clients/read.sh": "needs buf; tests/examples runs it where there is one",
    "node": "needs what npm installs; tests/examples runs it where there is node",
    "npm": "installs packages from a registry",
    "make": "makes .venv and downloads into it; .ci/run does that for every change",
    "pip": "installs distributions from a registry",
    "peers/bin/python": "an environment with other recognisers; tests/benchmarks runs the same with what is here",
    "promtool": "comes with Prometheus; tests/deploy/test_prometheus_rules.py runs it",
    "python3": "makes an environment, mostly to install into; .ci/run makes one",
    "sudo": "changes the machine; tests/deploy tests what is installed",
    "torchrun": "two processes of torch; tests/training/loop/test_distributed.py trains so",
}
"""Programs that no command is run of."""

_BENCHMARK = "measures for minutes; tests/benchmarks runs it for seconds"
_DATA = "reads data sets that are not ours to give away"
_HOURS = "trains for hours; tests/training/test_config.py reads the configuration"
_FETCHES = "downloads; tests/scripts tests what is done with it"
_PLAYGROUND = "stays until it is stopped; tests/service/playground uses it in a browser"
NOT_RUN = {
    "glyphline evaluate mnist-1-8 mnist-9-16 mnist-17-32 registers meters blank --model digits --data-root DATA": _DATA,
    "glyphline evaluate iiit5k svt receipts receipt-numbers print --model words --data-root DATA": _DATA,
    "glyphline evaluate german-words english-words letters french-lines wills --model handwriting --data-root DATA": (
        _DATA
    ),
    "glyphline evaluate mnist-1-8 meters --model models/mine/1 --data-root data --report report --record": _DATA,
    "glyphline evaluate mnist-1-8 meters --model models/mine/1 --data-root data --report report": _DATA,
    "glyphline evaluate meters --model models/mine/1 --data-root data --precision int8": _DATA,
    "python benchmarks/recognize.py": _BENCHMARK,
    "python benchmarks/serve.py": _BENCHMARK,
    "python benchmarks/serve.py --workers 1 --concurrency 64": _BENCHMARK,
    "python benchmarks/serve.py --workers 2 --concurrency 1 64": _BENCHMARK,
    "python benchmarks/serve.py --workers 2 --concurrency 8 --images-per-call 8": _BENCHMARK,
    "python benchmarks/serve.py --workers 2 --concurrency 64 --bare runs": _BENCHMARK,
    "python benchmarks/servers.py --peer-python peers/bin/python --plot servers.png": _BENCHMARK,
    "python benchmarks/servers.py --peer-python peers/bin/python --servers glyphline mlserver --rounds 1 --seconds 3": (
        _BENCHMARK
    ),
    "python benchmarks/rolling_restart.py --rounds 5 --rate 40 --kill": _BENCHMARK,
    "glyphline playground --open": _PLAYGROUND,
    "glyphline playground --server localhost:50051": _PLAYGROUND,
    "glyphline playground --server host:50051 --tls-ca ca.pem --token-file counter.token": _PLAYGROUND,
    "python benchmarks/soak.py --plot soak.png": _BENCHMARK,
    "glyphline study all --output studies/": "tests/cli/test_study.py runs just this, quickly",
    "glyphline study gate-trace --animate": "draws a film; tests/cli/test_study.py draws it",
    "python benchmarks/gpu.py": "needs a GPU; tests/benchmarks/test_gpu.py runs it on the CPU",
    "glyphline serve --device cuda": "needs a GPU",
    "glyphline train training/glyphline/training/configs/digits-first.toml --data-root data "
    "--output runs/digits-first": _HOURS,
    "glyphline train training/glyphline/training/configs/digits-second.toml --data-root data "
    "--output runs/digits-second --start-from runs/digits-first": _HOURS,
    "glyphline train training/glyphline/training/configs/digits-third.toml --data-root data "
    "--output runs/digits-third --start-from runs/digits-second": _HOURS,
    "glyphline train training/glyphline/training/configs/digits.toml --data-root data --output runs/digits "
    "--start-from runs/digits-third": _HOURS,
    "python deploy/rehearse.py --server localhost:50051": (
        "reads a thousand strips, as tests/deploy/test_rehearsal.py does"
    ),
    "python scripts/fetch_fonts.py --output data/fonts": _FETCHES,
    "python scripts/fetch_words.py --output data/words": _FETCHES,
    "python -c \"from torchvision.datasets import MNIST; MNIST('data/mnist', download=True)\"": _FETCHES,
    "glyphline data render data/drawn --config mine.toml --data-root data --count 500000 --to webdataset": (
        "draws half a million strips; tests/cli/data/test_render.py draws some"
    ),
    "glyphline data render data/printed --fonts data/fonts/printed --words words.txt --per-strip 3 --count 20000": (
        "draws 20,000 strips with fonts that are downloaded; tests/cli/data/test_render.py draws some"
    ),
    "glyphline data texts words.toml --data-root data/ --count 1600000 --output texts.txt": (
        "draws 1.6 million texts of word lists that are downloaded; tests/cli/data/test_render.py draws some"
    ),
    "glyphline guide models/words/2 words.arpa.gz --data-root data/ --weight 0.15 --length-bonus 0.3": _DATA,
    "glyphline transcribe scans/ --output texts.jsonl --server gpu-1:50051,gpu-2:50051 --tls --token-file job.token": (
        "two machines; tests/service/jobs/engines/test_server.py has two servers"
    ),
    "glyphline transcribe /shared/scans/ --output texts.jsonl --engine ray": (
        "a cluster; tests/service/jobs/engines/test_ray.py has one"
    ),
    "glyphline transcribe s3://bucket/scans/ --output texts.jsonl --engine ray --ray-address head:6379 --workers 64": (
        "a cluster and a bucket"
    ),
}
"""Commands that are not run, and why. One that no document has any more must go from here."""


STOPS = {
    "examples/captioning/README.md": (
        "glyphline export runs/captions --output models --name captions --data-root data",
        "takes as long as all else here; tests/training/test_every_recogniser.py goes on from here",
    )
}
"""Commands from which on a page is not followed, and why."""


def read(page: str) -> list[Step]:
    return steps((ROOT / page).read_text(encoding="utf-8"), page)


def reason_not_to(step: Step) -> str | None:
    """Says why a step is not run; None if it is."""
    if step.page in STOPS and step.line >= STOP_LINES[step.page]:
        return STOPS[step.page][1]
    if step.language == "console" and program(step.text) in PROGRAMS_NOT_RUN:
        return PROGRAMS_NOT_RUN[program(step.text)]
    return NOT_RUN.get(step.name)


STEPS = {page: read(page) for page in PAGES}
STOP_LINES = {
    page: next(step.line for step in STEPS[page] if step.name == command) for page, (command, _) in STOPS.items()
}
FOLLOWED = [page for page in PAGES if any(reason_not_to(step) is None for step in STEPS[page])]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[tuple[str, ...]], Serving]]:
    """The servers that pages share; each is started by the first page that needs it."""
    started: dict[tuple[str, ...], Serving] = {}
    with ExitStack() as stack:

        def get(arguments: tuple[str, ...]) -> Serving:
            if arguments not in started:
                started[arguments] = stack.enter_context(serving(arguments, tmp_path_factory.mktemp("server")))
            return started[arguments]

        yield get


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torch") is None, reason="needs the extra `train`")
@pytest.mark.parametrize("page", FOLLOWED)
def test_what_a_page_says_works(
    page: str, shared: Callable[[tuple[str, ...]], Serving], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tmp_path, page)
    with Newcomer(tmp_path, shared, monkeypatch) as newcomer:
        for step in STEPS[page]:
            if reason_not_to(step) is None:
                print(f"{step.page}:{step.line}: {step.name}")  # shown if it fails
                newcomer.type(step)


def test_what_is_not_run_is_still_in_the_documents() -> None:
    every = [step for page in PAGES for step in STEPS[page]]
    names = {step.name for step in every}
    assert sorted(set(NOT_RUN) - names) == []
    programs = {program(step.text) for step in every if step.language == "console"}
    assert sorted(set(PROGRAMS_NOT_RUN) - programs) == []


def test_most_commands_are_run() -> None:
    every = [step for page in PAGES for step in STEPS[page]]
    assert len([step for step in every if reason_not_to(step) is None]) >= 45
    assert {"README.md", "docs/index.md", "docs/serving.md", "docs/training.md"} <= set(FOLLOWED)


@pytest.mark.parametrize("page", PAGES)
def test_commands_stand_where_they_are_found(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    languages = [line.strip("`").strip() for line in text.splitlines() if line.startswith("```")]
    others = {"sh", "bash", "shell", "zsh"}
    assert not others & set(languages), "commands stand in blocks of `console`, each behind `$ `"


def test_commands_and_blocks_are_found_in_order() -> None:
    text = """
```console
$ glyphline serve --port 1 \\
  --workers 2    # a remark
serving
$ cat '#1' | head
```

1. In a list:

   ```python
   import os

   os.getcwd()
   ```
"""
    found = steps(text, "page.md")
    assert [(step.line, step.language, step.name) for step in found] == [
        (3, "console", "glyphline serve --port 1 --workers 2"),
        (6, "console", "cat '#1' | head"),
        (12, "python", "os.getcwd()"),
    ]


@pytest.mark.parametrize(
    ("command", "arguments", "output"),
    [
        ("glyphline recognize *.png", ("recognize", "a.png", "b.png"), None),
        ("glyphline transcribe '*.png' \"x y\"", ("transcribe", "*.png", "x y"), None),
        ('glyphline data init s --group "^([^_]+)_" > s.toml', ("data", "init", "s", "--group", "^([^_]+)_"), "s.toml"),
        ("glyphline evaluate s.toml:held_out", ("evaluate", "s.toml:held_out"), None),
        ("glyphline models no*where", ("models", "no*where"), None),
    ],
)
def test_a_command_is_taken_apart_as_a_shell_would(
    command: str, arguments: tuple[str, ...], output: str | None, tmp_path: Path
) -> None:
    for name in ("b.png", "a.png"):
        (tmp_path / name).touch()
    call = call_of(command, tmp_path)
    assert call is not None
    assert (call.arguments, call.output) == (arguments, output)


@pytest.mark.parametrize(
    "command",
    ["python x.py", "cat a | glyphline recognize -", "X=1 glyphline serve", "glyphline models && ls", 'glyphline "$X"'],
)
def test_the_shell_has_what_is_more(command: str, tmp_path: Path) -> None:
    assert call_of(command, tmp_path) is None


def test_remarks_are_left_out() -> None:
    assert plain("glyphline serve    # in a while") == "glyphline serve"
    assert plain("glyphline recognize a.tif#2") == "glyphline recognize a.tif#2"
